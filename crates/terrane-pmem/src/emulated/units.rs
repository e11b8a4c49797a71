//! The buffer in which a device gathers lines of a unit before it writes the unit.

use std::collections::VecDeque;

/// Units that are not written yet, the one that was used longest ago first.
#[derive(Debug)]
pub(super) struct UnitBuffer {
    unit_bytes: u64,
    capacity: usize,
    units: VecDeque<u64>,
    /// Units that left the buffer.
    written: u64,
}

impl UnitBuffer {
    pub(super) fn new(unit_bytes: u64, capacity: u32) -> Self {
        assert!(
            unit_bytes.is_power_of_two() && capacity > 0,
            "a device writes units of a power of two bytes"
        );
        UnitBuffer { unit_bytes, capacity: capacity as usize, units: VecDeque::new(), written: 0 }
    }

    /// Takes a line at `offset`.
    pub(super) fn write(&mut self, offset: u64) {
        let unit = offset / self.unit_bytes;
        // Lines of a unit come together mostly: it is among the last ones.
        if let Some(at) = self.units.iter().rposition(|buffered| *buffered == unit) {
            self.units.remove(at);
        } else if self.units.len() == self.capacity {
            self.units.pop_front();
            self.written += 1;
        }
        self.units.push_back(unit);
        debug_assert!(self.units.len() <= self.capacity, "more units than the buffer has room for");
    }

    /// Units that were written or are to be written.
    pub(super) fn writes(&self) -> u64 {
        self.written + self.units.len() as u64
    }
}
