//! `dump`: any stored file as annotated hexadecimal: where, which bytes, what they mean.
//!
//! The first bytes tell a manifest, a segment or a page of metrics; a file of extents has no header, so
//! extents are found by their footers, which end at multiples of 4096. A file is read a fixed number of times
//! at most, whatever it says.

use std::collections::BTreeMap;
use std::io::{Read, Seek, SeekFrom, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use terrane_format::dump::Field;
use terrane_format::extent::{ALIGN_BYTES, FOOTER_BYTES_MAX, Footer};
use terrane_format::external::{TRAILER_BYTES, Trailer};
use terrane_format::{extent, external, manifest, metrics_page, segment};

use crate::arguments::Dump;
use crate::exit::{Code, Failure};
use crate::files;
use crate::progress::{Meter, Unit};
use crate::signals::{stop_on_signals, stopped};

/// Bytes of a part that are shown.
const HEX_BYTES: usize = 16;
/// Longest file that is read as a whole; only files of extents are longer.
const WHOLE_BYTES_MAX: u64 = 1 << 31;

/// Extents start at multiples of this: see `docs/format/data-file.md`.
const SLOT_BYTES: u64 = 2 << 20;
/// Longest extent.
const EXTENT_BYTES_MAX: u64 = 1 << 30;
/// How often the bytes of a data file are read at most, for extents that lie over each other.
const OVERLAP_MAX: u64 = 2;

pub(super) fn run(command: &Dump, out: &mut dyn Write) -> Result<(), Failure> {
    let name = command.file.display().to_string();
    let failed = |error: std::io::Error| Failure::file(&name, &error);
    let mut file = files::open(&command.file).map_err(failed)?.file;
    let mut head = Vec::new();
    (&mut file).take(8).read_to_end(&mut head).map_err(failed)?;
    file.seek(SeekFrom::Start(0)).map_err(failed)?;
    let stop = stop_on_signals()?;
    let left = command.limit.unwrap_or(u64::MAX);
    let mut printer = Printer { out, from: command.from, left, stop: stop.clone() };
    if head == manifest::file::MAGIC || head == segment::MAGIC {
        let mut bytes = Vec::new();
        file.take(WHOLE_BYTES_MAX).read_to_end(&mut bytes).map_err(failed)?;
        return if head == segment::MAGIC { printer.segment(&bytes) } else { printer.manifest(&bytes) };
    }
    if head == metrics_page::MAGIC {
        let mut bytes = Vec::new();
        file.take(metrics_page::PAGE_BYTES_MAX as u64).read_to_end(&mut bytes).map_err(failed)?;
        return printer.fields(&bytes, 0, &metrics_page::describe(&bytes));
    }
    let external = external_end(&mut file).map_err(failed)?;
    let mut meter = Meter::new("dump", Unit::Bytes);
    let found = find_extents(&mut file, &mut |done, len| {
        meter.set_total(Some(len));
        meter.show(done, None);
        !is_set(&stop)
    });
    drop(meter);
    let Found { extents, left_out } = found.map_err(failed)?;
    refuse_if_stopped(&stop)?;
    if extents.is_empty() && head.iter().all(|&byte| byte == 0) {
        writeln!(
            printer.out,
            "no header and no extent: an empty file, or a spare one that waits for its use"
        )?;
        return Ok(());
    }
    if extents.is_empty() {
        return Err(not_ours(&name));
    }
    match &external {
        Some(_) => writeln!(printer.out, "external file: extents, contents and trailer")?,
        None => writeln!(printer.out, "data file: the manifest says which of these extents count")?,
    }
    for (start, len) in extents {
        let mut bytes = vec![0; len];
        file.seek(SeekFrom::Start(start)).map_err(failed)?;
        file.read_exact(&mut bytes).map_err(failed)?;
        writeln!(printer.out, "extent of {len} bytes at {start}")?;
        printer.fields(&bytes, start, &extent::describe(&bytes))?;
    }
    if left_out > 0 {
        writeln!(
            printer.out,
            "{left_out} overlapping extents are not shown: they are more than a sound database has"
        )?;
    }
    external.map_or(Ok(()), |(trailer, bytes)| printer.external_end(&trailer, &bytes))
}

/// The contents and the trailer of an external file, if it is one.
fn external_end(file: &mut (impl Read + Seek)) -> std::io::Result<Option<(Trailer, Vec<u8>)>> {
    let len = file.seek(SeekFrom::End(0))?;
    let Some(trailer_at) = len.checked_sub(TRAILER_BYTES as u64) else { return Ok(None) };
    let mut trailer = [0; TRAILER_BYTES];
    file.seek(SeekFrom::Start(trailer_at))?;
    file.read_exact(&mut trailer)?;
    let Ok(trailer) = Trailer::decode(&trailer, len) else { return Ok(None) };
    let mut bytes = Vec::new();
    file.seek(SeekFrom::Start(trailer.contents_at))?;
    file.take(len - trailer.contents_at).read_to_end(&mut bytes)?;
    Ok(Some((trailer, bytes)))
}

fn is_set(stop: &AtomicBool) -> bool {
    // Acquire: pairs with the store of the thread that waits for signals.
    stop.load(Ordering::Acquire)
}

fn refuse_if_stopped(stop: &AtomicBool) -> Result<(), Failure> {
    if is_set(stop) { Err(stopped("the file was not shown to its end")) } else { Ok(()) }
}

fn not_ours(name: &str) -> Failure {
    Failure::new(Code::Usage, format!("{name} is not a manifest, segment or data file of a database"))
}

/// The extents of a file.
struct Found {
    /// Start and length, by start.
    extents: Vec<(u64, usize)>,
    /// How many more there are that lie over others.
    left_out: usize,
}

/// Every extent whose footer is sound: of those that start at the same slot the shortest, since the end of a
/// longer one that was there before may still stand behind it. Extents may lie over others for the same
/// reason; but where they add up to more than [`OVERLAP_MAX`] times the file, the file was made up by hand,
/// and the rest is left out. `goes_on` gets the bytes that were looked through, and all; false ends the
/// search.
fn find_extents(
    file: &mut (impl Read + Seek),
    goes_on: &mut dyn FnMut(u64, u64) -> bool,
) -> std::io::Result<Found> {
    let len = file.seek(SeekFrom::End(0))?;
    let mut by_start = BTreeMap::new();
    let mut footer = [0; FOOTER_BYTES_MAX];
    let mut end = ALIGN_BYTES as u64;
    while end <= len && goes_on(end, len) {
        file.seek(SeekFrom::Start(end - FOOTER_BYTES_MAX as u64))?;
        file.read_exact(&mut footer)?;
        if let Ok(footer) = Footer::decode(&footer)
            && let Some(start) = end.checked_sub(u64::from(footer.bytes))
            && start.is_multiple_of(SLOT_BYTES)
            && u64::from(footer.bytes) <= EXTENT_BYTES_MAX
        {
            by_start.entry(start).or_insert(footer.bytes as usize);
        }
        end += ALIGN_BYTES as u64;
    }
    let (count, mut left) = (by_start.len(), len.saturating_mul(OVERLAP_MAX));
    let fits = |(_, len): &(u64, usize)| {
        let rest = left.checked_sub(*len as u64);
        left = rest.unwrap_or(0);
        rest.is_some()
    };
    let extents: Vec<_> = by_start.into_iter().take_while(fits).collect();
    Ok(Found { left_out: count - extents.len(), extents })
}

struct Printer<'o> {
    out: &'o mut dyn Write,
    /// First byte of the file that is shown.
    from: u64,
    /// Parts that may still be shown.
    left: u64,
    stop: Arc<AtomicBool>,
}

