//! Compression of blocks; `docs/format/README.md` lists the codecs.
//!
//! A block is stored compressed only if that saves at least an eighth; below that, decompression costs a
//! reader more than the bytes. The block's index row names the codec that was used.

mod long_matches;

use terrane_base::key::{KEY_BYTES_MAX, VALUE_BYTES_MAX};
use terrane_base::options::Compression;
use terrane_base::{Error, Result};

/// Longest raw block of several entries, in bytes.
pub const RAW_BYTES_MAX: usize = 32 << 20;
/// Longest raw block of a single entry, in bytes: the largest key and value, and the block's own fields.
pub const RAW_BYTES_MAX_SINGLE: usize = KEY_BYTES_MAX + VALUE_BYTES_MAX + 1024;

/// The level of Zstandard: its default, the best ratio of speed to size.
#[cfg(feature = "zstd")]
const ZSTD_LEVEL: i32 = 3;

/// Compresses blocks one after the other and reuses the codec's working memory.
#[derive(Debug)]
pub struct Encoder {
    compression: Compression,
    scratch: Vec<u8>,
    #[cfg(feature = "zstd")]
    zstd: Option<ZstdCompressor>,
}

impl Encoder {
    /// An encoder that tries `compression` on every block.
    ///
    /// # Errors
    /// `Invalid` if this build cannot write `compression`; the message names the cargo feature.
    pub fn new(compression: Compression) -> Result<Self> {
        Encoder::at_level(compression, None)
    }

    /// As [`Encoder::new`], with Zstandard at a level from 1 to 22; `None` for its default. Readers need not
    /// know the level.
    ///
    /// # Errors
    /// As there.
    #[cfg_attr(not(feature = "zstd"), expect(unused_variables, reason = "only Zstandard has levels"))]
    pub fn at_level(compression: Compression, zstd_level: Option<u8>) -> Result<Self> {
        #[cfg(not(feature = "zstd"))]
        if compression == Compression::Zstd {
            return Err(zstd_missing());
        }
        #[cfg(feature = "zstd")]
        let zstd_level = zstd_level.map_or(ZSTD_LEVEL, i32::from);
        Ok(Encoder {
            compression,
            scratch: Vec::new(),
            #[cfg(feature = "zstd")]
            zstd: if compression == Compression::Zstd {
                Some(ZstdCompressor::new(zstd_level)?)
            } else {
                None
            },
        })
    }

    /// Appends `raw` to `out`, compressed if that saves enough; returns how it was stored.
    ///
    /// # Errors
    /// `Invalid` if the codec refuses the input, which no block within the limits causes.
    pub fn encode(&mut self, raw: &[u8], out: &mut Vec<u8>) -> Result<Compression> {
        let len = self.compress(raw)?;
        if let Some(len) = len.filter(|len| *len <= raw.len() - raw.len() / 8) {
            out.extend_from_slice(&self.scratch[..len]);
            return Ok(self.compression);
        }
        out.extend_from_slice(raw);
        Ok(Compression::None)
    }

    /// Compresses into the scratch buffer; returns the number of bytes used.
    fn compress(&mut self, raw: &[u8]) -> Result<Option<usize>> {
        match self.compression {
            Compression::None => Ok(None),
            Compression::Lz4 => {
                self.scratch.resize(lz4_flex::block::get_maximum_output_size(raw.len()), 0);
                let len = lz4_flex::block::compress_into(raw, &mut self.scratch);
                len.map(Some).map_err(|error| Error::invalid(format!("lz4 cannot compress a block: {error}")))
            }
            #[cfg(feature = "zstd")]
            Compression::Zstd => {
                self.scratch.resize(zstd::zstd_safe::compress_bound(raw.len()), 0);
                let zstd = self.zstd.as_mut().expect("made together with the codec's name");
                zstd.0.compress_to_buffer(raw, &mut self.scratch[..]).map(Some).map_err(zstd_refuses)
            }
            #[cfg(not(feature = "zstd"))]
            Compression::Zstd => Err(zstd_missing()),
        }
    }

    /// Bytes of memory that the encoder holds, without the codec library's own allocations.
    #[must_use]
    pub fn memory_bytes(&self) -> usize {
        self.scratch.capacity()
    }

    /// Frees memory beyond `bytes`, after a block of unusual size.
    pub fn shrink(&mut self, bytes: usize) {
        self.scratch.truncate(bytes);
        self.scratch.shrink_to(bytes);
    }
}

/// The raw bytes of a block stored with `compression`. Allocates `raw_len` bytes; it comes from the block's
/// index row, whose limits [`crate::index::IndexBlock`] has checked.
///
/// # Errors
/// `Corrupt` if the stored bytes do not give exactly `raw_len` bytes; `Invalid` if this build cannot read
/// `compression`.
pub fn decode(compression: Compression, stored: &[u8], raw_len: usize) -> Result<Vec<u8>> {
    check_lens(compression, stored.len(), raw_len)?;
    if compression == Compression::None {
        return Ok(stored.to_vec());
    }
    let mut raw = vec![0; raw_len];
    decompress(compression, stored, &mut raw)?;
    Ok(raw)
}

