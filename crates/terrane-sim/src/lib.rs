//! A database in a simulated world: every run follows from a seed, every answer is compared with a model, every crash
//! is recovered from and judged.
//!
//! * [`model`]: what a database should answer. [`history`]: random operations on a database of the real world.
//! * `world`: clock, randomness and background work of a seed. `disk`, `fault`: a device, and what is done to it.
//! * `op`, [`script`], [`mod@generate`]: what is done, as values, as text, drawn from a seed.
//! * [`mod@run`] (with `act`, `read`, `through`, `during`, `lives`, `losses`, `judge`, `aside`, `backup`, `restore`, `checkpoint`, `follow`, `replica`, `heal`, `rest`): does it and compares, and [`mod@count`]s it by kind.
//! * `attempt` (with `waiting`): transactions; `indexed`: indexed batches; both draw their changes by `draft` and have them over the model in `overlay`.
//! * [`mod@shrink`]: makes a failing run short.
//! * `threads` (feature `schedule`): the engine with real threads under chosen schedules.
//! * [`metamorph`]: the same operations under many configurations. [`explore`] (with `onward`): every crash of small histories; [`prepared`]: of two-phase commits. [`campaign`]: many runs on several threads.
//!
//! The engine under it is the real one, whole. It starts no thread here: its background work is done in steps, by
//! whoever waits for it, in an order that the seed decides.

mod act;
mod alone;
mod aside;
mod attempt;
mod backup;
mod bulk;
pub mod campaign;
mod checkpoint;
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
mod judge;
mod lives;
mod losses;
pub mod metamorph;
pub mod model;
mod onward;
mod op;
mod options;
mod order;
mod outcome;
mod overlay;
mod panics;
pub mod prepared;
mod read;
mod replica;
mod rest;
mod restore;
pub mod run;
pub mod script;
pub mod shrink;
mod special;
mod stepped;
#[cfg(feature = "schedule")]
pub mod threads;
mod through;
mod trace;
mod waiting;
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
