//! Compressed bytes are restored; bytes that do not shrink by an eighth are stored uncompressed.
#![allow(clippy::unwrap_used, reason = "tests may panic")]

use proptest::collection::vec;
use proptest::prelude::*;
use terrane_base::options::Compression;
use terrane_base::{Kind, Rng};
use terrane_format::codec::{self, Encoder};

const ALL: [Compression; 3] = [Compression::None, Compression::Lz4, Compression::Zstd];

fn noise(len: usize) -> Vec<u8> {
    let mut rng = Rng::new(1);
    (0..len).map(|_| rng.next_u64() as u8).collect()
}

proptest! {
    #[test]
    fn compressed_bytes_are_restored(raws in vec(vec(prop_oneof![Just(0u8), any::<u8>()], 0..3000), 1..4)) {
        for compression in ALL {
            // Without the cargo feature there is no such encoder: the test below says how it is refused.
            let Ok(mut encoder) = Encoder::new(compression) else { continue };
            for raw in &raws {
                let mut out = b"before".to_vec();
                let used = encoder.encode(raw, &mut out).unwrap();
                let stored = &out[6..];
                prop_assert!(used == Compression::None || stored.len() <= raw.len() - raw.len() / 8);
                prop_assert_eq!(&codec::decode(used, stored, raw.len()).unwrap(), raw);
                // A spare buffer that is too long, and has bytes of another block.
                let mut spare = vec![0xab; raw.len() + 7];
                let owned = codec::decode_reusing(used, stored.to_vec(), raw.len(), &mut spare).unwrap();
                prop_assert_eq!(&owned, raw);
                prop_assert_eq!(used == Compression::None || spare == stored, true, "the spare is what was stored");
                prop_assert_eq!(codec::decode(used, stored, raw.len() + 1).unwrap_err().kind(), Kind::Corrupt);
            }
        }
    }
}

#[test]
fn only_what_pays_is_compressed() {
    let mut half = noise(8192);
    half.resize(16384, 0);
    let mut tenth = noise(14746);
    tenth.resize(16384, 0);
    for compression in [Compression::Lz4, Compression::Zstd] {
        let Ok(mut encoder) = Encoder::new(compression) else { continue };
        assert_eq!(encoder.encode(&half, &mut Vec::new()).unwrap(), compression);
        assert_eq!(encoder.encode(&tenth, &mut Vec::new()).unwrap(), Compression::None);
    }
}

#[cfg(not(feature = "zstd"))]
#[test]
fn missing_zstd_names_the_cargo_feature() {
    let errors = [Encoder::new(Compression::Zstd).err(), codec::decode(Compression::Zstd, b"1234", 9).err()];
    for error in errors {
        let error = error.unwrap();
        assert_eq!(error.kind(), Kind::Invalid);
        assert!(error.message().contains("cargo feature `zstd`"), "{error}");
    }
}