/// As [`decode`], without a copy if the block is stored uncompressed, and without an allocation if `spare` is
/// large enough: the result takes its memory, and `stored` becomes the spare buffer of the next call.
///
/// # Errors
/// As [`decode`].
pub fn decode_reusing(
    compression: Compression,
    stored: Vec<u8>,
    raw_len: usize,
    spare: &mut Vec<u8>,
) -> Result<Vec<u8>> {
    check_lens(compression, stored.len(), raw_len)?;
    if compression == Compression::None {
        return Ok(stored);
    }
    let mut raw = std::mem::take(spare);
    raw.resize(raw_len, 0);
    decompress(compression, &stored, &mut raw)?;
    debug_assert!(
        raw.len() == raw_len && stored.len() <= raw_len,
        "a block is stored compressed if that is shorter"
    );
    *spare = stored;
    Ok(raw)
}

/// Decompresses into exactly `raw`. Requires: `compression` is a codec, and [`check_lens`] accepted the
/// lengths.
fn decompress(compression: Compression, stored: &[u8], raw: &mut [u8]) -> Result<()> {
    let found = match compression {
        Compression::Lz4 if long_matches::prevail(stored) => long_matches::decompress(stored, raw)
            .map_err(|refusal| Error::corrupt(format!("block is not valid lz4: {refusal}")))?,
        Compression::Lz4 => lz4_flex::block::decompress_into(stored, raw)
            .map_err(|error| Error::corrupt(format!("block is not valid lz4: {error}")))?,
        _ => zstd_decode(stored, raw)?,
    };
    if found != raw.len() {
        return Err(Error::corrupt(format!("block of {} raw bytes decompresses to {found}", raw.len())));
    }
    Ok(())
}

/// Returns true if `stored_len` bytes can decompress to `raw_len` bytes. Checked before anything is
/// allocated.
pub(crate) fn check_lens(compression: Compression, stored_len: usize, raw_len: usize) -> Result<()> {
    /// An LZ4 sequence produces at most 255 bytes for each byte of its length.
    const LZ4_RATIO_MAX: usize = 255;
    // A block is stored compressed only if that saves bytes. So the length to read is bounded by the raw
    // length, which has a limit.
    let is_smaller = (1..=raw_len).contains(&stored_len);
    let possible = match compression {
        Compression::None => stored_len == raw_len,
        Compression::Lz4 => is_smaller && raw_len <= stored_len.saturating_mul(LZ4_RATIO_MAX),
        Compression::Zstd => is_smaller,
    };
    if !possible || raw_len > RAW_BYTES_MAX_SINGLE {
        return Err(Error::corrupt(format!(
            "block of {stored_len} bytes ({compression:?}) cannot hold {raw_len} raw bytes"
        )));
    }
    Ok(())
}

#[cfg(feature = "zstd")]
struct ZstdCompressor(zstd::bulk::Compressor<'static>);

#[cfg(feature = "zstd")]
impl ZstdCompressor {
    fn new(level: i32) -> Result<Self> {
        zstd::bulk::Compressor::new(level).map(ZstdCompressor).map_err(zstd_refuses)
    }
}

#[cfg(feature = "zstd")]
impl std::fmt::Debug for ZstdCompressor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("ZstdCompressor")
    }
}

#[cfg(feature = "zstd")]
fn zstd_refuses(error: std::io::Error) -> Error {
    Error::invalid(format!("zstd cannot compress a block: {error}"))
}

#[cfg(feature = "zstd")]
fn zstd_decode(stored: &[u8], raw: &mut [u8]) -> Result<usize> {
    use std::cell::RefCell;
    // Making a context costs more than decompressing a block, so each thread keeps one.
    thread_local! {
        static CONTEXT: RefCell<Option<zstd::bulk::Decompressor<'static>>> = const { RefCell::new(None) };
    }
    CONTEXT.with_borrow_mut(|slot| {
        let context = match slot {
            Some(context) => context,
            None => slot.insert(zstd::bulk::Decompressor::new().map_err(zstd_refuses)?),
        };
        let found = context.decompress_to_buffer(stored, raw);
        found.map_err(|error| Error::corrupt(format!("block is not valid zstd: {error}")))
    })
}

#[cfg(not(feature = "zstd"))]
fn zstd_decode(_stored: &[u8], _raw: &mut [u8]) -> Result<usize> {
    Err(zstd_missing())
}

#[cfg(not(feature = "zstd"))]
#[cold]
fn zstd_missing() -> Error {
    Error::invalid("this build has no zstd: build with the cargo feature `zstd`, or choose lz4")
}
