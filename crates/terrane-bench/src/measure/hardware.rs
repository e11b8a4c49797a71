//! The processor's counters for this whole process, in user mode, by `perf_event_open`.
//!
//! A counter watches one thread and the threads that it starts later. So that all threads are watched, each
//! thread that is alive at [`Hardware::open`] gets its own set of counters, and every set inherits. The list
//! of threads is taken before the first set is opened: a thread that starts afterwards is never counted
//! twice; it is missed only if its parent had no set yet, so open while the process is at rest.
//!
//! Counters that share the processor's registers by turns are scaled by the share of time in which they ran.
//! A machine without counters (most virtual ones) or a kernel that forbids them gives `None` for each: no run
//! fails for it.

use perf_event::events::Hardware as Event;
use perf_event::{Builder, Counter};

use super::proc;

/// The counted events, in the order of the fields of [`Counts`].
const EVENTS: [Event; 4] =
    [Event::INSTRUCTIONS, Event::CPU_CYCLES, Event::CACHE_MISSES, Event::BRANCH_MISSES];

/// Open counters of this process.
pub struct Hardware {
    /// For each event the counters of all threads; `None` if one thread could not be watched, since a part of
    /// the threads would be a wrong figure.
    counters: [Option<Vec<Counter>>; EVENTS.len()],
}

/// The counts since the counters were opened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Instructions retired.
    pub instructions: Option<u64>,
    /// Cycles.
    pub cycles: Option<u64>,
    /// Misses of the last level of cache.
    pub cache_misses: Option<u64>,
    /// Branches predicted wrong.
    pub branch_misses: Option<u64>,
}

impl Hardware {
    /// Opens the counters; they run from here on.
    #[must_use]
    pub fn open() -> Hardware {
        let threads = proc::numbers("/proc/self/task");
        Hardware { counters: EVENTS.map(|event| open_all(event, &threads).ok()) }
    }

    /// The counts since they were opened.
    #[must_use]
    pub fn read(self) -> Counts {
        let [instructions, cycles, cache_misses, branch_misses] =
            self.counters.map(|counters| counters.and_then(sum));
        Counts { instructions, cycles, cache_misses, branch_misses }
    }
}

/// Returns true if this process can count, or why not; for the description of the machine.
#[must_use]
pub fn availability() -> String {
    let threads = [rustix::thread::gettid().as_raw_nonzero().get().unsigned_abs()];
    let errors: Vec<String> = EVENTS
        .into_iter()
        .filter_map(|event| {
            open_all(event, &threads).err().map(|error| format!("{}: {}", name(event), why(&error)))
        })
        .collect();
    match errors.as_slice() {
        [] => "instructions, cycles, cache misses, branch misses".to_owned(),
        [first, rest @ ..] if rest.len() + 1 == EVENTS.len() => format!("none ({first})"),
        some => format!("partly ({})", some.join("; ")),
    }
}

/// The kernel's codes for "no such counter" read like a missing file.
fn why(error: &std::io::Error) -> String {
    let none = [rustix::io::Errno::NOENT, rustix::io::Errno::OPNOTSUPP].map(|code| Some(code.raw_os_error()));
    match error.kind() {
        _ if none.contains(&error.raw_os_error()) => "this machine has no such counter".to_owned(),
        std::io::ErrorKind::PermissionDenied => "forbidden by kernel.perf_event_paranoid".to_owned(),
        _ => error.to_string(),
    }
}

fn name(event: Event) -> &'static str {
    match event {
        Event::INSTRUCTIONS => "instructions",
        Event::CPU_CYCLES => "cycles",
        Event::CACHE_MISSES => "cache misses",
        _ => "branch misses",
    }
}

/// One counter per thread. A thread that has ended since it was listed is left out: it counts nothing more.
fn open_all(event: Event, threads: &[u32]) -> std::io::Result<Vec<Counter>> {
    let mut counters = Vec::with_capacity(threads.len());
    for &thread in threads {
        match open(event, thread) {
            Ok(counter) => counters.push(counter),
            Err(error) if error.raw_os_error() == Some(rustix::io::Errno::SRCH.raw_os_error()) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(counters)
}

fn open(event: Event, thread: u32) -> std::io::Result<Counter> {
    let thread = i32::try_from(thread).map_err(|_| std::io::ErrorKind::InvalidInput)?;
    let mut builder = Builder::new().kind(event).observe_pid(thread);
    builder.inherit(true).exclude_kernel(true).exclude_hv(true).enabled(true);
    builder.build()
}

/// The sum over threads; `None` if one of them ran but was never given a register.
fn sum(counters: Vec<Counter>) -> Option<u64> {
    let mut total = 0_u64;
    for mut counter in counters {
        let read = counter.read_count_and_time().ok()?;
        total += scaled(read.count, read.time_enabled, read.time_running)?;
    }
    Some(total)
}

/// A count over the time in which it was wanted, from one over the time in which it ran; `None` if it never
/// ran, or is too large.
#[must_use]
pub fn scaled(count: u64, enabled: u64, running: u64) -> Option<u64> {
    match running {
        _ if running == enabled => Some(count),
        0 => None,
        _ => u64::try_from(u128::from(count) * u128::from(enabled) / u128::from(running)).ok(),
    }
}
