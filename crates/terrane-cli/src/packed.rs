//! Compressed output: gzip or Zstandard, by the end of a name.

use std::io::{self, Write};

use flate2::Compression;
use flate2::write::GzEncoder;
use ruzstd::encoding::{CompressionLevel, compress_to_vec};

/// Bytes of one Zstandard frame before compression: readers take any number of frames as one stream.
const FRAME_BYTES: usize = 1 << 20;

/// A writer that compresses, or not.
pub enum Packed<W: Write> {
    /// As it is.
    Plain(W),
    /// Gzip (RFC 1952).
    Gzip(GzEncoder<W>),
    /// Zstandard (RFC 8878), frame by frame.
    Zstandard {
        /// Where frames go.
        inner: W,
        /// The next frame.
        frame: Vec<u8>,
    },
}

impl<W: Write> Packed<W> {
    /// Compresses as the end of `name` says: `.gz` or `.zst`.
    pub fn new(inner: W, name: &str) -> Packed<W> {
        if name.ends_with(".gz") {
            Packed::Gzip(GzEncoder::new(inner, Compression::fast()))
        } else if name.ends_with(".zst") {
            Packed::Zstandard { inner, frame: Vec::new() }
        } else {
            Packed::Plain(inner)
        }
    }

    /// Writes the rest, and gives the writer back.
    ///
    /// # Errors
    /// Of the writer.
    pub fn finish(self) -> io::Result<W> {
        match self {
            Packed::Plain(inner) => Ok(inner),
            Packed::Gzip(encoder) => encoder.finish(),
            Packed::Zstandard { mut inner, mut frame } => {
                write_frame(&mut inner, &mut frame)?;
                Ok(inner)
            }
        }
    }
}

fn write_frame(out: &mut impl Write, frame: &mut Vec<u8>) -> io::Result<()> {
    out.write_all(&compress_to_vec(frame.as_slice(), CompressionLevel::Fastest))?;
    frame.clear();
    Ok(())
}

impl<W: Write> Write for Packed<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Packed::Plain(inner) => inner.write(bytes),
            Packed::Gzip(encoder) => encoder.write(bytes),
            Packed::Zstandard { inner, frame } => {
                frame.extend_from_slice(bytes);
                if frame.len() >= FRAME_BYTES {
                    write_frame(inner, frame)?;
                }
                Ok(bytes.len())
            }
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Packed::Plain(inner) | Packed::Zstandard { inner, .. } => inner.flush(),
            Packed::Gzip(encoder) => encoder.flush(),
        }
    }
}
