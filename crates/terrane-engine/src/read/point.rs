//! The entry of point reads: into a vector or into memory of the caller, watched and sampled or not.

use std::mem::MaybeUninit;

use terrane_base::{Result, sampling};

use crate::read::Reader;
use crate::read::get::ReadMode;
use crate::read::read_target::ReadTarget;
use crate::read::value_target::SliceTarget;
use crate::shared::Shared;
use crate::table::Table;

impl Shared {
    /// Appends the value of `key` to `value`; returns whether there is one.
    ///
    /// # Errors
    /// `Invalid` for a key beyond the limit, `Io` or `Corrupt` from the store.
    pub fn get(&self, table: &Table, key: &[u8], mode: ReadMode, value: &mut Vec<u8>) -> Result<bool> {
        Reader::of(self).get_for(table, key, mode, value)
    }

    /// Copies the value of `key` to the beginning of `places`, if it is not longer; returns how long it is,
    /// if there is one.
    ///
    /// # Errors
    /// As [`Shared::get`].
    #[inline(never)]
    pub fn get_to(
        &self,
        table: &Table,
        key: &[u8],
        mode: ReadMode,
        places: &mut [MaybeUninit<u8>],
    ) -> Result<Option<usize>> {
        let mut target = SliceTarget::new(places);
        let found = Reader::of(self).get_for(table, key, mode, &mut target)?;
        Ok(target.finish(found))
    }

    /// [`Shared::get_to`] of the present state as a part of the function that calls it, as far as memory: no
    /// registers are saved twice, and the answer passes through none of the stack. `filters` as in
    /// [`ReadMode`], which is made where it is used: a caller's would lie in memory for all ways of the read.
    ///
    /// # Errors
    /// As [`Shared::get`].
    #[inline(always)]
    pub fn get_to_here(
        &self,
        table: &Table,
        key: &[u8],
        filters: bool,
        places: &mut [MaybeUninit<u8>],
    ) -> Result<Option<usize>> {
        if self.slow_log.watches_reads() {
            return self.get_to(table, key, ReadMode::newest(filters), places);
        }
        let reader = Reader::of(self);
        if sampling::is_due() {
            return reader.get_to_sampled(table, key, ReadMode::newest(filters), places);
        }
        let mut target = SliceTarget::new(places);
        let found = reader.get_plainly(table, key, ReadMode::newest(filters), &mut target)?;
        Ok(target.finish(found))
    }
}

impl Reader<'_> {
    /// [`Shared::get_to`] of a read that is sampled.
    #[cold]
    #[inline(never)]
    fn get_to_sampled(
        self,
        table: &Table,
        key: &[u8],
        mode: ReadMode,
        places: &mut [MaybeUninit<u8>],
    ) -> Result<Option<usize>> {
        debug_assert!(!self.slow_log.watches_reads(), "`get_watched` samples a read that is watched");
        let mut target = SliceTarget::new(places);
        let found = self.get_sampled(table, key, mode, &mut target)?;
        Ok(target.finish(found))
    }

    /// A point read. All of it is one function for each target: it reaches thread-local variables once.
    #[inline(always)]
    fn get_for(
        self,
        table: &Table,
        key: &[u8],
        mode: ReadMode,
        target: &mut impl ReadTarget,
    ) -> Result<bool> {
        if self.slow_log.watches_reads() {
            return self.get_watched(table, key, mode, target);
        }
        if sampling::is_due() {
            return self.get_sampled(table, key, mode, target);
        }
        self.get_plainly(table, key, mode, target)
    }

    #[cold]
    #[inline(never)]
    fn get_watched(
        self,
        table: &Table,
        key: &[u8],
        mode: ReadMode,
        target: &mut impl ReadTarget,
    ) -> Result<bool> {
        debug_assert!(self.slow_log.watches_reads(), "a read that is not watched reads no clock");
        self.slow_log.read(&table.name, 1, || match sampling::is_due() {
            true => self.get_sampled(table, key, mode, target),
            false => self.get_plainly(table, key, mode, target),
        })
    }

    #[cold]
    #[inline(never)]
    fn get_sampled(
        self,
        table: &Table,
        key: &[u8],
        mode: ReadMode,
        target: &mut impl ReadTarget,
    ) -> Result<bool> {
        self.sampled(table, &[key], mode, || {
            let start = self.env.clock.now();
            let found = self.get_plainly(table, key, mode, target);
            let took = self.env.clock.now().saturating_sub(start);
            self.histograms.get_nanos.observe(took.as_nanos() as u64);
            found
        })
    }
}
