//! Compaction: selects the extents to merge, and merges them.
//!
//! Layer 7: knows levels, extents and stores, not the engine: no thread, no schedule, no manifest. The engine
//! picks a job under its lock, takes the job's claim, has a [`Compactor`] run it anywhere, and publishes the
//! result in one edit.
//!
//! * [`shape`], [`limits`], [`score`], [`claims`], [`mod@pick`]: pure functions from the shape of a table to
//!   a [`JobSpec`] or nothing. [`adapt`]: from the use of a table to the goal for its shape.
//! * [`job`]: jobs and results as plain values. [`control`]: progress, pause, cancel, rate.
//! * [`compactor`]: runs jobs. [`versions`]: which versions of a key survive. [`fragments`]: range deletes
//!   that do not overlap. [`chunks`]: how much the inputs of a merge read at once.

pub mod adapt;
pub mod chunks;
pub mod claims;
pub mod compactor;
pub mod control;
pub mod fragments;
pub mod job;
pub mod limits;
mod merge;
pub mod pick;
pub mod range;
pub mod score;
pub mod shape;
pub mod versions;

pub use adapt::{Counted, Load, Mode};
pub use claims::{Claim, ClaimId, Claims};
pub use compactor::{Compactor, ExtentSource, LocalCompactor};
pub use control::{CancelCause, Elsewhere, JobControl, RateLimiter};
pub use job::{
    Grandparent, Input, JobKind, JobRequest, JobResult, JobSpec, Mended, OutputSettings, REPORT_BYTES_MAX,
    REQUEST_BYTES_MAX, Removed, Stays, ValueInput, Work, decode_report, encode_report,
};
pub use limits::Limits;
pub use pick::{
    Advance, Cursors, Fewer, FlushPlan, Heats, MemoryTier, RangeRequest, RangeStep, has_wide, is_scarce,
    pick, pick_due, pick_fewer_runs, pick_range, plan_dump, plan_flush, space_permille, value_debt_permille,
    value_space_permille, whole_space_permille,
};
pub use range::KeyRange;
pub use score::{Targets, debt_bytes};
pub use shape::{LevelView, RunShape, TableShape, ValuesView};
