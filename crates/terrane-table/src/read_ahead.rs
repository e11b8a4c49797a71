//! Read-ahead of scans, in few large reads.
//!
//! Nothing is read ahead for the first block after a placement, because most placements want one or two.
//! From the third block in one direction on, a block that is not cached is read together with the next ones:
//! a *window* in one read. The first window has as many blocks as the scan has passed, each next one is twice
//! as long, up to the limit of the options: so a scan that ends reads at most as much for nothing as it has
//! used. Where blocks are small, the first window begins with the second block, and is never less than
//! [`FIRST_BYTES`] before compression: a scan over small blocks waits hardly more often than one over large
//! blocks, and may have read so much more for nothing. A scan that has passed [`ESTABLISHED_BYTES`] is likely
//! to go on: while it uses one window the next is being read, in the next extent if this one ends.
//!
//! A placement that may not wait for its block ([`ReadAhead::begin_block`]) starts to read it in the same
//! way.
//!
//! Invariants:
//! 1. At most two windows are held, one in use and one being read, and memory for one more: [`WINDOWS`] times
//!    the longest one, which a share of the [budget](crate::cache::windows) of all scans covers.
//! 2. A window belongs to one extent and keeps it alive, so its bytes cannot be those of a later user of its
//!    slots.
//! 3. A failed read-ahead is not an error: the block is read alone, and that read reports the error.

use std::ops::Range;
use std::sync::Arc;

use terrane_base::counters::{add, count};
use terrane_device::{Buffer, PendingRead, ReadBytes};
use terrane_format::index::IndexRow;

use crate::cache::windows::WindowShare;
use crate::cache::{Cache, ObjectRef, Rows};
use crate::extent::Extent;
use crate::loader::{Loader, check_range};

/// Bytes that make a scan an established one, for which the next window is read in advance.
const ESTABLISHED_BYTES: u32 = 64 << 10;
/// Windows for which a scan may have memory at a time.
const WINDOWS: u64 = 3;
/// Steps in one direction that make a scan.
const STREAK: u32 = 2;
/// Least bytes of the first window before compression.
const FIRST_BYTES: u32 = 16 << 10;

/// Bytes of an extent that were read.
#[derive(Debug)]
struct Window {
    extent: Arc<Extent>,
    start: u32,
    bytes: ReadBytes,
}

/// Stored bytes of a block that were read ahead.
#[derive(Debug)]
pub(crate) struct Fetched<'a> {
    pub(crate) stored: &'a [u8],
    /// True if a scan reads them, not a placement.
    pub(crate) is_scan: bool,
}

/// Bytes of an extent that are being read.
#[derive(Debug)]
struct Begun {
    extent: Arc<Extent>,
    range: Range<u32>,
    read: Box<dyn PendingRead>,
}

/// See the [module](self).
#[derive(Debug, Default)]
pub(crate) struct ReadAhead {
    /// Largest window; 0 switches read-ahead off.
    bytes_max: u32,
    backward: bool,
    /// Steps from block to block in this direction.
    streak: u32,
    window_bytes: u32,
    window: Option<Window>,
    begun: Option<Begun>,
    /// The read of a placement's block, if one was started.
    sought: Option<Begun>,
    /// The extent in which the scan continues.
    following: Option<Arc<Extent>>,
    /// Buffer for the next read.
    memory: Buffer,
    share: WindowShare,
}

impl ReadAhead {
    pub(crate) fn new(bytes_max: u32) -> Self {
        ReadAhead { bytes_max, ..ReadAhead::default() }
    }

    /// Returns true if read-ahead is switched on.
    pub(crate) fn is_on(&self) -> bool {
        self.bytes_max > 0
    }

    /// Starts over for a new placement. A running read is not awaited, because the placement would have to
    /// wait for it.
    #[inline]
    pub(crate) fn restart(&mut self) {
        self.streak = 0;
        if self.window.is_some() || self.window_bytes > 0 {
            self.stop();
        }
        debug_assert!(
            self.window.is_none() && self.window_bytes == 0,
            "windows of the scan before would be read on"
        );
    }

    #[cold]
    fn stop(&mut self) {
        debug_assert!(self.streak == 0, "a scan that goes on keeps its window");
        self.window_bytes = 0;
        self.following = None;
        if let Some(window) = self.window.take() {
            self.memory = window.bytes.into_memory().into();
        }
    }

    /// Records that the scan moved to the next block in a direction.
    #[inline]
    pub(crate) fn step(&mut self, backward: bool) {
        debug_assert!(
            self.is_on() || self.window.is_none(),
            "a cursor that does not read ahead has no window"
        );
        if self.backward != backward {
            self.restart();
            self.backward = backward;
        }
        self.streak += 1;
    }

