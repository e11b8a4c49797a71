//! Target: a store of extents over data files of any length, given any extents, then used.
//!
//! Bytes: number of files, for each its number and length; number of extents, for each file, slot and slots;
//! then operations. Held against sets of slots.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;

use terrane_base::{ExtentId, Kind, Result};
use terrane_device::{Disk, MemDisk, OpenMode};
use terrane_storage::{EXTENT_SLOTS_MAX, LocalStore, SLOT_BYTES, Store, StoreSettings};

use crate::Seed;
use crate::input::Input;

const DIR: &str = "data";
const OPERATIONS_MAX: usize = 40;

/// See the head of the file.
pub fn run(bytes: &[u8]) {
    let mut input = Input(bytes);
    let disk = MemDisk::new();
    disk.set_capacity(4 << 30);
    disk.create_dir(Path::new(DIR)).expect("a device without faults");
    let files = make_files(&disk, &mut input).expect("a device without faults");
    let store = match LocalStore::open(Arc::new(disk.clone()), Path::new(DIR), StoreSettings::default()) {
        Ok(store) => store,
        Err(error) => {
            assert_eq!(error.kind(), Kind::Corrupt, "{error}");
            assert!(files.values().any(|slots| *slots > u64::from(EXTENT_SLOTS_MAX)));
            return;
        }
    };
    assert!(files.values().all(|slots| *slots <= u64::from(EXTENT_SLOTS_MAX)));
    let listed = extents(&mut input);
    let mut taken = BTreeSet::new();
    let is_sound = listed.iter().all(|&(id, slots)| {
        let is_inside = files.get(&id.file).is_some_and(|len| u64::from(id.slot) + u64::from(slots) <= *len);
        (1..=EXTENT_SLOTS_MAX).contains(&slots) && is_inside && take(&mut taken, id, slots)
    });
    match store.restore(&mut listed.iter().copied()) {
        Ok(()) => assert!(is_sound, "overlapping or missing extents were taken: {listed:?} in {files:?}"),
        Err(error) => {
            assert!(!is_sound && error.kind() == Kind::Corrupt, "{error}");
            return;
        }
    }
    operate(&store, &mut input, &mut listed.into_iter().collect(), &mut taken);
}

fn make_files(disk: &MemDisk, input: &mut Input<'_>) -> Result<BTreeMap<u32, u64>> {
    let mut files = BTreeMap::new();
    for _ in 0..input.below(6) {
        let number = if input.u8() & 1 == 0 { u32::from(input.below(5)) } else { input.u32() };
        let bytes = u64::from(input.u16()) * (SLOT_BYTES as u64 / 2);
        let path = Path::new(DIR).join(format!("{number:06}.ext"));
        if let Ok(file) = disk.open(&path, OpenMode::Create, false) {
            file.set_len(bytes)?;
            // No data file has the number 0.
            if number > 0 {
                files.insert(number, bytes / SLOT_BYTES as u64);
            }
        }
    }
    Ok(files)
}

fn extents(input: &mut Input<'_>) -> Vec<(ExtentId, u32)> {
    let mut extent = || {
        let wild = input.u8() & 15 == 0;
        let mut number = |below| if wild { input.u32() } else { u32::from(input.below(below)) };
        (ExtentId { file: number(5), slot: number(200) }, number(4))
    };
    let count = extent().1 % 4 * 3;
    (0..count).map(|_| extent()).collect()
}

/// Notes the slots of an extent; false if one is taken already.
fn take(taken: &mut BTreeSet<(u32, u32)>, id: ExtentId, slots: u32) -> bool {
    let added = (id.slot..id.slot + slots).filter(|slot| taken.insert((id.file, *slot))).count();
    added == slots as usize
}

type Live = Vec<(ExtentId, u32)>;

fn operate(store: &LocalStore, input: &mut Input<'_>, live: &mut Live, taken: &mut BTreeSet<(u32, u32)>) {
    for _ in 0..OPERATIONS_MAX {
        if input.is_over() {
            break;
        }
        match input.below(5) {
            0 | 1 => {
                let slots = if input.u8() == 0 { input.u32() } else { 1 + u32::from(input.below(3)) };
                match store.allocate(slots) {
                    Ok(id) => {
                        assert!(take(taken, id, slots), "slots given out twice: {id}");
                        store.write(id, &[id.slot as u8; 100]).expect("space that was given out");
                        live.push((id, slots));
                    }
                    Err(error) => assert!(matches!(error.kind(), Kind::Invalid | Kind::Full), "{error}"),
                }
            }
            2 if !live.is_empty() => {
                let (id, slots) = live.swap_remove(usize::from(input.u8()) % live.len());
                store.free(id, slots).expect("a live extent");
                taken.retain(|&(file, slot)| file != id.file || !(id.slot..id.slot + slots).contains(&slot));
                assert!(store.free(id, slots).is_err(), "given back twice");
            }
            3 => store.sync().expect("a device without faults"),
            _ => {
                let id = ExtentId { file: input.u32() % 6, slot: input.u32() };
                if let Err(error) = store.read(id, input.u32(), &mut [0; 16]) {
                    assert_eq!(error.kind(), Kind::Corrupt, "{error}");
                }
            }
        }
    }
    let usage = store.usage();
    assert_eq!(usage.live_bytes, taken.len() as u64 * SLOT_BYTES as u64);
    assert_eq!(usage.file_bytes, usage.live_bytes + usage.free_bytes + usage.punched_bytes);
}

/// Corpus of [`run`].
#[must_use]
pub fn seeds() -> Vec<Seed> {
    let file = |number: u8, halves: u16| [&[0, number][..], &halves.to_le_bytes()].concat();
    let extent = |file: u8, slot: u8, slots: u8| vec![1, file, slot, slots];
    let count = |thirds: u8| extent(0, 0, thirds);
    let operations = vec![0, 1, 0, 0, 1, 1, 1, 2, 0, 3, 0, 1, 2, 2, 1, 4, 1, 0, 0, 0, 0, 0, 0, 0, 9, 0, 0, 0];
    let make = |parts: &[Vec<u8>]| parts.concat();
    vec![
        ("empty".into(), make(&[vec![0], count(0), operations.clone()])),
        (
            "two-files".into(),
            make(&[
                vec![2],
                file(1, 20),
                file(2, 7),
                count(1),
                extent(1, 0, 1),
                extent(1, 4, 3),
                extent(2, 1, 2),
                operations.clone(),
            ]),
        ),
        (
            "overlap".into(),
            make(&[
                vec![1],
                file(1, 20),
                count(1),
                extent(1, 0, 3),
                extent(1, 2, 1),
                extent(1, 5, 1),
                operations,
            ]),
        ),
        ("too-long".into(), make(&[vec![1], file(3, 1026), count(0)])),
    ]
}
