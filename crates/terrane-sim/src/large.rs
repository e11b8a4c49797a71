//! Batches that are larger than their share of the write memory: they take a turn, have everything flushed if
//! they need the room, and are flushed right behind.

use terrane_base::Rng;

use crate::model::Change;
use crate::op::{Edit, KEYS_MAX, Op, Value};
use crate::run::Runner;

/// Batches of so many bytes are larger than their share in most histories: a quarter of 4 MiB.
const LARGE_BYTES: usize = 1 << 20;
/// The bytes of one value of such a batch.
const VALUE_BYTES: u64 = 400_000;

/// A large batch, over all tables. Its stamps are far from those of other values.
pub(crate) fn draw(numbers: &mut Rng, tables: &[String], has_journal: bool) -> Op {
    let count = 3 + numbers.below(3);
    let edits = (0..count).map(|_| {
        let value = Value { len: VALUE_BYTES + numbers.below(1000), stamp: numbers.next_u64() | 3 << 62 };
        Edit { table: numbers.pick(tables).clone(), key: numbers.below(KEYS_MAX), value: Some(value) }
    });
    let edits = edits.collect();
    Op::Batch { edits, sync: has_journal && numbers.one_in(3) }
}

impl Runner {
    /// Has the background go on for a batch that is larger than its share: while it is paused no memory comes
    /// back.
    pub(crate) fn make_room_for(&self, changes: &[Change]) {
        let bytes = changes.iter().map(|(_, key, value)| key.len() + value.as_ref().map_or(0, Vec::len));
        if bytes.sum::<usize>() > LARGE_BYTES {
            self.did("batch larger than its share");
            self.set_paused(false);
        }
    }
}