    /// Returns true if one more step in a direction makes, or goes on with, a scan that reads ahead.
    pub(crate) fn is_near_scan(&self, backward: bool) -> bool {
        self.is_on() && self.backward == backward && self.streak + 1 >= STREAK
    }

    /// Returns true if a window is in use.
    #[inline]
    pub(crate) fn has_window(&self) -> bool {
        self.window.is_some()
    }

    /// Sets the extent in which the scan continues.
    pub(crate) fn follow(&mut self, extent: Option<Arc<Extent>>) {
        self.following = extent;
    }

    /// Starts to read block `at`, which is not cached, for the next placement. Returns false if that is not
    /// possible.
    #[cold]
    pub(crate) fn begin_block(&mut self, extent: &Arc<Extent>, rows: &Rows, at: usize) -> bool {
        if !self.is_on() {
            return false;
        }
        debug_assert!(at < rows.len(), "the caller looked whether there is such a block");
        let row = rows.row(at);
        let range = row.offset..row.offset.saturating_add(row.stored_len);
        self.sought = self.begin_range(extent, range);
        self.sought.is_some()
    }

    /// The stored bytes of block `at`, which is not cached, if they are in a window or being read.
    pub(crate) fn fetch(
        &mut self,
        extent: &Arc<Extent>,
        cache: &Arc<Cache>,
        rows: &Rows,
        at: usize,
    ) -> Option<Fetched<'_>> {
        if self.streak == 0 && self.sought.is_none() {
            return None;
        }
        let row = rows.row(at);
        let is_scan = self.bytes_max > 0 && self.streak >= streak_of(row.raw_len);
        let block = row.offset..row.offset.checked_add(row.stored_len)?;
        if let Some(sought) = self.sought.take().filter(|sought| sought.holds(extent, &block)) {
            self.take_window(sought).then_some(())?;
        } else if !is_scan {
            return None;
        } else if !self.window.as_ref().is_some_and(|window| window.holds(extent, &block))
            && !self.advance(extent, cache, rows, at, &block)
        {
            // After any failure it must not be tried again with every block.
            self.restart();
            return None;
        }
        if is_scan && self.begun.is_none() && self.is_worth_more(&block) {
            self.begun = self.begin_next(extent, cache, rows);
        }
        let window = self.window.as_ref()?;
        debug_assert!(window.holds(extent, &block), "the window of another part");
        let from = (block.start - window.start) as usize;
        let stored = window.bytes.get(from..from + row.stored_len as usize)?;
        Some(Fetched { stored, is_scan })
    }

    /// Makes the window that holds `block` the current one, from a running read if that holds it. Returns
    /// false if that fails.
    fn advance(
        &mut self,
        extent: &Arc<Extent>,
        cache: &Arc<Cache>,
        rows: &Rows,
        at: usize,
        block: &Range<u32>,
    ) -> bool {
        debug_assert!(
            !self.window.as_ref().is_some_and(|window| window.holds(extent, block)),
            "the window holds the block, which would be read again"
        );
        if let Some(used) = self.window.take() {
            self.memory = used.bytes.into_memory().into();
        }
        let begun = self.begun.take().filter(|begun| begun.holds(extent, block));
        let Some(begun) = begun.or_else(|| self.begin(extent, cache, rows, at)) else { return false };
        self.take_window(begun)
    }

    /// Waits for a running read and makes it the current window. Returns false if it failed.
    fn take_window(&mut self, begun: Begun) -> bool {
        if let Some(used) = self.window.take() {
            self.memory = used.bytes.into_memory().into();
        }
        let Begun { extent, range, read } = begun;
        let Ok(bytes) = read.finish() else { return false };
        debug_assert!(
            bytes.len() == range.len(),
            "a read has the bytes that were asked for: {} of {range:?}",
            bytes.len()
        );
        self.window = Some(Window { extent, start: range.start, bytes });
        true
    }

    /// Returns true if the next window should be read now: never in a new scan, after half of a window in one
    /// that has just become an established one, then at once.
    fn is_worth_more(&self, block: &Range<u32>) -> bool {
        let Some(window) = &self.window else { return false };
        debug_assert!(window.start <= block.start && block.end <= window.end(), "the window holds the block");
        let passed = u64::from(self.streak) * u64::from(block.end - block.start);
        let established = u64::from(ESTABLISHED_BYTES.min(self.bytes_max));
        let left =
            if self.backward { block.start - window.start } else { window.end().saturating_sub(block.end) };
        let is_half_used = left as usize <= window.bytes.len() / 2;
        passed >= 2 * established || passed >= established && is_half_used
    }

    /// Starts to read the window after the current one, in this extent or in the next.
    fn begin_next(&mut self, extent: &Arc<Extent>, cache: &Arc<Cache>, rows: &Rows) -> Option<Begun> {
        debug_assert!(self.begun.is_none(), "a read that runs would be dropped, and its bytes read again");
        let window = self.window.as_ref()?;
        let next = if self.backward {
            (0..rows.len()).rev().find(|&at| rows.row(at).offset < window.start)
        } else {
            let end = window.end();
            (0..rows.len()).find(|&at| rows.row(at).offset >= end)
        };
        if let Some(at) = next {
            return self.begin(extent, cache, rows, at);
        }
        let following = self.following.take()?;
        // The scan needs this index block anyway, and reports the error there.
        let loader = Loader { extent: &following, cache: following.bind(cache), fill_cache: true };
        let index: ObjectRef = loader.index().ok()?;
        let rows = &index.index().rows;
        let last = rows.len().checked_sub(1)?;
        let at = if self.backward { last } else { 0 };
        self.begin(&following, cache, rows, at)
    }

    /// Starts to read a window that starts (going backward: ends) with block `at`, which exists. Without room
    /// for a longer window it is as long as the one before, or has one block only.
    fn begin(&mut self, extent: &Arc<Extent>, cache: &Arc<Cache>, rows: &Rows, at: usize) -> Option<Begun> {
        let longer = match self.window_bytes {
            0 => first_bytes(rows.row(at), self.streak),
            bytes => bytes.saturating_mul(2),
        };
        let longer = longer.min(self.bytes_max);
        self.window_bytes = match self.share.grow(cache, u64::from(longer) * WINDOWS) {
            true => longer,
            false => longer.min((self.share.bytes() / WINDOWS) as u32),
        };
        debug_assert!(
            u64::from(self.window_bytes) * WINDOWS <= self.share.bytes(),
            "windows beyond their share"
        );
        let range = range_around(rows, at, self.backward, self.window_bytes);
        self.begin_range(extent, range)
    }

    fn begin_range(&mut self, extent: &Arc<Extent>, range: Range<u32>) -> Option<Begun> {
        debug_assert!(range.start <= range.end, "the range of a read goes from its first block to its last");
        let len = range.end - range.start;
        check_range(&extent.meta, &*extent.store, range.start, len).ok()?;
        let len = len as usize;
        let memory = std::mem::take(&mut *self.memory);
        let read = extent.store.begin_read(extent.meta.id, range.start, len, memory).ok()?;
        count(|cells| {
            add(&cells.device_reads, 1);
            add(&cells.device_bytes_read, len as u64);
        });
        Some(Begun { extent: extent.clone(), range, read })
    }
}

