//! The keys of an indexed batch over those of another iterator.
//!
//! A key of the batch is looked up when it is passed, so changes that are made meanwhile show once the
//! iterator is placed, and where it has not been. An iterator that has come to the end of the batch stays
//! there, as in RocksDB.

use std::ops::Bound;
use std::sync::{Arc, MutexGuard};

use terrane_base::overlay::{Base, Changes, Direction, Outcome};

use crate::batch::indexed::{Indexed, Own, SharedBatch};
use crate::callbacks::merge::MergeOperator;
use crate::callbacks::order::Order;
use crate::db::cf_variants::Target;
use crate::db::timestamps::versions::Motion;
use crate::ffi::failure::{Failure, Result};
use crate::iterator::source::Source;
use crate::iterator::{Iter, Shown};
use crate::options::read_write::ReadOptions;

/// An iterator under a batch.
pub(crate) struct Overlay(terrane_base::Overlay<BaseIter, FamilyChanges, Order>);

/// The iterator below the batch.
pub(crate) struct BaseIter(Box<Iter>);

/// The keys of a column family that a batch changes.
pub(crate) struct FamilyChanges {
    batch: SharedBatch,
    family: u32,
    /// How the keys of the family are ordered.
    order: Order,
    operator: Option<Arc<MergeOperator>>,
    bounds: Bounds,
    /// The key at the position.
    own: Option<Vec<u8>>,
}

/// Bounds of keys of the batch: from the first to before the second.
#[derive(Default)]
struct Bounds {
    lower: Option<Vec<u8>>,
    upper: Option<Vec<u8>>,
}

impl Iter {
    /// The keys of a batch over `base`, those of the batch within the bounds of the options; none without a
    /// handle where one must be.
    pub(crate) fn over(
        mut base: Box<Iter>,
        batch: SharedBatch,
        target: Target<'_>,
        options: Option<&ReadOptions>,
    ) -> Option<Iter> {
        let bounds =
            options.map(|options| Bounds { lower: options.lower.clone(), upper: options.upper.clone() });
        // Failure, prefix and pinned keys are those of the whole.
        let (mut failure, prefix, pinned) = (base.failure.clone(), base.prefix.take(), base.pinned.take());
        base.is_plain = base.statistics.is_none() && !base.is_tailing;
        base.show();
        let (order, slot) = (base.order.clone(), base.slot.clone());
        let family = target.id()?;
        let source = if matches!(base.source, Source::Versions(_)) {
            let what = "an iterator over a batch and a column family with timestamps";
            failure = Some(Failure::not_implemented(what));
            Source::Nothing
        } else {
            let (operator, bounds) = (slot.operator(), bounds.unwrap_or_default());
            let changes = FamilyChanges { batch, family, order: order.clone(), operator, bounds, own: None };
            let merged = terrane_base::Overlay::new(BaseIter(base), changes, order.clone());
            Source::Overlay(Box::new(Overlay(merged)))
        };
        Some(Iter {
            source,
            shown: Shown::nothing(),
            failure,
            is_plain: false,
            is_tailing: false,
            prefix,
            statistics: None,
            pinned,
            slot,
            order,
            _counted: None,
        })
    }
}

impl Overlay {
    pub(crate) fn row(&self) -> Option<(&[u8], &[u8])> {
        self.0.row()
    }

    pub(crate) fn refresh(&mut self) {
        self.0.reset();
        self.0.base_mut().0.refresh();
    }

    pub(crate) fn go(&mut self, motion: Motion<'_>) -> Result<()> {
        match motion {
            Motion::First => self.0.place(Direction::Forward, Bound::Unbounded),
            Motion::Last => self.0.place(Direction::Backward, Bound::Unbounded),
            Motion::Seek(key) => self.0.place(Direction::Forward, Bound::Included(key)),
            Motion::SeekBack(key) => self.0.place(Direction::Backward, Bound::Included(key)),
            Motion::Next => self.0.step(Direction::Forward),
            Motion::Prev => self.0.step(Direction::Backward),
        }
    }
}

impl Base for BaseIter {
    type Error = Failure;

