//! A database in a simulated world: every run follows from a seed, every answer is compared with a model, and
//! the state after every crash is recovered and checked.
//!
//! * [`model`]: the correct answers. [`history`]: random operations on a database of the real world.
//! * `world`: clock, randomness and background work of a seed. `disk`, `fault`: a device and its faults.
//! * `op`, [`script`], [`mod@generate`]: operations as values, as text, and drawn from a seed.
//! * [`mod@run`] (with `act`, `read`, `via_cores`, `during`, `restarts`, `losses`, `oracle`, `observers`,
//!   `backup`, `restore`, `checkpoint`, `follow`, `replica`, `heal`, `rest`): runs operations, compares the
//!   answers, and [`mod@count`]s them by kind.
//! * `tickets`: writes that are acknowledged as durable only once their tickets are done.
//! * `transactions` (with `prepared_transactions`): transactions; `indexed`: indexed batches; both draw their
//!   changes by `draft` and apply them over the model in `overlay`.
//! * [`mod@shrink`]: makes a failing run short.
//! * `threads` (feature `schedule`): the engine with real threads under chosen schedules.
//! * [`metamorph`]: the same operations under many configurations. [`explore`] (with `continue_after_crash`):
//!   every crash of small histories; [`prepared`]: of two-phase commits. [`campaign`]: many runs on several
//!   threads.
//!
//! The engine below it is the complete real one. It starts no thread here: its background work is done in
//! steps on the threads that wait for it, in an order that the seed decides.

mod act;
mod alone;
mod backup;
mod bulk;
pub mod campaign;
mod checkpoint;
mod continue_after_crash;
pub mod count;
mod disk;
mod draft;
mod during;
pub mod explore;
mod fault;
mod follow;
pub mod generate;
mod heal;
pub mod history;
mod indexed;
mod large;
mod losses;
pub mod metamorph;
pub mod model;
mod observers;
mod op;
mod operand_ops;
mod options;
mod oracle;
mod order;
mod outcome;
mod overlay;
mod panics;
pub mod prepared;
mod prepared_transactions;
mod read;
mod replica;
mod rest;
mod restarts;
mod restore;
pub mod run;
pub mod script;
pub mod shrink;
mod stepped;
#[cfg(feature = "schedule")]
pub mod threads;
mod tickets;
mod trace;
mod transactions;
mod via_cores;
mod walker;
mod world;

pub use count::Counts;
pub use explore::{Explored, Explorer};
pub use generate::{Climate, generate, generate_in};
pub use history::{History, Settings};
pub use model::Model;
pub use outcome::Outcome;
pub use run::{Failure, run};
pub use script::Script;
pub use shrink::shrink;
pub use stepped::SteppedWorld;
pub use trace::Trace;
