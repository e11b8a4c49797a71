//! Reads a trace: its header and the places of its blocks at once, its operations block by block.
//!
//! Every length is checked against the file before memory is taken, every block against its checksum before
//! it is decoded. An error names the file and the offset.

use std::collections::BTreeMap;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::error::{Error, Result};
use crate::generate::operation::Operation;

use super::block::State;
use super::{
    BLOCK_FIXED, CHECKSUM, END, HEADER_FIXED, Header, JSON_MAX, MAGIC, PAYLOAD_MAX, SEED_BLOCK, SEED_END,
    SEED_HEADER, VERSION,
};

/// An open trace.
#[derive(Debug)]
pub struct Reader {
    file: Arc<File>,
    header: Header,
    blocks: BTreeMap<u32, Arc<[Block]>>,
    total: u64,
}

#[derive(Debug)]
struct File {
    path: PathBuf,
    file: std::fs::File,
    bytes: u64,
}

/// Where a block lies.
#[derive(Clone, Copy, Debug)]
struct Block {
    offset: u64,
    length: usize,
}

impl Reader {
    /// Opens a trace and looks at all its blocks' heads.
    ///
    /// # Errors
    /// `Plan`: it cannot be read, is not a trace, is of another version, has no end, or is damaged.
    pub fn open(path: &Path) -> Result<Self> {
        let what = |error| Error::plan(format!("cannot open the trace {}: {error}", path.display()));
        #[expect(clippy::disallowed_methods, reason = "a trace is a file of the bench, not of a database")]
        let file = std::fs::File::open(path).map_err(what)?;
        let bytes = file.metadata().map_err(what)?.len();
        let file = File { path: path.to_owned(), file, bytes };
        let (header, first) = file.header()?;
        let (blocks, total) = file.blocks(first)?;
        let blocks = blocks.into_iter().map(|(thread, blocks)| (thread, blocks.into())).collect();
        Ok(Reader { file: Arc::new(file), header, blocks, total })
    }

    /// The header of the recording.
    #[must_use]
    pub fn header(&self) -> &Header {
        &self.header
    }

    /// How many operations there are, over all threads.
    #[must_use]
    pub fn operations(&self) -> u64 {
        self.total
    }

    /// The threads that were recorded, in order of their numbers.
    #[must_use]
    pub fn threads(&self) -> Vec<u32> {
        self.blocks.keys().copied().collect()
    }

    /// The operations of a thread; none for a thread that was not recorded.
    #[must_use]
    pub fn thread(&self, thread: u32) -> Operations {
        Operations {
            file: self.file.clone(),
            blocks: self.blocks.get(&thread).cloned().unwrap_or_default(),
            next_block: 0,
            longest: self.header.value_bytes_max,
            bytes: Vec::new(),
            at: 0,
            left: 0,
            state: State::default(),
        }
    }
}

impl File {
    fn wrong(&self, offset: u64, what: &str) -> Error {
        Error::plan(format!("the trace {} is damaged at offset {offset}: {what}", self.path.display()))
    }

    /// Fills `bytes` from `offset`.
    fn read(&self, offset: u64, bytes: &mut [u8]) -> Result<()> {
        let end = offset.checked_add(bytes.len() as u64);
        if end.is_none_or(|end| end > self.bytes) {
            return Err(self.wrong(offset, "the file ends here: was its recording interrupted?"));
        }
        let read = self.file.read_exact_at(bytes, offset);
        read.map_err(|error| Error::plan(format!("cannot read {} at {offset}: {error}", self.path.display())))
    }

    /// Reads a part and its checksum into `bytes`, and takes the checksum off.
    fn read_sealed(&self, offset: u64, length: usize, seed: u32, bytes: &mut Vec<u8>) -> Result<()> {
        bytes.clear();
        bytes.resize(length + CHECKSUM, 0);
        self.read(offset, bytes)?;
        let found = u32_at(bytes, length);
        bytes.truncate(length);
        let expected = crc32c::crc32c_append(seed, bytes);
        if found != expected {
            let what = format!("checksum {found:08x} instead of {expected:08x}");
            return Err(self.wrong(offset, &what));
        }
        Ok(())
    }

