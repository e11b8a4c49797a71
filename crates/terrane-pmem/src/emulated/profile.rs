//! Durations of the steps on a device.

use terrane_device::pm::LINE_BYTES;

/// Times of steps beyond those of the memory of this machine. Times are nanoseconds; bandwidths are bytes per
/// microsecond, so megabytes per second.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Profile {
    /// A load, or a read of any length: the time to its first line.
    pub read_ns: u64,
    /// A store, or a write of any length, to the caches.
    pub store_ns: u64,
    /// A flush of a line that was stored to.
    pub flush_ns: u64,
    /// A fence.
    pub fence_ns: u64,
    /// Bytes that the device gives per microsecond to all threads together; 0 for no limit.
    pub read_bandwidth: u64,
    /// Bytes that the device takes per microsecond from all threads together; 0 for no limit.
    pub write_bandwidth: u64,
    /// Bytes that the device writes at once; a power of two, at least a line.
    pub unit_bytes: u64,
    /// Units in the buffer of the device, at least 1.
    pub buffered_units: u32,
}

/// Time of DRAM for a random load, the step of the presets that are multiples of it.
const DRAM_READ_NS: u64 = 100;
/// Time of DRAM for a flushed store or a fence.
const DRAM_WRITE_NS: u64 = 60;

impl Profile {
    /// The memory of this machine: nothing is added, everything is counted.
    pub const DRAM: Profile = Profile::dram_times(1);
    /// Twice the latency of DRAM.
    pub const DRAM_2X: Profile = Profile::dram_times(2);
    /// Eight times the latency of DRAM.
    pub const DRAM_8X: Profile = Profile::dram_times(8);
    /// Like one Optane DIMM of the first generation: random reads in about 300 ns against 100 of DRAM; writes
    /// that are accepted by the memory controller about as fast as those to DRAM; 6.6 GB/s of reads and 2.3
    /// GB/s of writes; units of 256 bytes, 16 KiB of them buffered (Yang, Kim, Hoseinzadeh, Izraelevitz,
    /// Swanson: An empirical guide to the behavior and use of scalable persistent memory, FAST 2020).
    pub const OPTANE_LIKE: Profile = Profile {
        read_ns: 200,
        store_ns: 0,
        flush_ns: 10,
        fence_ns: 30,
        read_bandwidth: 6600,
        write_bandwidth: 2300,
        unit_bytes: 256,
        buffered_units: 64,
    };

    /// `times` the latency of DRAM: the memory itself takes one of them.
    const fn dram_times(times: u64) -> Profile {
        Profile {
            read_ns: (times - 1) * DRAM_READ_NS,
            store_ns: 0,
            flush_ns: 0,
            fence_ns: (times - 1) * DRAM_WRITE_NS,
            read_bandwidth: 0,
            write_bandwidth: 0,
            unit_bytes: LINE_BYTES,
            buffered_units: 1,
        }
    }

    /// Nanoseconds that the device is busy with reading lines.
    pub(super) fn read_time(&self, lines: u64) -> u64 {
        (lines * LINE_BYTES * 1000).checked_div(self.read_bandwidth).unwrap_or(0)
    }

    /// Nanoseconds that the device is busy with writing lines.
    pub(super) fn write_time(&self, lines: u64) -> u64 {
        (lines * LINE_BYTES * 1000).checked_div(self.write_bandwidth).unwrap_or(0)
    }
}
