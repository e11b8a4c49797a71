//! Reads by io_uring: many under way at once with one system call, from a pool of rings that are set up when first
//! wanted.
//!
//! A ring only ever says that a read was done whole. What came back short or failed is left to the caller, who makes
//! that read again by itself and so gets the same error as without a ring.
//!
//! Invariants:
//! 1. [`Ring::read_all`] returns only when the kernel writes to no buffer of its any more, whatever failed.
//! 2. What [`Ring::begin`] began has memory and a descriptor that live until [`Ring::settle`] has returned; the ring
//!    does nothing else meanwhile.
#![expect(unsafe_code, reason = "the kernel writes to buffers behind the language's back")]

use std::fmt;
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

use io_uring::{IoUring, opcode, types};
use parking_lot::Mutex;
use rustix::io::Errno;
use terrane_base::{Error, Result};

use crate::batch::at_least;

/// Reads that one ring has under way at most: beyond this depth devices of one queue gain nothing.
const DEPTH: usize = 64;
/// Rings that wait for their next batch; more are closed.
const IDLE_MAX: usize = 16;
/// Bytes that a ring keeps for the next batch's pages; more are freed.
const SCRATCH_BYTES_MAX: usize = 1 << 20;

/// One read of a ring's batch.
#[derive(Debug)]
pub(crate) struct RingRead<'b> {
    pub(crate) fd: BorrowedFd<'b>,
    pub(crate) offset: u64,
    pub(crate) buf: &'b mut [u8],
    /// Whether `buf` was filled.
    pub(crate) is_done: bool,
}

/// One ring; used by one thread at a time.
pub(crate) struct Ring {
    ring: IoUring,
    /// Submitted reads that have not completed.
    under_way: usize,
    /// The kernel refused something: of no more use.
    is_broken: bool,
    /// Memory that a batch may borrow, so that not every one asks the system for new pages.
    scratch: Vec<u8>,
}

impl fmt::Debug for Ring {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Ring").field("under_way", &self.under_way).finish_non_exhaustive()
    }
}

impl Ring {
    fn new() -> io::Result<Ring> {
        if cfg!(miri) {
            return Err(io::ErrorKind::Unsupported.into());
        }
        let ring = IoUring::builder().dontfork().setup_clamp().build(DEPTH as u32)?;
        Ok(Ring { ring, under_way: 0, is_broken: false, scratch: Vec::new() })
    }

    /// At least `len` bytes of any content; to be given back by [`Ring::keep_scratch`].
    pub(crate) fn take_scratch(&mut self, len: usize) -> Vec<u8> {
        at_least(std::mem::take(&mut self.scratch), len)
    }

    pub(crate) fn keep_scratch(&mut self, scratch: Vec<u8>) {
        if scratch.len() <= SCRATCH_BYTES_MAX {
            self.scratch = scratch;
        }
    }

