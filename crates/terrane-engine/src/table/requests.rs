//! Requests of callers for the compaction of key ranges of a table.
//!
//! Steps: 1. a caller enters a request, and waits until it is fulfilled; 2. the worker that decides serves
//! the first one, a job at a time; 3. each job carries the number of its request, and notes its progress
//! there; 4. the worker takes a request out once its range needs no job.
//!
//! Invariants: a request is judged under the lock, so by levels that are no older than it. Only the worker
//! that decides takes a fulfilled one out: its job may still run, and another thread may not know of it. A
//! request that its caller withdraws leaves at once; later notes of its job are dropped.

use std::collections::VecDeque;

use terrane_compaction::{JobSpec, RangeRequest, RangeStep};

use crate::table::Table;

/// Requests for compaction, served in order.
#[derive(Default)]
pub(super) struct Requests {
    waiting: VecDeque<Request>,
    next: u64,
}

impl Requests {
    /// Invariant: requests wait in the order of their numbers, each with a number that was given out.
    fn is_sound(&self) -> bool {
        let mut waiting = self.waiting.iter().map(|request| request.number);
        waiting.clone().is_sorted_by(|a, b| a < b) && waiting.all(|number| (1..=self.next).contains(&number))
    }
}

/// A key range that a caller wants compacted, and how far that is.
struct Request {
    /// Names the request.
    number: u64,
    /// The range, and the work that is wanted.
    range: RangeRequest,
}

/// The result of a look at the requests of a table.
#[derive(Default)]
pub(crate) struct Served {
    /// The next step of the first request that is not fulfilled, if it can be done now.
    pub(crate) job: Option<JobSpec>,
    /// True if that request asks for a shape of the tree.
    pub(crate) makes_shape: bool,
    /// True if a request turned out to be fulfilled.
    pub(crate) is_fulfilled: bool,
    /// True if a request still waits.
    pub(crate) is_waiting: bool,
}

impl Table {
    /// Asks for the compaction of a key range; returns the request's number.
    pub(crate) fn request_compaction(&self, range: RangeRequest) -> u64 {
        let mut requests = self.requests.lock();
        requests.next += 1;
        let number = requests.next;
        debug_assert!(
            requests.waiting.back().is_none_or(|last| last.number < number),
            "requests wait in order"
        );
        requests.waiting.push_back(Request { number, range });
        self.note_due(|due, id| {
            due.note_asked(id, true);
            due.note_levels(id);
        });
        number
    }

    /// Serves requests in order: `step` says what the first needs. With `only_shapes` only those that make a
    /// shape are served. What needs nothing more is passed by; with `takes_out` it is fulfilled.
    pub(crate) fn serve_requests(
        &self,
        only_shapes: bool,
        takes_out: bool,
        step: impl Fn(&RangeRequest) -> RangeStep,
    ) -> Served {
        let mut requests = self.requests.lock();
        let mut served = Served::default();
        let is_served = |request: &Request| !only_shapes || request.range.makes_shape();
        let mut from = 0;
        while let Some(at) = requests.waiting.iter().skip(from).position(is_served) {
            let at = from + at;
            let request = &requests.waiting[at];
            served.makes_shape = request.range.makes_shape();
            match step(&request.range) {
                RangeStep::Job(spec) => {
                    served.job = Some(JobSpec { request: Some(request.number), ..*spec });
                    if takes_out && terrane_base::planted!(EndRequestAtJob) {
                        requests.waiting.remove(at);
                    }
                    break;
                }
                RangeStep::Busy => break,
                RangeStep::Done => {
                    from = at;
                    if takes_out {
                        requests.waiting.remove(at);
                        served.is_fulfilled = true;
                    } else {
                        from += 1;
                    }
                    served.makes_shape = false;
                }
            }
        }
        debug_assert!(from <= requests.waiting.len(), "{from} of {} requests", requests.waiting.len());
        served.is_waiting = !requests.waiting.is_empty();
        if served.is_fulfilled {
            self.note_due(|due, id| due.note_asked(id, served.is_waiting));
        }
        served
    }

    /// Gives a request up, if it still waits.
    pub(crate) fn withdraw_request(&self, number: u64) {
        let mut requests = self.requests.lock();
        requests.waiting.retain(|request| request.number != number);
        debug_assert!(requests.is_sound(), "those that are left keep their order");
        self.note_due(|due, id| due.note_asked(id, !requests.waiting.is_empty()));
    }

    /// Notes the progress of a finished job in the request that it is a step of, if that still waits.
    pub(crate) fn advance_request(&self, spec: &JobSpec) {
        let mut requests = self.requests.lock();
        debug_assert!(requests.is_sound(), "a job finds the request that it is a step of by its number");
        let mut waiting = requests.waiting.iter_mut();
        if let Some(request) = waiting.find(|request| Some(request.number) == spec.request) {
            request.range.advance(spec);
        }
    }

    /// Returns true if the request with this number was served.
    pub(crate) fn is_compacted(&self, number: u64) -> bool {
        self.requests.lock().waiting.iter().all(|request| request.number != number)
    }
}
