//! Clones: databases that read data objects of another one, their *original*, and copy none of them.
//!
//! ```text
//! ORIGINAL/gc/pins/NONCE                       pin: what the clone reads is not garbage
//! CLONE/originals/DATABASE-NONCE               reference: which objects the clone reads, and where they are
//! CLONE/originals/DATABASE-NONCE-unneeded      since when the clone names none of them
//! CLONE/originals/DATABASE-NONCE-released      the pin is deleted
//! ```
//!
//! * `object.rs`: bytes of a pin and of a reference (`docs/format/objects.md`). * `names.rs`: their names.
//! * `pins.rs`: what the pins of a database keep. * `originals.rs`: what a clone reads elsewhere.
//! * `release.rs`: a clone deletes its pin when it needs no object of the original.
//!
//! A clone takes numbers of files behind all that it reads, so a number tells where its objects are. Only
//! the clone deletes its pin, or a person whose clone is lost. Why none of this loses an object to the
//! collection of garbage: `docs/design/0040-elastic.md`.

mod names;
mod object;
mod originals;
mod pins;
mod release;

pub(crate) use names::{OriginalFile, OriginalNames, PinNames};
pub(crate) use object::{CloneObject, CloneTag};
pub(crate) use originals::Originals;
pub(crate) use pins::{PinnedFiles, keep, pin_objects, take_back};
pub(crate) use release::Releasing;

pub(crate) mod fuzzing {
    pub use super::object::fuzz::{clone_object, clone_object_seeds};
}
