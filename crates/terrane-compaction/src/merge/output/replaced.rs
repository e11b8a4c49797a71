//! The extents that an output extent replaces: those of the inputs with keys in its stretch.
//!
//! The stretches of a job's extents are apart and follow each other: each begins where the one before ends,
//! or behind an extent that was re-linked, and ends in front of the first key that is still to come. All that
//! the inputs have in a stretch has gone through the merge when its extent is written. What the inputs had
//! replaced themselves is replaced as well: their own bytes may be gone before those of the extents before.

use terrane_base::ExtentId;
use terrane_format::extent::{ExtentMeta, Replaced, mark_of, origin_of_end};
use terrane_storage::Store;

use super::Output;

/// The next key behind an extent that ends.
#[derive(Clone, Copy, Debug)]
pub(in crate::merge) enum Behind<'k> {
    /// This key and greater ones; all less ones were merged.
    Key(&'k [u8]),
    /// Nothing: the inputs have come to their end.
    Nothing,
    /// Keys behind its last entry.
    Unknown,
}

impl Output<'_> {
    /// Returns true if extents of the output say what they take the place of.
    pub(in crate::merge) fn tells_replaced(&self) -> bool {
        self.writer.has_origin()
    }

    /// Notes what an input had replaced, which was read with its index block.
    pub(in crate::merge) fn know_replaced(&mut self, input: ExtentId, replaced: Vec<Replaced>) {
        let before = self.known.insert(input, replaced);
        debug_assert!(
            before.is_none() || !self.spec.collation().is_bytes(),
            "extent {input} is opened twice"
        );
    }

    /// Has the current extent say what it takes the place of, up to what comes behind it.
    pub(super) fn note_replaced(&mut self, behind: Behind<'_>) {
        let collation = self.spec.collation();
        let to = match behind {
            Behind::Key(next) => next.to_vec(),
            Behind::Nothing => Vec::new(),
            Behind::Unknown if self.writer.has_entries() => collation.successor(self.writer.last_key()),
            Behind::Unknown => return,
        };
        if !to.is_empty() && collation.lt(&to, &self.covered_to) {
            // Only a comparator that breaks its promise leads here.
            return;
        }
        let from = std::mem::replace(&mut self.covered_to, to.clone());
        if !self.writer.has_origin() {
            return;
        }
        let inputs = self.spec.inputs.iter().flat_map(|input| &input.extents);
        let met: Vec<&ExtentMeta> = inputs
            .filter(|meta| {
                collation.le(&from, &meta.largest) && (to.is_empty() || collation.lt(&meta.smallest, &to))
            })
            .collect();
        debug_assert!(
            !collation.is_bytes() || met.iter().all(|meta| !self.relinked.contains(&meta.id)),
            "an extent that is re-linked is replaced by none"
        );
        let marks = met.iter().map(|meta| mark_of(meta)).collect();
        let mut replaced = vec![Replaced { from, to, marks }];
        for meta in met {
            // One that was opened said so then. One that range deletes hide was not opened.
            let before = self.known.entry(meta.id).or_insert_with(|| replaced_by(meta, self.store));
            let within = before.iter().filter_map(|before| before.within(&replaced[0], collation));
            replaced.extend(within.collect::<Vec<_>>());
        }
        self.writer.set_replaced(replaced);
    }
}

/// The extents that an extent had replaced, by a read of its own. An unreadable list matters to repair alone.
fn replaced_by(meta: &ExtentMeta, store: &dyn Store) -> Vec<Replaced> {
    let read = || {
        let start = meta.index.offset;
        let mut bytes = vec![0; meta.bytes.checked_sub(start)? as usize];
        store.read(meta.id, start, &mut bytes).ok()?;
        origin_of_end(&bytes, start)
    };
    let origin = if meta.has_origin() { read() } else { None };
    origin.map(|origin| origin.replaced).unwrap_or_default()
}
