//! What an extent of the output takes the place of: the extents of the inputs with keys in its stretch.
//!
//! The stretches of a job's extents are apart and follow each other: each begins where the one before ends,
//! or behind an extent that was re-linked, and ends in front of the first key that is still to come. All that
//! the inputs have in a stretch has gone through the merge when its extent is written. What the inputs had
//! replaced themselves is replaced as well: their own bytes may be gone before those of the extents before.

use terrane_format::extent::{ExtentMeta, Footer, Origin, Replaced, mark_of};
use terrane_storage::Store;

use super::Output;

/// What comes behind an extent that ends.
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
            let before = self.known.entry(meta.id).or_insert_with(|| replaced_by(meta, self.store));
            let within = before.iter().filter_map(|before| before.within(&replaced[0], collation));
            replaced.extend(within.collect::<Vec<_>>());
        }
        self.writer.set_replaced(replaced);
    }
}

/// What an extent replaced. It says so behind its other parts, and reading that is cheap beside merging it;
/// what cannot be read there matters to repair alone.
fn replaced_by(meta: &ExtentMeta, store: &dyn Store) -> Vec<Replaced> {
    let read = || {
        let parts = [
            Some(meta.index),
            Some(meta.filter),
            meta.range_deletes.as_ref().map(|section| section.part),
            meta.references.as_ref().map(|section| section.part),
        ];
        let start = parts.into_iter().flatten().map(|part| part.end()).max()? as u32;
        let mut bytes = vec![0; meta.bytes.checked_sub(start)? as usize];
        store.read(meta.id, start, &mut bytes).ok()?;
        let part = Footer::decode(&bytes).ok()?.origin;
        let at = part.offset.checked_sub(start)? as usize;
        let bytes = bytes.get(at..at + part.len as usize)?;
        part.check(bytes).and_then(|()| Origin::decode(bytes)).ok()
    };
    let origin = if meta.has_origin() { read() } else { None };
    origin.map(|origin| origin.replaced).unwrap_or_default()
}
