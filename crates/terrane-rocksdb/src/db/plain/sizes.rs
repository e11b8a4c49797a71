//! Sizes of ranges, and verification of the stored data.

use std::mem::MaybeUninit;

use crate::db::{Database, Family, FamilyHandle, family};
use crate::ffi::failure::{Failure, Given, Result};
use crate::generated::objects::SizeApproximationOptions;
use crate::options::read_write::ReadOptions;

/// The parts of a range that count.
#[derive(Clone, Copy)]
struct Counted {
    memory: bool,
    stored: bool,
    values: bool,
}

const ALL: Counted = Counted { memory: true, stored: true, values: false };
/// Bits of flags, as RocksDB has them.
const MEMORY: u8 = 1;
const STORED: u8 = 2;
const VALUES: u8 = 4;

impl Counted {
    fn of_flags(flags: u8) -> Result<Counted> {
        let is_set = |flag: u8| flags & flag != 0;
        Counted { memory: is_set(MEMORY), stored: is_set(STORED), values: is_set(VALUES) }.checked()
    }

    fn of(options: Option<&SizeApproximationOptions>) -> Result<Counted> {
        let fields = &options.given()?.fields;
        let values = fields.include_blob_files != 0;
        Counted { memory: fields.include_memtables != 0, stored: fields.include_files != 0, values }.checked()
    }

    fn checked(self) -> Result<Counted> {
        match self {
            Counted { memory: false, stored: false, values: false } => {
                Err(Failure::invalid("Invalid options"))
            }
            counted => Ok(counted),
        }
    }
}

/// Bytes of ranges, about, each with its end excluded.
fn sizes(
    family: &Family,
    counted: Counted,
    (starts, limits): (&[&[u8]], &[&[u8]]),
    places: &mut [MaybeUninit<u64>],
) -> Result<()> {
    let table = family.seen();
    for (place, (&start, &limit)) in places.iter_mut().zip(starts.iter().zip(limits)) {
        let mut size = 0;
        let kept;
        let range = match &family.history {
            // In the order of the family: by bytes the ends may lie the other way round.
            None => family.order.cmp(start, limit).is_lt().then_some(start..limit),
            Some(history) => {
                // The newest version of a key comes first.
                let newest = vec![0xff; history.size()];
                kept = [history.kept(start, &newest), history.kept(limit, &newest)];
                history.compare_keys(start, limit).is_lt().then(|| &kept[0][..]..&kept[1][..])
            }
        };
        if let Some(range) = range {
            let found = table.approximate(range)?;
            let memory = found.memory_bytes.value;
            size += if counted.memory { memory } else { 0 };
            let values = found.value_bytes.value;
            size += if counted.stored { found.bytes.value.saturating_sub(memory + values) } else { 0 };
            size += if counted.values { values } else { 0 };
        }
        place.write(size);
    }
    Ok(())
}

/// Verifies all that is stored.
fn verify(database: &Database) -> Result<()> {
    let report = database.view().check(&mut |_, _| {})?;
    match report.findings.first() {
        Some(finding) => Err(Failure::corrupt(&finding.error)),
        None => Ok(()),
    }
}

/// Where checksums of files were asked for, verifies all that is stored: every block has one. Else it is
/// refused in RocksDB's words.
fn verify_files(database: &Database) -> Result<()> {
    if !database.lock_options().objects.has_file_checksums {
        return Err(Failure::invalid(
            "Cannot verify file checksum if options.file_checksum_gen_factory is null",
        ));
    }
    verify(database)
}

cf_variants! {
    fn rocksdb_approximate_sizes | rocksdb_approximate_sizes_cf(
        database: Option<&Database>;
        count: i32,
        starts: List<'_, Bytes<'_>>[count],
        start_lens: List<'_, usize>,
        limits: List<'_, Bytes<'_>>[count],
        limit_lens: List<'_, usize>,
        places: OutList<'_, u64>[count],
        error: ErrPtr<'_>,
    ) as target {
        sizes(target.family(database)?, ALL, (&starts, &limits), places)
    }

    fn rocksdb_approximate_sizes_with_options | rocksdb_approximate_sizes_cf_with_options(
        database: Option<&Database>;
        options: Option<&SizeApproximationOptions>,
        count: i32,
        starts: List<'_, Bytes<'_>>[count],
        start_lens: List<'_, usize>,
        limits: List<'_, Bytes<'_>>[count],
        limit_lens: List<'_, usize>,
        places: OutList<'_, u64>[count],
        error: ErrPtr<'_>,
    ) as target {
        let counted = Counted::of(options)?;
        sizes(target.family(database)?, counted, (&starts, &limits), places)
    }
}

export! {
    fn rocksdb_approximate_sizes_cf_with_flags(
        _database: Option<&Database>,
        handle: Option<&FamilyHandle>,
        count: i32,
        starts: List<'_, Bytes<'_>>[count],
        start_lens: List<'_, usize>,
        limits: List<'_, Bytes<'_>>[count],
        limit_lens: List<'_, usize>,
        flags: u8,
        places: OutList<'_, u64>[count],
        error: ErrPtr<'_>,
    ) {
        let counted = Counted::of_flags(flags)?;
        sizes(family(handle)?, counted, (&starts, &limits), places)
    }

    fn rocksdb_verify_checksum(database: Option<&Database>, error: ErrPtr<'_>) {
        verify(database.given()?)
    }

    fn rocksdb_verify_checksum_with_options(
        database: Option<&Database>,
        _options: Option<&ReadOptions>,
        error: ErrPtr<'_>,
    ) {
        verify(database.given()?)
    }

    fn rocksdb_verify_file_checksums(database: Option<&Database>, error: ErrPtr<'_>) {
        verify_files(database.given()?)
    }

    fn rocksdb_verify_file_checksums_with_options(
        database: Option<&Database>,
        _options: Option<&ReadOptions>,
        error: ErrPtr<'_>,
    ) {
        verify_files(database.given()?)
    }
}
