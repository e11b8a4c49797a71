//! Reads by io_uring: many concurrent reads with one system call, on a pool of rings that are created on
//! first use.
//!
//! A ring only reports that a read completed as a whole. The caller makes a short or failed read again alone,
//! and so gets the same error as without a ring.
//!
//! Invariants:
//! 1. [`Ring::read_all`] returns only when the kernel no longer writes to any buffer of the batch, whatever
//!    failed.
//! 2. The memory and the descriptor of a read that [`Ring::begin`] started live until [`Ring::reap_pending`]
//!    has returned; the ring does nothing else meanwhile.
#![expect(unsafe_code, reason = "the kernel writes to buffers, and the compiler does not see it")]

use std::fmt;
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

use io_uring::{IoUring, opcode, types};
use parking_lot::Mutex;
use rustix::io::Errno;
use terrane_base::{Error, Result};

/// Most concurrent reads of one ring: devices with one queue gain nothing from more.
const DEPTH: usize = 64;
/// Most idle rings that are kept; more are closed.
const IDLE_MAX: usize = 16;

/// One read of a ring's batch.
#[derive(Debug)]
pub(crate) struct RingRead<'b> {
    pub(crate) fd: BorrowedFd<'b>,
    pub(crate) offset: u64,
    pub(crate) buf: &'b mut [u8],
    /// True if `buf` was filled.
    pub(crate) is_done: bool,
}

/// One ring; used by one thread at a time.
pub(crate) struct Ring {
    ring: IoUring,
    /// Submitted reads that have not completed.
    under_way: usize,
    /// The kernel refused an operation; the ring is not used again.
    is_broken: bool,
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
        Ok(Ring { ring, under_way: 0, is_broken: false })
    }

    /// Returns true if the kernel refused an operation: the ring must not be used again.
    pub(crate) fn is_broken(&self) -> bool {
        self.is_broken
    }

    /// Makes the reads and marks those that completed as a whole.
    ///
    /// # Errors
    /// The kernel's error at submission; the ring must not be used again.
    fn read_all(&mut self, reads: &mut [RingRead<'_>]) -> io::Result<()> {
        let mut begun = 0;
        while begun < reads.len() || self.under_way > 0 {
            while begun < reads.len() && self.under_way < DEPTH {
                self.push(begun, &mut reads[begun]);
                begun += 1;
            }
            // While more reads wait to be submitted, half of the depth is kept in flight.
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

    /// Starts one read into memory that is not borrowed. Returns true if it is in flight.
    ///
    /// # Safety
    /// `len` bytes from `start` and `fd` stay valid, and unused by others, until [`Ring::reap_pending`] has
    /// returned.
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
        // A submission that fails now is retried when the caller waits.
        let _ = self.ring.submit();
        is_pushed
    }

    /// Waits for the read that was started, if any; returns its number of bytes, or `None` if it failed.
    pub(crate) fn reap_pending(&mut self) -> Option<usize> {
        let mut brought = None;
        while self.under_way > 0 {
            for completed in self.ring.completion() {
                self.under_way -= 1;
                brought = usize::try_from(completed.result()).ok();
            }
            if self.under_way > 0 && self.ring.submit_and_wait(1).is_err() {
                if self.ring.submission().len() >= self.under_way {
                    // The kernel never started it and never will: the ring must not be used again.
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
        // A longer read returns short, and is made again alone.
        let len = u32::try_from(read.buf.len()).unwrap_or(u32::MAX);
        let entry = opcode::Read::new(fd, read.buf.as_mut_ptr(), len)
            .offset(read.offset)
            .build()
            .user_data(index as u64);
        // SAFETY: descriptor and buffer are borrowed by `reads`, and `read_all` keeps that borrow until the
        // read has completed or is known never to begin (invariant 1).
        let pushed = unsafe { self.ring.submission().push(&entry) };
        debug_assert!(pushed.is_ok(), "the queue has room for the depth");
        // No assertion that unwinds: the kernel may be writing to other buffers of the batch.
        self.under_way += usize::from(pushed.is_ok());
    }

    /// Takes completions.
    fn reap(&mut self, reads: &mut [RingRead<'_>]) {
        for completed in self.ring.completion() {
            self.under_way -= 1;
            if let Some(read) = reads.get_mut(completed.user_data() as usize) {
                let is_whole = |len: usize| len == read.buf.len() || terrane_base::planted!(TakeShortReads);
                read.is_done = usize::try_from(completed.result()).is_ok_and(is_whole);
            }
        }
    }

    /// Waits, without the ring's help, for the reads that the kernel has started. It will start no others,
    /// because no thread submits to the ring again.
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

/// The pool of rings, or the reason why no ring can be made.
#[derive(Debug, Default)]
pub(crate) struct Rings {
    idle: Mutex<Vec<Ring>>,
    /// The reason why no ring can ever be created.
    refused: OnceLock<String>,
    reads: AtomicU64,
}

impl Rings {
    /// Makes the reads by `ring` and counts those that completed.
    ///
    /// # Errors
    /// As [`Ring::read_all`].
    pub(crate) fn read_all(&self, ring: &mut Ring, reads: &mut [RingRead<'_>]) -> io::Result<()> {
        let result = ring.read_all(reads);
        self.reads.fetch_add(reads.iter().filter(|read| read.is_done).count() as u64, Ordering::Relaxed);
        result
    }

    /// Returns a ring to the pool; a broken one is closed.
    pub(crate) fn put(&self, ring: Ring) {
        debug_assert!(ring.is_broken || ring.under_way == 0, "a ring rests only when all it began has ended");
        let mut idle = self.idle.lock();
        if !ring.is_broken && idle.len() < IDLE_MAX {
            idle.push(ring);
        }
    }

    /// Succeeds if rings are available.
    ///
    /// # Errors
    /// `Invalid`, with the reason why they are not.
    pub(crate) fn check(&self) -> Result<()> {
        if let Some(ring) = self.take() {
            self.put(ring);
            return Ok(());
        }
        let reason = self.refused.get().map_or("no memory or no descriptors for it", String::as_str);
        Err(Error::invalid(format!("this system has no io_uring for this process: {reason}")))
    }

    /// Counts a single read that a ring completed.
    pub(crate) fn note_read(&self) {
        self.reads.fetch_add(1, Ordering::Relaxed);
    }

    /// Number of reads completed by rings.
    pub(crate) fn reads(&self) -> u64 {
        self.reads.load(Ordering::Relaxed)
    }

    /// A ring, if one is available.
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
        // A lack of memory or descriptors may pass; a kernel without io_uring stays without it.
        let is_passing = [Errno::NOMEM, Errno::MFILE, Errno::NFILE, Errno::AGAIN]
            .iter()
            .any(|errno| error.raw_os_error() == Some(errno.raw_os_error()));
        if !is_passing {
            self.refused.get_or_init(|| error.to_string());
        }
        None
    }
}
