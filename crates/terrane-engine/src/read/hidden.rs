//! Range deletes over the key of a read: where a source has one, the read ends there.

use terrane_base::{SeqKind, SeqNo};
use terrane_table::{Epoch, Extent, Need};

/// Returns true if a source ends a read with nothing: its newest version, if any, is older than a range
/// delete over the key there.
#[inline]
pub(crate) fn is_hidden(found: Option<SeqKind>, hidden: Option<SeqNo>) -> bool {
    match (found, hidden) {
        (_, None) => false,
        (Some(found), Some(hidden)) => found.seq() < hidden && !terrane_base::planted!(ForgetRangeDelete),
        (None, Some(_)) => true,
    }
}

/// The range delete over the key of a read that an extent has, if that is known without its store.
#[inline(always)]
pub(crate) fn hidden_in(
    epoch: &Epoch,
    extent: &Extent,
    key: &[u8],
    seq: SeqNo,
) -> std::result::Result<Option<SeqNo>, Need> {
    if !extent.is_ranged() {
        return Ok(None);
    }
    let fragments = extent.cached_range_deletes(epoch).ok_or(Need::RangeDeletes)?;
    Ok(fragments.covering(key).and_then(|fragment| fragment.newest(seq)))
}
