//! The parts of a point read that follow when memory has not ended it, a function for each target.
//!
//! The beginning of a read is a part of its caller, in another crate too ([`crate::Shared::get_to_here`]). A
//! generic function would be made again there, and differently; these are made once, in this crate.

use terrane_base::Result;
use terrane_table::Epoch;

use crate::read::Reader;
use crate::read::get::{PointRead, Rest};
use crate::read::value_target::{SliceTarget, ValueTarget};
use crate::table::read_view::ReadView;

/// A target with the parts of a read that its beginning calls.
pub(crate) trait ReadTarget: ValueTarget {
    /// The part of a read that is under an epoch, if memory has no version of the key.
    fn get_from_levels(
        &mut self,
        reader: Reader<'_>,
        read: &PointRead<'_>,
        epoch: &Epoch,
        view: &ReadView,
    ) -> Result<Rest>;

    /// The part of a read that is under no epoch: the tree is kept by its count instead.
    fn get_rest(&mut self, reader: Reader<'_>, read: &PointRead<'_>, rest: Rest) -> Result<bool>;
}

macro_rules! read_targets {
    ($($target:ty),*) => { $(
        impl ReadTarget for $target {
            #[inline(never)]
            fn get_from_levels(
                &mut self,
                reader: Reader<'_>,
                read: &PointRead<'_>,
                epoch: &Epoch,
                view: &ReadView,
            ) -> Result<Rest> {
                reader.get_from_levels(read, epoch, view, self)
            }

            #[inline(never)]
            fn get_rest(&mut self, reader: Reader<'_>, read: &PointRead<'_>, rest: Rest) -> Result<bool> {
                debug_assert!(!matches!(rest, Rest::Done(_)), "a read that is done has no rest");
                reader.get_rest(read, rest, self)
            }
        }
    )* };
}

read_targets!(Vec<u8>, SliceTarget<'_>);
