//! The priority of threads.

/// Makes the calling thread nicer to all others by `nice` steps (0 to 19): it gets the processor less often while
/// others want it, and all of it while none does. Returns whether the system allowed it; nothing depends on that.
pub fn lower_priority(nice: u8) -> bool {
    // On Linux this is the calling thread's own value, not that of its process.
    rustix::process::setpriority_process(None, i32::from(nice.min(19))).is_ok()
}
