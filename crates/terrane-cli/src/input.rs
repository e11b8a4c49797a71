//! The stream behind an import: a file or standard input, plain or compressed; what identifies it, and how
//! far it was read. A read that waits for a pipe ends when the stop flag is set.

use std::io::{self, BufRead, BufReader, Read, Seek, SeekFrom};
use std::os::fd::AsFd;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use rustix::event::{PollFd, PollFlags, Timespec, poll};

use ruzstd::decoding::errors::{FrameDecoderError, ReadFrameHeaderError::SkipFrame};
use ruzstd::decoding::{BlockDecodingStrategy, FrameDecoder};

use crate::files::{self, File};
use crate::import::{Source, Streamed};

const BUFFER_BYTES: usize = 256 << 10;
/// Most bytes at the front of an input that identify it.
pub const HEAD_BYTES: usize = 4096;
/// Longest wait for a pipe between two looks at the stop flag.
const TURN: Timespec = Timespec { tv_sec: 0, tv_nsec: 50_000_000 };
const GZIP: &[u8] = &[0x1f, 0x8b];
const ZSTANDARD: &[u8] = &[0x28, 0xb5, 0x2f, 0xfd];

/// An input to import.
pub struct Input {
    /// The uncompressed stream.
    pub source: Box<dyn Source>,
    /// Name for messages: the path as given, or `standard input`.
    pub name: String,
    /// The identity of the input.
    pub identity: Identity,
    /// Its first bytes as stored.
    pub head: Vec<u8>,
    /// Length as stored, if known.
    pub len: Option<u64>,
    /// Bytes read so far, as stored.
    pub read: Arc<AtomicU64>,
}

/// Identity of an input: an import goes on only in the input in which it stopped, or in one that has grown
/// since.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Identity {
    /// Absolute path, or `-`.
    pub path: String,
    /// Length as stored; 0 if unknown, as it is of a pipe.
    pub len: u64,
    /// Time of the last change, in nanoseconds since 1970; 0 if unknown.
    pub changed_nanos: u64,
    /// How many bytes of the front `head` is of.
    pub head_len: usize,
    /// Checksum of the first bytes as stored.
    pub head: u32,
}

impl Input {
    /// Opens `path`, or standard input for `-`. Reads of a pipe fail once `stop` is set.
    ///
    /// # Errors
    /// Of the operating system; `InvalidData` for a compressed stream with a bad header.
    pub fn open(path: &str, stop: &Arc<AtomicBool>) -> io::Result<Input> {
        if path == "-" {
            // Without the buffer of the library: what lies in a buffer is not seen by `poll`.
            let file = File::from(io::stdin().as_fd().try_clone_to_owned()?);
            return Input::of_pipe(file, "standard input", "-".to_owned(), stop);
        }
        let files::Opened { mut file, path: full, len, changed_nanos } = files::open(Path::new(path))?;
        let full = full.to_string_lossy().into_owned();
        let Some(len) = len else { return Input::of_pipe(file, path, full, stop) };
        let head = read_head(&mut file)?;
        file.seek(SeekFrom::Start(0))?;
        let read = Arc::new(AtomicU64::new(0));
        let raw = Counting { inner: file, read: read.clone() };
        let source = uncompress(&head, raw)?
            .unwrap_or_else(|raw| Box::new(PlainFile { inner: buffered(raw), at: 0, len }));
        let identity = Identity::new(full, len, changed_nanos, &head);
        Ok(Input { source, name: path.to_owned(), identity, head, len: Some(len), read })
    }

    fn of_pipe(file: File, name: &str, path: String, stop: &Arc<AtomicBool>) -> io::Result<Input> {
        let read = Arc::new(AtomicU64::new(0));
        let waiting = Waiting { inner: file, stop: stop.clone() };
        let mut raw = Counting { inner: waiting, read: read.clone() };
        let head = read_head(&mut raw)?;
        let identity = Identity::new(path, 0, 0, &head);
        let raw = io::Cursor::new(head.clone()).chain(raw);
        let source = uncompress(&head, raw)?.unwrap_or_else(|raw| Box::new(Streamed(buffered(raw))));
        Ok(Input { source, name: name.to_owned(), identity, head, len: None, read })
    }
}

