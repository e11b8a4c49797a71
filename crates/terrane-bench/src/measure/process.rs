//! Resources that this process used between two moments: the probe that a child puts around each step.
//!
//! Sources: `getrusage` for CPU, faults and switches (of all threads, those that have ended as well, which
//! the per-thread files under `/proc` forget); `/proc/self/io` for bytes; `VmHWM` of `/proc/self/status` for
//! the peak of memory, after the mark was set to the memory that is resident now (`/proc/self/clear_refs`);
//! [`super::hardware`] for the processor's counters.

use std::time::Duration;

use terrane_device::ProcessUsage;

use super::hardware::Hardware;
use super::proc;
use crate::report::model::ProcessUse;

/// An open measurement of this process.
pub struct ProcessProbe {
    usage: Option<ProcessUsage>,
    io: Io,
    hardware: Hardware,
}

/// The lines of `/proc/self/io` that are reported.
#[derive(Clone, Copy, Default)]
struct Io {
    device_read: Option<u64>,
    device_written: Option<u64>,
    call_read: Option<u64>,
}

impl ProcessProbe {
    /// Starts to measure. Sets the process's peak-memory mark to the memory that is resident now; where the
    /// kernel refuses that, the peak will be that of the process's life so far.
    ///
    /// Costs some system calls per thread of the process: call it outside the measured time.
    #[must_use]
    pub fn start() -> ProcessProbe {
        proc::write("/proc/self/clear_refs", "5");
        let hardware = Hardware::open();
        ProcessProbe { usage: ProcessUsage::now(), io: Io::read(), hardware }
    }

    /// The differences since the start.
    #[must_use]
    pub fn finish(self) -> ProcessUse {
        let counts = self.hardware.read();
        let (before, after) = (self.usage, ProcessUsage::now());
        let io = Io::read();
        let since = |count: fn(&ProcessUsage) -> u64| {
            difference(before.as_ref().map(count), after.as_ref().map(count)).unwrap_or(0)
        };
        let cpu = |time: fn(&ProcessUsage) -> Duration| {
            let (Some(before), Some(after)) = (&before, &after) else { return 0.0 };
            time(after).saturating_sub(time(before)).as_secs_f64()
        };
        ProcessUse {
            user_seconds: cpu(|usage| usage.user_time),
            system_seconds: cpu(|usage| usage.system_time),
            device_bytes_read: difference(self.io.device_read, io.device_read),
            device_bytes_written: difference(self.io.device_written, io.device_written),
            call_bytes_read: difference(self.io.call_read, io.call_read),
            peak_memory_bytes: peak_memory(),
            voluntary_switches: since(|usage| usage.voluntary_switches),
            involuntary_switches: since(|usage| usage.involuntary_switches),
            major_faults: since(|usage| usage.major_faults),
            minor_faults: since(|usage| usage.minor_faults),
            instructions: counts.instructions,
            cycles: counts.cycles,
            cache_misses: counts.cache_misses,
            branch_misses: counts.branch_misses,
        }
    }
}

impl Io {
    fn read() -> Io {
        let Some(text) = proc::read("/proc/self/io") else { return Io::default() };
        Io {
            device_read: proc::number(&text, "read_bytes"),
            // Not less `cancelled_write_bytes`: the pages of a deleted file may have been written by an
            // earlier step.
            device_written: proc::number(&text, "write_bytes"),
            call_read: proc::number(&text, "rchar"),
        }
    }
}

fn difference(before: Option<u64>, after: Option<u64>) -> Option<u64> {
    Some(after?.saturating_sub(before?))
}

/// Highest resident memory since the mark was set back, in bytes; 0 where the kernel does not tell.
fn peak_memory() -> u64 {
    let status = proc::read("/proc/self/status");
    status.and_then(|text| proc::number(&text, "VmHWM")).unwrap_or(0) * 1024
}