impl Window {
    fn end(&self) -> u32 {
        self.start + self.bytes.len() as u32
    }

    fn holds(&self, extent: &Arc<Extent>, block: &Range<u32>) -> bool {
        Arc::ptr_eq(&self.extent, extent) && block.start >= self.start && block.end <= self.end()
    }
}

impl Begun {
    fn holds(&self, extent: &Arc<Extent>, block: &Range<u32>) -> bool {
        Arc::ptr_eq(&self.extent, extent) && block.start >= self.range.start && block.end <= self.range.end
    }
}

/// Blocks of this length before compression that make a first window of [`FIRST_BYTES`].
fn blocks_of_first(raw_len: u32) -> u32 {
    let raw_len = raw_len.max(1);
    (FIRST_BYTES + FIRST_BYTES.min(raw_len) / 2) / raw_len
}

/// Steps in one direction that make a scan over blocks of this length before compression.
fn streak_of(raw_len: u32) -> u32 {
    if blocks_of_first(raw_len) > 1 { STREAK - 1 } else { STREAK }
}

/// Stored bytes of the first window of a scan that has made `streak` steps to the block of this row.
fn first_bytes(row: IndexRow<'_>, streak: u32) -> u32 {
    match blocks_of_first(row.raw_len) {
        // The neighbours may be a little longer.
        blocks if blocks > streak => row.stored_len.saturating_mul(blocks).saturating_add(row.stored_len / 4),
        _ => row.stored_len.saturating_mul(streak),
    }
}

/// The blocks from `at` on (going backward: down) that fit into `bytes`, and `at` in any case.
fn range_around(rows: &Rows, at: usize, backward: bool, bytes: u32) -> Range<u32> {
    let end_of = |at: usize| rows.row(at).offset.saturating_add(rows.row(at).stored_len);
    let (mut start, mut end) = (rows.row(at).offset, end_of(at));
    if backward {
        for before in (0..at).rev() {
            if end.saturating_sub(rows.row(before).offset) > bytes {
                break;
            }
            start = rows.row(before).offset;
        }
    } else {
        for next in at + 1..rows.len() {
            if end_of(next).saturating_sub(start) > bytes {
                break;
            }
            end = end_of(next);
        }
    }
    start..end
}