impl Identity {
    fn new(path: String, len: u64, changed_nanos: u64, head: &[u8]) -> Identity {
        Identity { path, len, changed_nanos, head_len: head.len(), head: crc32c::crc32c(head) }
    }

    /// True if an input with these first bytes begins as this one did when it was read.
    #[must_use]
    pub fn begins(&self, head: &[u8]) -> bool {
        head.get(..self.head_len).is_some_and(|head| crc32c::crc32c(head) == self.head)
    }
}

fn buffered<R: Read>(raw: R) -> BufReader<R> {
    BufReader::with_capacity(BUFFER_BYTES, raw)
}

/// Up to [`HEAD_BYTES`] from the front; fewer if the stop flag is set meanwhile.
fn read_head(raw: &mut impl Read) -> io::Result<Vec<u8>> {
    let mut head = Vec::with_capacity(HEAD_BYTES);
    match raw.take(HEAD_BYTES as u64).read_to_end(&mut head) {
        Err(error) if is_stop(&error) => Ok(head),
        done => done.map(|_| head),
    }
}

/// The error of a read that waited for a pipe when the stop flag was set.
fn stopped() -> io::Error {
    io::Error::new(io::ErrorKind::ConnectionAborted, "stopped by a signal while it waited for input")
}

/// True if a read ended because the stop flag was set.
pub(crate) fn is_stop(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::ConnectionAborted
}

/// Lines of standard input; a read that waits ends when `stop` is set, by an error that [`is_stop`] knows.
pub(crate) fn standard_lines(stop: &Arc<AtomicBool>) -> io::Result<Box<dyn BufRead>> {
    let inner = File::from(io::stdin().as_fd().try_clone_to_owned()?);
    Ok(Box::new(BufReader::new(Waiting { inner, stop: stop.clone() })))
}

/// Lines of a file, which may be a pipe with a name, as [`standard_lines`].
pub(crate) fn lines_of(path: &Path, stop: &Arc<AtomicBool>) -> io::Result<Box<dyn BufRead>> {
    let inner = files::open(path)?.file;
    Ok(Box::new(BufReader::new(Waiting { inner, stop: stop.clone() })))
}

/// A pipe: a read waits for bytes, its end, or the stop flag.
struct Waiting {
    inner: File,
    stop: Arc<AtomicBool>,
}

impl Read for Waiting {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            // Acquire: pairs with the store of the thread that waits for signals.
            if self.stop.load(Ordering::Acquire) {
                return Err(stopped());
            }
            match poll(&mut [PollFd::new(&self.inner, PollFlags::IN)], Some(&TURN)) {
                Ok(0) | Err(rustix::io::Errno::INTR) => {}
                Ok(_) => return self.inner.read(buffer),
                Err(error) => return Err(error.into()),
            }
        }
    }
}

/// The uncompressed stream if `head` tells a compression; `raw` back if not.
fn uncompress<R: Read + 'static>(head: &[u8], raw: R) -> io::Result<Result<Box<dyn Source>, R>> {
    if head.starts_with(GZIP) {
        let decoder = flate2::bufread::MultiGzDecoder::new(buffered(raw));
        return Ok(Ok(Box::new(Streamed(buffered(decoder)))));
    }
    if head.starts_with(ZSTANDARD) {
        return Ok(Ok(Box::new(Streamed(buffered(Frames::new(buffered(raw)))))));
    }
    Ok(Err(raw))
}

/// Counts the read bytes.
struct Counting<R> {
    inner: R,
    read: Arc<AtomicU64>,
}