    /// Makes the reads and says of each whether it was done whole.
    ///
    /// # Errors
    /// What the kernel refused to begin; the ring is of no more use then.
    fn read_all(&mut self, reads: &mut [RingRead<'_>]) -> io::Result<()> {
        let mut begun = 0;
        while begun < reads.len() || self.under_way > 0 {
            while begun < reads.len() && self.under_way < DEPTH {
                self.push(begun, &mut reads[begun]);
                begun += 1;
            }
            // While there is more to begin, half the depth is kept under way.
            let wanted = if begun < reads.len() { self.under_way / 2 } else { self.under_way };
            if let Err(error) = self.ring.submit_and_wait(wanted) {
                let is_passing = [Errno::INTR, Errno::AGAIN, Errno::BUSY]
                    .iter()
                    .any(|errno| error.raw_os_error() == Some(errno.raw_os_error()));
                if !is_passing {
                    self.abandon(reads);
                    return Err(error);
                }
            }
            self.reap(reads);
        }
        Ok(())
    }

    /// Begins one read into memory that is not borrowed. True if it is under way.
    ///
    /// # Safety
    /// `len` bytes from `start` and `fd` stay as they are, used by nobody, until [`Ring::settle`] has returned.
    pub(crate) unsafe fn begin(
        &mut self,
        fd: BorrowedFd<'_>,
        offset: u64,
        start: *mut u8,
        len: usize,
    ) -> bool {
        debug_assert!(self.under_way == 0, "one read at a time without a borrow");
        let len = u32::try_from(len).unwrap_or(u32::MAX);
        let entry = opcode::Read::new(types::Fd(fd.as_raw_fd()), start, len).offset(offset).build();
        // SAFETY: by the caller's promise.
        let is_pushed = unsafe { self.ring.submission().push(&entry) }.is_ok();
        self.under_way = usize::from(is_pushed);
        // What was not taken now is taken when it is waited for.
        let _ = self.ring.submit();
        is_pushed
    }

    /// Waits for the read that was begun, if any; how many bytes it brought. `None` if it failed.
    pub(crate) fn settle(&mut self) -> Option<usize> {
        let mut brought = None;
        while self.under_way > 0 {
            for completed in self.ring.completion() {
                self.under_way -= 1;
                brought = usize::try_from(completed.result()).ok();
            }
            if self.under_way > 0 && self.ring.submit_and_wait(1).is_err() {
                if self.ring.submission().len() >= self.under_way {
                    // The kernel never began it, and never will: the ring is of no more use.
                    self.is_broken = true;
                    return None;
                }
                rustix::thread::sched_yield();
            }
        }
        brought
    }

    fn push(&mut self, index: usize, read: &mut RingRead<'_>) {
        read.is_done = false;
        let fd = types::Fd(read.fd.as_raw_fd());
        // A longer read comes back short, and is made again by itself.
        let len = u32::try_from(read.buf.len()).unwrap_or(u32::MAX);
        let entry = opcode::Read::new(fd, read.buf.as_mut_ptr(), len)
            .offset(read.offset)
            .build()
            .user_data(index as u64);
        // SAFETY: descriptor and buffer are borrowed by `reads`, and `read_all` keeps that borrow until the read has
        // completed or is known never to begin (invariant 1).
        let pushed = unsafe { self.ring.submission().push(&entry) };
        debug_assert!(pushed.is_ok(), "the queue has room for the depth");
        // No assertion that unwinds: the kernel may be writing to the buffers of others.
        self.under_way += usize::from(pushed.is_ok());
    }

    /// Takes what has completed.
    fn reap(&mut self, reads: &mut [RingRead<'_>]) {
        for completed in self.ring.completion() {
            self.under_way -= 1;
            if let Some(read) = reads.get_mut(completed.user_data() as usize) {
                let is_whole = |len: usize| len == read.buf.len() || terrane_base::planted!(TakeShortReads);
                read.is_done = usize::try_from(completed.result()).is_ok_and(is_whole);
            }
        }
    }

    /// Waits, without the ring's help, for what the kernel has begun. What it has not it never will: nobody submits
    /// to the ring again.
    #[cold]
    fn abandon(&mut self, reads: &mut [RingRead<'_>]) {
        self.is_broken = true;
        loop {
            self.reap(reads);
            let waiting = self.ring.submission().len();
            if self.under_way <= waiting {
                return;
            }
            // Any system call lets the kernel finish its part of a completion.
            rustix::thread::sched_yield();
        }
    }
}

/// Rings for whoever has a batch, and what is known about them.
#[derive(Debug, Default)]
pub(crate) struct Rings {
    idle: Mutex<Vec<Ring>>,
    /// Why there will never be one.
    refused: OnceLock<String>,
    reads: AtomicU64,
}

impl Rings {
    /// Makes the reads by `ring` and counts what was done.
    ///
    /// # Errors
    /// As [`Ring::read_all`].
    pub(crate) fn read_all(&self, ring: &mut Ring, reads: &mut [RingRead<'_>]) -> io::Result<()> {
        let result = ring.read_all(reads);
        self.reads.fetch_add(reads.iter().filter(|read| read.is_done).count() as u64, Ordering::Relaxed);
        result
    }

    /// Takes a ring back; one that is of no more use is closed.
    pub(crate) fn put(&self, ring: Ring) {
        debug_assert!(ring.is_broken || ring.under_way == 0, "a ring rests only when all it began has ended");
        let mut idle = self.idle.lock();
        if !ring.is_broken && idle.len() < IDLE_MAX {
            idle.push(ring);
        }
    }

    /// Whether there are rings to be had.
    ///
    /// # Errors
    /// `Invalid`, with the reason why not.
    pub(crate) fn check(&self) -> Result<()> {
        if let Some(ring) = self.take() {
            self.put(ring);
            return Ok(());
        }
        let reason = self.refused.get().map_or("no memory or no descriptors for it", String::as_str);
        Err(Error::invalid(format!("this system has no io_uring for this process: {reason}")))
    }

    /// Counts a read that a ring did alone.
    pub(crate) fn note_read(&self) {
        self.reads.fetch_add(1, Ordering::Relaxed);
    }

    /// Reads done by rings so far.
    pub(crate) fn reads(&self) -> u64 {
        self.reads.load(Ordering::Relaxed)
    }

    /// A ring, if there is one to be had.
    pub(crate) fn take(&self) -> Option<Ring> {
        if self.refused.get().is_some() {
            return None;
        }
        if let Some(ring) = self.idle.lock().pop() {
            return Some(ring);
        }
        let error = match Ring::new() {
            Ok(ring) => return Some(ring),
            Err(error) => error,
        };
        // Memory and descriptors may be had again later; a kernel does not change its mind.
        let is_passing = [Errno::NOMEM, Errno::MFILE, Errno::NFILE, Errno::AGAIN]
            .iter()
            .any(|errno| error.raw_os_error() == Some(errno.raw_os_error()));
        if !is_passing {
            self.refused.get_or_init(|| error.to_string());
        }
        None
    }
}
