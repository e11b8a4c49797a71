//! Changes of transactions and indexed batches, drawn.

use std::time::Duration;

use terrane::Table;
use terrane_base::Rng;

use crate::model::Model;
use crate::op::{EXPIRING, KEYS_MAX, KEYS_OF_KIND, MARK, MERGED, ONCE, Value, key};
use crate::overlay::{Edit, Overlay, What};

/// The number of a key: of few, so that they meet, of all, or of a kind.
pub(crate) fn draw_key(numbers: &mut Rng) -> u64 {
    match numbers.below(8) {
        0..4 => numbers.below(12),
        4 => numbers.below(KEYS_MAX),
        5 => MERGED + numbers.below(KEYS_OF_KIND),
        6 => *numbers.pick(&[ONCE, MARK]) + numbers.below(KEYS_OF_KIND),
        _ => EXPIRING + numbers.below(KEYS_OF_KIND),
    }
}

/// A value that no other operation writes.
pub(crate) fn draw_value(numbers: &mut Rng) -> Value {
    let len = if numbers.one_in(40) { numbers.below(30_000) } else { numbers.skewed(200) };
    Value { len, stamp: numbers.next_u64() | 1 << 61 }
}

/// A change of a table whose rows are those of a moment, and over them an overlay.
pub(crate) fn draw_edit(
    numbers: &mut Rng,
    table: &Table,
    overlay: &Overlay,
    model: &Model,
    at: u64,
    clock: u64,
) -> Edit {
    let name = table.name().to_owned();
    let of = |kind: u64, numbers: &mut Rng| key(kind + numbers.below(KEYS_OF_KIND));
    let ordinary = |numbers: &mut Rng| match numbers.one_in(3) {
        true => numbers.below(KEYS_MAX),
        false => numbers.below(12),
    };
    let value = draw_value(numbers).bytes();
    let what = match numbers.below(14) {
        0..4 => What::Put { key: key(ordinary(numbers)), value },
        4 => What::Put { key: of(MERGED, numbers), value },
        5 => What::Delete { key: key(ordinary(numbers)) },
        6 => What::Delete { key: of(*numbers.pick(&[MERGED, EXPIRING]), numbers) },
        7 | 8 => What::Merge { key: of(MERGED, numbers), operand: value },
        9 | 10 => {
            let place = (name.clone(), of(ONCE, numbers));
            let is_there = overlay.get(model, &place, at).is_some();
            if is_there { What::SingleDelete { key: place.1 } } else { What::Put { key: place.1, value } }
        }
        11 => {
            let until = clock + 1 + numbers.skewed(4_000);
            let value = [&until.to_le_bytes()[..], &value].concat();
            What::PutUntil { key: of(EXPIRING, numbers), value, until: Duration::from_millis(until) }
        }
        _ => {
            let (from, to) = match numbers.below(3) {
                0 => (ordinary(numbers), ordinary(numbers)),
                1 => (draw_key(numbers), draw_key(numbers)),
                _ => (MERGED + numbers.below(3), MERGED + 2 + numbers.below(3)),
            };
            let (first, behind) = (key(from), key(to));
            match model.order(&name).keys_between(&first, &behind) {
                Some(keys) => What::DeleteRange { first, behind, keys },
                None => What::Put { key: key(from % KEYS_MAX), value },
            }
        }
    };
    Edit { table: name, what }
}

/// A change that tells one commit from every other, whatever else is in it: prints leave out keys that
/// expire.
pub(crate) fn mark(numbers: &mut Rng, table: &Table) -> Edit {
    let value = Value { len: 8, stamp: numbers.next_u64() | 1 << 61 }.bytes();
    Edit {
        table: table.name().to_owned(),
        what: What::Put { key: key(MARK + numbers.below(KEYS_OF_KIND)), value },
    }
}
