//! Operations of a workload, one by one, reproducible from a seed.
//!
//! A [`catalogue::Definition`] says what a workload is. A [`stream::Stream`] of it, one for each thread,
//! makes [`operation::Operation`]s on key numbers: the kind by the mix, the number by a
//! [`distribution::Chooser`] over the [`space::KeySpace`] that the threads share, the length by
//! [`sizes::Sizes`]. A worker turns numbers into bytes with [`keys::Keys`] and [`values::Values`].
//!
//! Everything is a function of the seed and the thread, except what depends on how threads interleave: which
//! thread gets which number to insert, and how many keys exist when a key is chosen.

pub mod catalogue;
pub mod distribution;
pub mod keys;
pub mod operation;
pub mod permutation;
pub mod random;
pub mod ranges;
pub mod sizes;
pub mod space;
pub mod stream;
pub mod values;
pub mod zipfian;