    fn row(&self) -> Option<(&[u8], &[u8])> {
        self.0.row()
    }

    fn value(&self) -> Result<Option<Vec<u8>>> {
        Ok(self.0.row().map(|(_, value)| value.to_vec()))
    }

    fn take(&mut self) -> Option<(Vec<u8>, Vec<u8>)> {
        self.0.row().map(|(key, value)| (key.to_vec(), value.to_vec()))
    }

    /// The iterator keeps its row.
    fn put_back(&mut self, _: (Vec<u8>, Vec<u8>)) {}

    fn place(&mut self, direction: Direction, from: Bound<&[u8]>) -> Result<()> {
        self.0.moved(match (direction, from) {
            (Direction::Forward, Bound::Unbounded) => Motion::First,
            (Direction::Backward, Bound::Unbounded) => Motion::Last,
            (Direction::Forward, Bound::Included(key) | Bound::Excluded(key)) => Motion::Seek(key),
            (Direction::Backward, Bound::Included(key) | Bound::Excluded(key)) => Motion::SeekBack(key),
        })?;
        match (from, self.0.row()) {
            (Bound::Excluded(key), Some((at, _))) if at == key => self.step(direction),
            _ => Ok(()),
        }
    }

    fn step(&mut self, direction: Direction) -> Result<()> {
        self.0.moved(match direction {
            Direction::Forward => Motion::Next,
            Direction::Backward => Motion::Prev,
        })
    }
}

impl Changes for FamilyChanges {
    type Error = Failure;

    fn key(&self) -> Option<&[u8]> {
        self.own.as_deref()
    }

    fn place(&mut self, direction: Direction, from: Bound<&[u8]>) {
        self.own = match direction {
            Direction::Forward => self.after(from),
            Direction::Backward => self.before(from),
        };
    }

    fn step(&mut self, direction: Direction) {
        if let Some(key) = self.own.take() {
            self.place(direction, Bound::Excluded(&key));
        }
    }

    fn deleted_around(&self, key: &[u8]) -> Option<(Vec<u8>, Vec<u8>)> {
        self.batch().deleted_around(self.family, key)
    }

    fn apply(&self, below: impl FnOnce() -> Result<Option<Vec<u8>>>) -> Result<Outcome> {
        let Some(key) = &self.own else { return Ok(Outcome::Nothing) };
        // Without the batch: the operator is the caller's code.
        let own = self.batch().own(self.family, key);
        if own == Own::Nothing {
            return Ok(Outcome::Nothing);
        }
        let value = own.over(key, self.operator.as_deref(), below)?;
        Ok(value.map_or(Outcome::Deleted, Outcome::Value))
    }
}

impl FamilyChanges {
    /// The batch, in the order of the base.
    fn batch(&self) -> MutexGuard<'_, Indexed> {
        let mut batch = self.batch.get();
        batch.order_by(self.family, &self.order);
        batch
    }

    fn after(&self, from: Bound<&[u8]>) -> Option<Vec<u8>> {
        let lower = match (from, self.bounds.lower.as_deref()) {
            (Bound::Unbounded, Some(lower)) => Bound::Included(lower),
            (Bound::Included(key) | Bound::Excluded(key), Some(lower))
                if self.order.cmp(key, lower).is_lt() =>
            {
                Bound::Included(lower)
            }
            (from, _) => from,
        };
        let upper = self.bounds.upper.as_deref().map_or(Bound::Unbounded, Bound::Excluded);
        self.batch().first(self.family, lower, upper)
    }

    fn before(&self, from: Bound<&[u8]>) -> Option<Vec<u8>> {
        let upper = match (from, self.bounds.upper.as_deref()) {
            (Bound::Unbounded, Some(upper)) => Bound::Excluded(upper),
            (Bound::Included(key) | Bound::Excluded(key), Some(upper))
                if self.order.cmp(key, upper).is_ge() =>
            {
                Bound::Excluded(upper)
            }
            (from, _) => from,
        };
        let lower = self.bounds.lower.as_deref().map_or(Bound::Unbounded, Bound::Included);
        self.batch().last(self.family, lower, upper)
    }
}