impl<R: Read> Read for Counting<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let len = self.inner.read(buffer)?;
        // Relaxed: only shown.
        self.read.fetch_add(len as u64, Ordering::Relaxed);
        Ok(len)
    }
}

/// A plain file: skipping is a seek.
struct PlainFile {
    inner: BufReader<Counting<File>>,
    at: u64,
    len: u64,
}

impl Read for PlainFile {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let len = self.inner.read(buffer)?;
        self.at += len as u64;
        Ok(len)
    }
}

impl BufRead for PlainFile {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        self.inner.fill_buf()
    }

    fn consume(&mut self, amount: usize) {
        self.at += amount as u64;
        self.inner.consume(amount);
    }
}

impl Source for PlainFile {
    fn skip(&mut self, count: u64) -> io::Result<()> {
        let target = self.at.checked_add(count).filter(|&target| target <= self.len);
        let target = target.ok_or_else(crate::import::ends_early)?;
        // A seek below the buffer leaves the buffer stale, so it is emptied first.
        let buffered = self.inner.buffer().len();
        self.inner.consume(buffered);
        let raw = self.inner.get_mut();
        raw.inner.seek(SeekFrom::Start(target))?;
        raw.read.store(target, Ordering::Relaxed);
        self.at = target;
        Ok(())
    }
}

/// The frames of a Zstandard stream (RFC 8878), one after the other.
enum Frames<R: BufRead> {
    /// Between two frames.
    Between(R),
    /// Within a frame.
    Within(R, Box<FrameDecoder>),
    /// At the end, or after an error.
    Over,
}

impl<R: BufRead> Frames<R> {
    fn new(raw: R) -> Self {
        Frames::Between(raw)
    }

    /// Starts the frame that `raw` stands before, or ends.
    fn start(mut raw: R) -> io::Result<Self> {
        loop {
            if raw.fill_buf()?.is_empty() {
                return Ok(Frames::Over);
            }
            let mut decoder = FrameDecoder::new();
            match decoder.init(&mut raw) {
                Ok(()) => return Ok(Frames::Within(raw, Box::new(decoder))),
                Err(FrameDecoderError::ReadFrameHeaderError(SkipFrame { length, .. })) => {
                    Streamed(&mut raw).skip(u64::from(length))?;
                }
                Err(error) => return Err(bad_zstd(error)),
            }
        }
    }

    /// Decodes into `buffer` what there is, at least one byte unless the frame is over.
    fn decode(raw: &mut R, decoder: &mut FrameDecoder, buffer: &mut [u8]) -> io::Result<usize> {
        while decoder.can_collect() < buffer.len() && !decoder.is_finished() {
            let missing = buffer.len() - decoder.can_collect();
            decoder.decode_blocks(&mut *raw, BlockDecodingStrategy::UptoBytes(missing)).map_err(bad_zstd)?;
        }
        decoder.read(buffer)
    }

    /// Compares the checksum that a frame carries with that of its content.
    fn check_sum(decoder: &FrameDecoder) -> io::Result<()> {
        let expected = decoder.get_checksum_from_data();
        if expected.is_some() && expected != decoder.get_calculated_checksum() {
            return Err(bad_zstd("the checksum of a frame does not hold"));
        }
        Ok(())
    }
}

fn bad_zstd(error: impl std::fmt::Display) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, format!("not a sound Zstandard stream: {error}"))
}

impl<R: BufRead> Read for Frames<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            *self = match std::mem::replace(self, Frames::Over) {
                Frames::Over => return Ok(0),
                Frames::Between(raw) => Frames::start(raw)?,
                Frames::Within(mut raw, mut decoder) => match Self::decode(&mut raw, &mut decoder, buffer)? {
                    0 if !buffer.is_empty() => {
                        Self::check_sum(&decoder)?;
                        Frames::Between(raw)
                    }
                    len => {
                        *self = Frames::Within(raw, decoder);
                        return Ok(len);
                    }
                },
            }
        }
    }
}
