//! Where a walk stands: the nodes of its path, and the version at the end of it.

use crate::ahead::Coming;
use crate::node::Node;
use crate::record::RecordView;
use crate::version::VersionEntry;

/// A node on the path. `place` is 0 at the terminal and byte + 1 below a byte, so places are in key order.
pub(super) struct Frame<'t> {
    pub(super) node: Node<'t>,
    pub(super) place: usize,
    pub(super) coming: Coming<'t>,
}

#[derive(Clone, Copy)]
pub(crate) struct At<'t> {
    /// The newest version of the key when the walk came to it.
    pub(crate) head: &'t VersionEntry,
    pub(crate) entry: &'t VersionEntry,
    pub(crate) view: RecordView<'t>,
}