    /// The header, and the offset behind it.
    fn header(&self) -> Result<(Header, u64)> {
        let mut fixed = [0; HEADER_FIXED];
        let no_trace = || Error::plan(format!("{} is not a trace", self.path.display()));
        self.read(0, &mut fixed).map_err(|_| no_trace())?;
        if fixed[..8] != *MAGIC {
            return Err(no_trace());
        }
        let version = u16::from_le_bytes([fixed[8], fixed[9]]);
        if version != VERSION {
            let path = self.path.display();
            return Err(Error::plan(format!("the trace {path} is of version {version}, not {VERSION}")));
        }
        let length = u32_at(&fixed, 12) as usize;
        if length > JSON_MAX || fixed[10..12] != [0; 2] {
            return Err(self.wrong(10, "no header is like that"));
        }
        let mut bytes = Vec::new();
        self.read_sealed(0, HEADER_FIXED + length, SEED_HEADER, &mut bytes)?;
        let header = serde_json::from_slice(&bytes[HEADER_FIXED..])
            .map_err(|error| self.wrong(HEADER_FIXED as u64, &format!("its description: {error}")))?;
        Ok((header, (HEADER_FIXED + length + CHECKSUM) as u64))
    }

    /// The blocks of each thread, and the number of operations.
    fn blocks(&self, first: u64) -> Result<(BTreeMap<u32, Vec<Block>>, u64)> {
        let mut blocks: BTreeMap<u32, Vec<Block>> = BTreeMap::new();
        let (mut offset, mut total, mut count) = (first, 0u64, 0u32);
        loop {
            let mut fixed = [0; BLOCK_FIXED];
            self.read(offset, &mut fixed)?;
            let thread = u32_at(&fixed, 0);
            if thread == END {
                self.check_end(offset, total, count)?;
                return Ok((blocks, total));
            }
            let (operations, length) = (u32_at(&fixed, 4), u32_at(&fixed, 16) as usize);
            // An operation takes at least two bytes.
            if length > PAYLOAD_MAX || operations == 0 || operations as usize > length {
                return Err(self.wrong(offset, "no block is like that"));
            }
            blocks.entry(thread).or_default().push(Block { offset, length });
            total += u64::from(operations);
            count = count.wrapping_add(1);
            offset += (BLOCK_FIXED + length + CHECKSUM) as u64;
        }
    }

    fn check_end(&self, offset: u64, total: u64, count: u32) -> Result<()> {
        let mut bytes = Vec::new();
        self.read_sealed(offset, BLOCK_FIXED, SEED_END, &mut bytes)?;
        if u64_at(&bytes, 8) != total || u32_at(&bytes, 16) != count || u32_at(&bytes, 4) != 0 {
            return Err(self.wrong(offset, "its end counts other blocks than there are"));
        }
        if offset + (BLOCK_FIXED + CHECKSUM) as u64 != self.bytes {
            return Err(self.wrong(offset, "bytes follow its end"));
        }
        Ok(())
    }
}

/// The operations of one thread, in order.
#[derive(Debug)]
pub struct Operations {
    file: Arc<File>,
    blocks: Arc<[Block]>,
    next_block: usize,
    longest: usize,
    /// The block under way, and how far it is read.
    bytes: Vec<u8>,
    at: usize,
    left: u32,
    state: State,
}

impl Operations {
    /// Puts the next operation into `operation`; returns when it arrived, in microseconds from the start of
    /// the recorded run, or `None` at the end. The vector of a `MultiRead` is reused.
    ///
    /// # Errors
    /// `Plan`: a block is damaged or cannot be read. What follows is undefined.
    pub fn next(&mut self, operation: &mut Operation) -> Result<Option<u64>> {
        if self.left == 0 && !self.load()? {
            return Ok(None);
        }
        let mut rest = &self.bytes[self.at..];
        let Some(micros) = self.state.get(&mut rest, self.longest, operation) else {
            return Err(self.wrong("no operation is like that"));
        };
        self.at = self.bytes.len() - rest.len();
        self.left -= 1;
        if self.left == 0 && self.at != self.bytes.len() {
            return Err(self.wrong("bytes follow its last operation"));
        }
        Ok(Some(micros))
    }

    /// Loads the next block; `false` behind the last one.
    fn load(&mut self) -> Result<bool> {
        let Some(block) = self.blocks.get(self.next_block) else { return Ok(false) };
        let length = BLOCK_FIXED + block.length;
        self.file.read_sealed(block.offset, length, SEED_BLOCK, &mut self.bytes)?;
        self.left = u32_at(&self.bytes, 4);
        self.state = State::new(u64_at(&self.bytes, 8));
        self.at = BLOCK_FIXED;
        self.next_block += 1;
        // The file changed since it was opened: its lengths were checked then.
        if self.left == 0 || u32_at(&self.bytes, 16) as usize != block.length {
            return Err(self.wrong("it changed while it was read"));
        }
        Ok(true)
    }

    fn wrong(&self, what: &str) -> Error {
        let offset = self.next_block.checked_sub(1).map_or(0, |block| self.blocks[block].offset);
        self.file.wrong(offset + self.at as u64, what)
    }
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(bytes[at..at + 4].try_into().expect("4 bytes"))
}

fn u64_at(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(bytes[at..at + 8].try_into().expect("8 bytes"))
}
