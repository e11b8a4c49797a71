//! Resources of the machine that this process used, as the kernel counts them.
#![expect(unsafe_code, reason = "the kernel fills in a structure of the C library")]

use std::time::Duration;

/// Counts of a process since it began, of all its threads, those that have ended too.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ProcessUsage {
    /// Time of processors in the program.
    pub user_time: Duration,
    /// Time of processors in the kernel.
    pub system_time: Duration,
    /// Page faults that the kernel served from memory.
    pub minor_faults: u64,
    /// Page faults that read from a device.
    pub major_faults: u64,
    /// Times that a thread gave its processor away, to wait.
    pub voluntary_switches: u64,
    /// Times that a thread lost its processor to another one.
    pub involuntary_switches: u64,
}

impl ProcessUsage {
    /// The counts of this process now; `None` where the kernel refuses them.
    #[must_use]
    pub fn now() -> Option<ProcessUsage> {
        let mut usage = std::mem::MaybeUninit::<libc::rusage>::zeroed();
        // SAFETY: the pointer is to a structure of the kind that the call fills in; all zeros are a value of
        // it.
        let usage = unsafe {
            let answer = libc::getrusage(libc::RUSAGE_SELF, usage.as_mut_ptr());
            (answer == 0).then(|| usage.assume_init())
        }?;
        Some(ProcessUsage {
            user_time: duration(usage.ru_utime),
            system_time: duration(usage.ru_stime),
            minor_faults: count(usage.ru_minflt),
            major_faults: count(usage.ru_majflt),
            voluntary_switches: count(usage.ru_nvcsw),
            involuntary_switches: count(usage.ru_nivcsw),
        })
    }
}

fn duration(time: libc::timeval) -> Duration {
    Duration::from_secs(count(time.tv_sec)) + Duration::from_micros(count(time.tv_usec))
}

/// The kernel counts upwards from 0.
fn count(number: libc::c_long) -> u64 {
    u64::try_from(number).unwrap_or(0)
}

#[cfg(all(test, not(miri)))]
mod tests {
    use super::*;

    #[test]
    fn counts_only_rise() {
        let before = ProcessUsage::now().expect("Linux has these counts");
        // Longer than what an allocator takes from memory that the process has already.
        let mut pages = vec![0_u8; 64 << 20];
        pages.iter_mut().step_by(4096).take(256).for_each(|byte| *byte = 1);
        let after = ProcessUsage::now().expect("Linux has these counts");
        assert!(before.minor_faults > 0 && pages[0] == 1);
        assert!(after.minor_faults + after.major_faults > before.minor_faults + before.major_faults);
        assert!(after.user_time + after.system_time >= before.user_time + before.system_time);
        assert!(after.voluntary_switches >= before.voluntary_switches);
        assert!(after.involuntary_switches >= before.involuntary_switches);
    }
}
