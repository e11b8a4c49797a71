//! Frees space on the device.

use terrane_base::sync::atomic::Ordering;

use terrane_base::Result;

use super::LocalStore;
use crate::data_file::slot_offset;
use crate::space::{Reclaim, Reserve, Run};

impl LocalStore {
    /// Frees up to `runs` runs beyond `reserve` on the device; returns the number of bytes.
    pub(super) fn reclaim_runs(&self, runs: usize, reserve: Reserve) -> Result<u64> {
        self.check_writable("give space back")?;
        let mut bytes = 0;
        for _ in 0..runs {
            // A thread that grows a file wants space, so this is not the time to free some.
            let Some(_layout) = self.layout.try_lock() else { break };
            let Some(plan) = self.accounting()?.space.plan_reclaim(reserve) else { break };
            let result = self.reclaim_one(&plan);
            self.space.lock().space.reclaimed(&plan, result.is_ok());
            bytes += result?;
        }
        Ok(bytes)
    }

    pub(super) fn cut_tails(&self) -> Result<u64> {
        let Some(_layout) = self.layout.try_lock() else { return Ok(0) };
        let files: Vec<_> = self.files.read().values().cloned().collect();
        let mut bytes = 0;
        for file in files {
            if !file.is_shared()? {
                bytes += file.cut_tail()?;
            }
        }
        Ok(bytes)
    }

    /// Frees one run on the device; returns the number of bytes. Requires: `layout` is held.
    fn reclaim_one(&self, reclaim: &Reclaim) -> Result<u64> {
        let (Reclaim::Punch(run) | Reclaim::Shrink(run)) = reclaim;
        let Run { file: number, slots } = run;
        debug_assert!(!slots.is_empty(), "work on no slot of file {number} frees nothing");
        let file = self.file(*number)?;
        match reclaim {
            Reclaim::Punch(_) => file.punch(slots.start, slots.end)?,
            Reclaim::Shrink(_) if slots.start > 0 => file.shrink(slots.start)?,
            Reclaim::Shrink(_) => {
                self.disk.remove(file.path())?;
                self.files.write().remove(number);
                self.dir_dirty.store(true, Ordering::Release);
            }
        }
        Ok(slot_offset(slots.len() as u32))
    }
}