impl Printer<'_> {
    fn manifest(&mut self, bytes: &[u8]) -> Result<(), Failure> {
        writeln!(self.out, "manifest file of {} bytes", bytes.len())?;
        let mut written = Ok(());
        manifest::describe(bytes, &mut |field| {
            if written.is_ok() {
                written = self.field(bytes, 0, &field);
            }
        });
        written
    }

    /// `bytes` are the contents and the trailer behind them.
    fn external_end(&mut self, trailer: &Trailer, bytes: &[u8]) -> Result<(), Failure> {
        let (at, contents_len) = (trailer.contents_at, bytes.len().saturating_sub(TRAILER_BYTES));
        writeln!(self.out, "contents of {contents_len} bytes at {at}")?;
        let fields = external::describe(&bytes[..contents_len], at, SLOT_BYTES);
        self.fields(bytes, at, &fields)?;
        writeln!(self.out, "trailer of {TRAILER_BYTES} bytes at {}", at + contents_len as u64)?;
        let field =
            |offset, len, name: &str, value: String| Field::new(contents_len + offset, len, name, value);
        let fields = [
            field(0, 8, "contents_at", at.to_string()),
            field(8, 8, "contents_len", trailer.contents_len.to_string()),
            field(16, 4, "checksum", "holds".to_owned()),
            field(20, 8, "magic", terrane_format::dump::text(&external::MAGIC)),
        ];
        self.fields(bytes, at, &fields)
    }

    fn segment(&mut self, bytes: &[u8]) -> Result<(), Failure> {
        writeln!(self.out, "segment file of {} bytes", bytes.len())?;
        let mut written = Ok(());
        let described = segment::describe(bytes, &mut |range, meaning| {
            if written.is_ok() {
                written = self.line(bytes, 0, range.start, range.len(), &meaning);
            }
        });
        written?;
        if let Err(error) = described {
            self.line(bytes, 0, 0, 0, &format!("broken = {error}"))?;
        }
        Ok(())
    }

    fn fields(&mut self, bytes: &[u8], base: u64, fields: &[Field]) -> Result<(), Failure> {
        let mut fields: Vec<&Field> = fields.iter().collect();
        fields.sort_by_key(|field| field.offset);
        fields.into_iter().try_for_each(|field| self.field(bytes, base, field))
    }

    fn field(&mut self, bytes: &[u8], base: u64, field: &Field) -> Result<(), Failure> {
        self.line(bytes, base, field.offset, field.len, &format!("{} = {}", field.name, field.value))
    }

    /// `start-end: hex # meaning`, positions counted from the start of the file, the end not included.
    fn line(
        &mut self,
        bytes: &[u8],
        base: u64,
        offset: usize,
        len: usize,
        meaning: &str,
    ) -> Result<(), Failure> {
        let start = base + offset as u64;
        if start < self.from || self.left == 0 {
            return Ok(());
        }
        refuse_if_stopped(&self.stop)?;
        self.left -= 1;
        let shown = bytes.get(offset..).unwrap_or_default();
        let shown = &shown[..shown.len().min(len).min(HEX_BYTES)];
        let mut hex = String::new();
        crate::text::hex(shown, &mut hex);
        if len > HEX_BYTES {
            hex.push_str("..");
        }
        writeln!(self.out, "{start:>10}-{:<10} {hex:<34} # {meaning}", start + len as u64)?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use terrane_format::extent::FOOTER_BYTES;

    use super::*;

    /// A file of 32 slots with a footer for each, all of whose extents reach nearly to its end.
    fn overlapping() -> Vec<u8> {
        const SLOTS: u64 = 32;
        let mut bytes = vec![0; (SLOTS * SLOT_BYTES) as usize];
        for slot in 0..SLOTS {
            let end = bytes.len() - slot as usize * ALIGN_BYTES;
            let len = (end as u64 - slot * SLOT_BYTES) as u32;
            let index = extent::Handle { offset: 0, len: len - FOOTER_BYTES as u32, checksum: 0 };
            let footer = Footer {
                compression: terrane_base::options::Compression::None,
                table: terrane_base::TableId::DEFAULT,
                bytes: len,
                blocks: 1,
                index,
                filter: extent::Handle::default(),
                range_deletes: extent::Handle::default(),
                fragments: 0,
                raw_bytes: 0,
                entries: 1,
                deletes: 0,
                seq_min: terrane_base::SeqNo(1),
                seq_max: terrane_base::SeqNo(1),
                expiry: None,
                references: extent::Handle::default(),
                has_positions: false,
                value_table: None,
                origin: extent::Handle::default(),
            };
            let mut encoded = Vec::new();
            footer.encode(&mut encoded);
            bytes[end - FOOTER_BYTES..end].copy_from_slice(&encoded);
        }
        bytes
    }

    #[test]
    fn extents_over_extents_are_not_read_without_end() {
        let bytes = overlapping();
        let found =
            find_extents(&mut std::io::Cursor::new(&bytes), &mut |_, _| true).expect("bytes in memory");
        let sum: usize = found.extents.iter().map(|(_, len)| len).sum();
        assert!(sum <= 2 * bytes.len() && !found.extents.is_empty(), "{sum} of {}", bytes.len());
        assert_eq!(found.left_out + found.extents.len(), 32);
        assert!(found.left_out > 0);
    }
}
