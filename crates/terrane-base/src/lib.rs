//! The vocabulary of all crates of Terrane.
//!
//! Layer 0: knows no file, no format beyond a single record, and no other crate of the workspace.
//!
//! * [`error`]: the one error type; its kinds say what the caller must do.
//! * [`key`]: size limits. [`sequence`]: commit order and record kinds. [`record`]: one encoded record.
//! * [`stored`]: the prefix of values that expire or are operands. [`merge_operator`]: how operands become a
//!   value; [`chain`]: the versions that do. [`prefix_extractor`]: prefixes in filters. [`key_order`]: key
//!   orders other than bytewise. [`ordered_map`]: maps in
//!   such an order. [`functions`]: all of these, as a program passes them; [`callback`]: how
//!   they are called.
//! * [`batch`]: the atomic unit of a commit. [`batch_index`]: what a batch does to each key; [`key_ranges`]:
//!   the ranges that it deletes; [`overlay`]: rows under the changes of a batch. [`cursor`]: the trait that
//!   every sorted source offers.
//! * [`options`]: every setting once. [`mod@env`]: clock, randomness and threads.
//! * [`epoch`]: when replaced objects are freed. [`counters`]: counters of a thread's reads. [`sampling`]:
//!   which operations are measured. [`metrics`]: metrics and histograms. [`timing`]: where the time of an
//!   operation goes.
//! * [`rng`]: the pseudo-random generator of tests and tools. [`mod@planted`]: bugs
//!   that are switched on to test the tests.
//! * [`mod@prefetch`]: prefetching memory.
//! * [`mod@watch`]: a gate that costs writers nothing while no transaction lives.
//! * [`sync`]: the seam between `std` and the schedule explorer. `thread_cells`: the state of each thread
//!   that reads and writes need.

pub mod assertion;
pub mod batch;
pub mod batch_index;
pub mod callback;
pub mod chain;
pub mod collation;
pub mod compaction_filter;
pub mod counters;
pub mod cursor;
pub mod env;
pub mod epoch;
pub mod error;
pub mod functions;
pub mod ids;
pub mod key;
pub mod key_order;
pub mod key_ranges;
pub mod merge_operator;
pub mod metrics;
pub mod options;
pub mod ordered_map;
pub mod overlay;
pub mod planted;
pub mod prefetch;
pub mod prefix_extractor;
pub mod record;
pub mod rng;
pub mod sampling;
pub mod sequence;
pub mod stored;
pub mod sync;
mod thread_cells;
pub mod timing;
pub mod value_pointer;
pub mod varint;
pub mod watch;

pub use batch::Batch;
pub use batch_index::BatchIndex;
pub use collation::{Collation, Comparator};
pub use compaction_filter::{CompactionContext, CompactionFilter, FilterDecision};
pub use counters::ReadCounters;
pub use cursor::{Cursor, Entry};
pub use error::{Error, Kind, Result, WaitsFor};
pub use functions::Functions;
pub use ids::{ExtentId, SegmentId, TableId, ValueTableId};
pub use key_order::{KeyOrder, KeyOrders};
pub use key_ranges::KeyRanges;
pub use merge_operator::{MergeOperator, MergeOperators};
pub use ordered_map::OrderedMap;
pub use overlay::Overlay;
pub use prefix_extractor::{PrefixExtractor, PrefixExtractors};
pub use rng::Rng;
pub use sequence::{RecordKind, SeqKind, SeqNo};
pub use stored::{Moment, Stored};
pub use value_pointer::{ValuePointer, ValuePosition};
