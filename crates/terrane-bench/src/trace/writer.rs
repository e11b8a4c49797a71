//! Writes a trace while a run goes on.
//!
//! The file is behind a lock that is taken once a block, for one `write`. The first failure is kept, later
//! blocks are dropped, and [`Writer::finish`] tells: recording never disturbs a run.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use parking_lot::Mutex;

use crate::error::{Error, Result};
use crate::generate::operation::Operation;

use super::block::State;
use super::{
    BLOCK_FIXED, CHECKSUM, END, HEADER_FIXED, Header, JSON_MAX, MAGIC, MULTI_READ_MAX, PAYLOAD_MAX,
    SEED_BLOCK, SEED_END, SEED_HEADER, VERSION,
};

/// Bytes after which a block is handed over.
const BLOCK_BYTES: usize = 64 << 10;
/// An operation and its fields take at most so many bytes, a multi-read ten more for each key.
const OPERATION_MAX: usize = 31 + 10 * MULTI_READ_MAX;
const _: () = assert!(BLOCK_BYTES + OPERATION_MAX <= PAYLOAD_MAX);

/// A trace that is being written.
#[derive(Debug)]
pub struct Writer {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    path: PathBuf,
    file: Mutex<File>,
}

#[derive(Debug)]
struct File {
    /// `None` once the end is written.
    file: Option<std::fs::File>,
    total: u64,
    blocks: u32,
    failed: Option<Error>,
}

impl Writer {
    /// Creates the file, or empties it, and writes the header.
    ///
    /// # Errors
    /// `Io`: the file cannot be written.
    pub fn create(path: &Path, header: &Header) -> Result<Self> {
        let json = serde_json::to_vec(header).map_err(|error| Error::io("describe", path, error))?;
        if json.len() > JSON_MAX {
            return Err(Error::io("write", path, "its header is too long"));
        }
        let mut bytes = Vec::with_capacity(HEADER_FIXED + json.len() + CHECKSUM);
        bytes.extend_from_slice(MAGIC);
        bytes.extend_from_slice(&VERSION.to_le_bytes());
        bytes.extend_from_slice(&[0; 2]);
        bytes.extend_from_slice(&(json.len() as u32).to_le_bytes());
        bytes.extend_from_slice(&json);
        seal(&mut bytes, SEED_HEADER);
        #[expect(clippy::disallowed_methods, reason = "a trace is a file of the bench, not of a database")]
        let file = std::fs::File::create(path);
        let mut file = file.map_err(|error| Error::io("create", path, error))?;
        file.write_all(&bytes).map_err(|error| Error::io("write", path, error))?;
        let file = File { file: Some(file), total: 0, blocks: 0, failed: None };
        Ok(Writer { shared: Arc::new(Shared { path: path.to_owned(), file: Mutex::new(file) }) })
    }

    /// The recorder of a thread; `thread` is its number in the trace.
    ///
    /// # Panics
    /// `thread` is the greatest number there is, which marks the end of a trace.
    #[must_use]
    pub fn recorder(&self, thread: u32) -> Recorder {
        assert!(thread != END, "a thread's number is below {END}");
        Recorder {
            shared: self.shared.clone(),
            thread,
            operations: 0,
            state: State::default(),
            buffer: Vec::with_capacity(BLOCK_BYTES + 4096),
        }
    }

    /// Writes the end; returns how many operations were recorded. Recorders must have been dropped: what they
    /// still hold is lost.
    ///
    /// # Errors
    /// `Io`: the file could not be written, now or at any time before.
    pub fn finish(self) -> Result<u64> {
        let mut guard = self.shared.file.lock();
        let File { total, blocks, .. } = *guard;
        let mut bytes = Vec::with_capacity(BLOCK_FIXED + CHECKSUM);
        bytes.extend_from_slice(&END.to_le_bytes());
        bytes.extend_from_slice(&[0; 4]);
        bytes.extend_from_slice(&total.to_le_bytes());
        bytes.extend_from_slice(&blocks.to_le_bytes());
        seal(&mut bytes, SEED_END);
        if let Some(error) = guard.failed.take() {
            return Err(error);
        }
        let mut file = guard.file.take().expect("only finish takes the file, and it takes the writer, too");
        let written = file.write_all(&bytes).and_then(|()| file.sync_data());
        written.map_err(|error| Error::io("write", &self.shared.path, error))?;
        Ok(total)
    }
}

impl Shared {
    fn append(&self, bytes: &[u8], operations: u32) {
        let mut guard = self.file.lock();
        if guard.failed.is_some() {
            return;
        }
        let Some(file) = &mut guard.file else { return };
        if let Err(error) = file.write_all(bytes) {
            guard.failed = Some(Error::io("write", &self.path, error));
            return;
        }
        guard.total += u64::from(operations);
        guard.blocks += 1;
    }
}

/// Records the operations of one thread. What it holds is written when it is dropped.
#[derive(Debug)]
pub struct Recorder {
    shared: Arc<Shared>,
    thread: u32,
    operations: u32,
    state: State,
    /// The block under way, with its fixed part.
    buffer: Vec<u8>,
}

impl Recorder {
    /// Records an operation that arrived `micros` microseconds after the start of the run.
    ///
    /// A multi-read of more than 65536 keys is recorded as several; one of no keys not at all.
    pub fn record(&mut self, operation: &Operation, micros: u64) {
        match operation {
            Operation::MultiRead(keys) if keys.is_empty() => {}
            Operation::MultiRead(keys) if keys.len() > MULTI_READ_MAX => {
                for part in keys.chunks(MULTI_READ_MAX) {
                    self.put(&Operation::MultiRead(part.to_vec()), micros);
                }
            }
            operation => self.put(operation, micros),
        }
    }

    #[inline]
    fn put(&mut self, operation: &Operation, micros: u64) {
        if self.buffer.is_empty() {
            self.state = State::new(micros);
            self.buffer.extend_from_slice(&self.thread.to_le_bytes());
            self.buffer.extend_from_slice(&[0; 4]);
            self.buffer.extend_from_slice(&micros.to_le_bytes());
            self.buffer.extend_from_slice(&[0; 4]);
        }
        self.state.put(&mut self.buffer, operation, micros);
        self.operations += 1;
        if self.buffer.len() >= BLOCK_BYTES {
            self.hand_over();
        }
    }

    fn hand_over(&mut self) {
        if self.operations == 0 {
            return;
        }
        let length = (self.buffer.len() - BLOCK_FIXED) as u32;
        self.buffer[4..8].copy_from_slice(&self.operations.to_le_bytes());
        self.buffer[16..20].copy_from_slice(&length.to_le_bytes());
        seal(&mut self.buffer, SEED_BLOCK);
        self.shared.append(&self.buffer, self.operations);
        self.buffer.clear();
        self.operations = 0;
    }
}

impl Drop for Recorder {
    fn drop(&mut self) {
        self.hand_over();
    }
}

/// Appends the checksum of all bytes.
fn seal(bytes: &mut Vec<u8>, seed: u32) {
    let checksum = crc32c::crc32c_append(seed, bytes);
    bytes.extend_from_slice(&checksum.to_le_bytes());
}
