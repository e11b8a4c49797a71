//! Priority and processor of threads.

/// Lowers the priority of the calling thread by `nice` steps (0 to 19): it gets less of the processor while
/// other threads want it. Returns whether the system allowed it; nothing depends on that.
pub fn lower_priority(nice: u8) -> bool {
    // On Linux this is the calling thread's own value, not that of its process.
    rustix::process::setpriority_process(None, i32::from(nice.min(19))).is_ok()
}

/// Binds the calling thread to one of the processors that it may use: the `number`-th, modulo their number.
/// Returns whether the system allowed it; nothing depends on that.
pub fn pin_to_processor(number: usize) -> bool {
    use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
    let Ok(allowed) = sched_getaffinity(None) else { return false };
    let usable: Vec<usize> = (0..CpuSet::MAX_CPU).filter(|processor| allowed.is_set(*processor)).collect();
    let Some(chosen) = (!usable.is_empty()).then(|| usable[number % usable.len()]) else { return false };
    let mut alone = CpuSet::new();
    alone.set(chosen);
    sched_setaffinity(None, &alone).is_ok()
}
