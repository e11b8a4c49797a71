//! Tests of every implementation of [`PmRegion`].

use super::{LINE_BYTES, PmRegion, WORD_BYTES};
use terrane_base::{Kind, Rng};

/// Runs the suite on a region of at least 4096 zero bytes.
///
/// # Panics
/// If the region breaks its contract.
pub fn run(region: &dyn PmRegion) {
    assert!(region.len() >= 4096 && region.len().is_multiple_of(LINE_BYTES), "length {}", region.len());
    assert!(!region.is_empty(), "a region of {} bytes is not empty", region.len());
    check_bounds(region);
    check_words(region);
    check_bytes(region);
}

fn check_bounds(region: &dyn PmRegion) {
    let len = region.len();
    let refused = |result: terrane_base::Result<()>, what: &str| {
        let kind = result.expect_err(what).kind();
        assert_eq!(kind, Kind::Invalid, "{what}");
    };
    for offset in [len, len + WORD_BYTES, u64::MAX - 7, 4, len - 4, u64::MAX] {
        refused(region.load(offset).map(drop), "a load outside or between two words");
        refused(region.store(offset, 1), "a store outside or between two words");
        refused(region.exchange(offset, 0, 1).map(drop), "an exchange outside or between two words");
    }
    for (offset, bytes) in [(len, 1), (len - 1, 2), (u64::MAX, 1), (u64::MAX - 1, 8), (0, len + 1)] {
        let mut buffer = vec![7; bytes as usize];
        refused(region.read(offset, &mut buffer), "a read outside");
        refused(region.write(offset, &buffer), "a write outside");
        refused(region.stream(offset, &buffer), "a stream outside");
        refused(region.flush(offset, bytes), "a flush outside");
    }
    let mut all = vec![1; len as usize];
    region.read(0, &mut all).expect("within the region");
    assert!(all.iter().all(|byte| *byte == 0), "a refused access changed bytes");
    region.read(len, &mut []).expect("an empty range at the end is within the region");
}

fn check_words(region: &dyn PmRegion) {
    region.store(64, 0x0807_0605_0403_0201).expect("within the region");
    let mut bytes = [0; 8];
    region.read(64, &mut bytes).expect("within the region");
    assert_eq!(bytes, [1, 2, 3, 4, 5, 6, 7, 8], "words are little-endian");
    assert_eq!(region.exchange(64, 1, 2).expect("within the region"), 0x0807_0605_0403_0201);
    assert_eq!(region.load(64).expect("within the region"), 0x0807_0605_0403_0201, "not exchanged");
    assert_eq!(region.exchange(64, 0x0807_0605_0403_0201, 0).expect("within"), 0x0807_0605_0403_0201);
    assert_eq!(region.load(64).expect("within the region"), 0, "exchanged");
    region.persist(64, 8).expect("within the region");
}

/// Writes and streams of every alignment, against bytes in memory.
fn check_bytes(region: &dyn PmRegion) {
    let mut rng = Rng::new(17);
    let mut model = vec![0; region.len() as usize];
    for round in 0..200 {
        let len = rng.index(300);
        let offset = rng.index(4096 - len);
        let bytes: Vec<u8> = (0..len).map(|_| rng.next_u64() as u8).collect();
        model[offset..offset + len].copy_from_slice(&bytes);
        if round % 2 == 0 {
            region.write(offset as u64, &bytes).expect("within the region");
            region.flush(offset as u64, len as u64).expect("within the region");
        } else {
            region.stream(offset as u64, &bytes).expect("within the region");
        }
        region.fence().expect("the region works");
        let (from, len) = (rng.index(4096), rng.index(300));
        let mut read = vec![0; len.min(4096 - from)];
        region.read(from as u64, &mut read).expect("within the region");
        assert_eq!(read, model[from..from + read.len()], "round {round}, {} bytes at {from}", read.len());
    }
    let mut all = vec![0; model.len()];
    region.read(0, &mut all).expect("within the region");
    assert_eq!(all, model);
}
