//! The keys of an indexed batch over those of another iterator.
//!
//! Both are at the first key from the position on, in the direction of the last step: the base as an
//! iterator, the batch as a key of its own. The smaller key (going back, the greater one) is next; of two
//! equal keys the batch's counts, with its operands folded onto the base's value. A key of the batch is
//! looked up when the iterator passes it, so later changes of the batch show after the next seek, and for
//! keys that the iterator has not reached; at the end of the batch it stays there, as in RocksDB.

use std::cmp::Ordering;
use std::ops::Bound;
use std::sync::{Arc, MutexGuard};

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
pub(crate) struct Overlay {
    pub(crate) base: Box<Iter>,
    pub(crate) batch: SharedBatch,
    pub(crate) family: u32,
    /// How the keys of both are ordered.
    pub(crate) order: Order,
    pub(crate) operator: Option<Arc<MergeOperator>>,
    pub(crate) bounds: Bounds,
    pub(crate) is_forward: bool,
    /// The key of the batch that is next, or that the position is at.
    pub(crate) own: Option<Vec<u8>>,
    pub(crate) at: At,
}

/// Bounds of keys of the batch: from the first to before the second.
#[derive(Default)]
pub(crate) struct Bounds {
    pub(crate) lower: Option<Vec<u8>>,
    pub(crate) upper: Option<Vec<u8>>,
}

/// Where the position is.
#[derive(Default)]
pub(crate) enum At {
    #[default]
    Nowhere,
    /// At the row of the base.
    Base,
    /// At a row of the batch.
    Own(Vec<u8>, Vec<u8>),
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
        // What is asked for beside rows is that of the whole.
        let (failure, prefix, pinned) = (base.failure.clone(), base.prefix.take(), base.pinned.take());
        base.is_plain = base.statistics.is_none() && !base.is_tailing;
        base.show();
        let order = base.order.clone();
        let slot = base.slot.clone();
        let overlay = Overlay {
            base,
            batch,
            family: target.id()?,
            order: order.clone(),
            operator: slot.operator(),
            bounds: bounds.unwrap_or_default(),
            is_forward: true,
            own: None,
            at: At::Nowhere,
        };
        if matches!(overlay.base.source, Source::Versions(_)) {
            let what = "an iterator over a batch and a column family with timestamps";
            let failure = Some(Failure::not_implemented(what));
            let source = Source::Nothing;
            return Some(Iter {
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
            });
        }
        let source = Source::Overlay(Box::new(overlay));
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
        match &self.at {
            At::Nowhere => None,
            At::Base => self.base.row(),
            At::Own(key, value) => Some((key, value)),
        }
    }

    pub(crate) fn refresh(&mut self) {
        self.at = At::Nowhere;
        self.own = None;
        self.base.refresh();
    }

    pub(crate) fn go(&mut self, motion: Motion<'_>) -> Result<()> {
        let placed = match motion {
            Motion::Next | Motion::Prev => self.pass(matches!(motion, Motion::Next)),
            _ => self.place(motion),
        };
        let settled = placed.and_then(|()| self.settle());
        if settled.is_err() {
            self.at = At::Nowhere;
        }
        settled
    }

    fn place(&mut self, motion: Motion<'_>) -> Result<()> {
        self.is_forward = matches!(motion, Motion::First | Motion::Seek(_));
        self.own = match motion {
            Motion::Seek(key) => self.own_after(Bound::Included(key)),
            Motion::SeekBack(key) => self.own_before(Bound::Included(key)),
            _ if self.is_forward => self.own_after(Bound::Unbounded),
            _ => self.own_before(Bound::Unbounded),
        };
        self.base.moved(motion)
    }

    /// Moves from the row at the position in a direction.
    fn pass(&mut self, forward: bool) -> Result<()> {
        let Some(key) = self.row().map(|(key, _)| key.to_vec()) else { return Ok(()) };
        let turns = forward != self.is_forward;
        self.is_forward = forward;
        if turns {
            self.base.moved(if forward { Motion::Seek(&key) } else { Motion::SeekBack(&key) })?;
        }
        if turns || matches!(self.at, At::Own(..)) {
            self.own = self.own_beyond(&key);
        }
        if self.base.row().is_some_and(|(at, _)| at == key) {
            self.step_base()?;
        }
        Ok(())
    }

    fn step_base(&mut self) -> Result<()> {
        self.base.moved(if self.is_forward { Motion::Next } else { Motion::Prev })
    }

    /// Finds the next row that shows, from where base and batch are.
    fn settle(&mut self) -> Result<()> {
        loop {
            self.at = At::Nowhere;
            let Some(order) = self.order() else { return Ok(()) };
            if order == Ordering::Less {
                if self.leaves_deleted()? {
                    continue;
                }
                self.at = At::Base;
                return Ok(());
            }
            let Some(key) = self.own.clone() else { return Ok(()) };
            let below = self.base.row().filter(|_| order == Ordering::Equal).map(|(_, value)| value.to_vec());
            // Without the batch: it is the user's operator that is called.
            let own = self.changes().own(self.family, &key);
            if own == Own::Nothing {
                // It was taken back since it was looked up.
                self.own = self.own_beyond(&key);
                continue;
            }
            if let Some(value) = own.over(&key, self.operator.as_deref(), || Ok(below))? {
                self.at = At::Own(key, value);
                return Ok(());
            }
            if order == Ordering::Equal {
                self.step_base()?;
            }
            self.own = self.own_beyond(&key);
        }
    }

    /// The batch, in the order of the base.
    fn changes(&self) -> MutexGuard<'_, Indexed> {
        let mut batch = self.batch.get();
        batch.order_by(self.family, &self.order);
        batch
    }

    /// Which is next: the base (less), the batch (greater), or both; none if both have come to their end.
    fn order(&self) -> Option<Ordering> {
        match (self.base.row(), &self.own) {
            (None, None) => None,
            (Some(_), None) => Some(Ordering::Less),
            (None, Some(_)) => Some(Ordering::Greater),
            (Some((base, _)), Some(own)) if self.is_forward => Some(self.order.cmp(base, own)),
            (Some((base, _)), Some(own)) => Some(self.order.cmp(own, base)),
        }
    }

    /// Moves the base past a range that the batch deletes; returns true if it was in one.
    fn leaves_deleted(&mut self) -> Result<bool> {
        let Some((key, _)) = self.base.row() else { return Ok(false) };
        let deleted = self.changes().deleted_around(self.family, key);
        let Some((start, end)) = deleted else { return Ok(false) };
        if self.is_forward {
            self.base.moved(Motion::Seek(&end))?;
        } else {
            self.base.moved(Motion::SeekBack(&start))?;
            if self.base.row().is_some_and(|(key, _)| key == start) {
                self.step_base()?;
            }
        }
        Ok(true)
    }

    /// The batch's key next to this one, in the direction.
    fn own_beyond(&self, key: &[u8]) -> Option<Vec<u8>> {
        match self.is_forward {
            true => self.own_after(Bound::Excluded(key)),
            false => self.own_before(Bound::Excluded(key)),
        }
    }

    fn own_after(&self, from: Bound<&[u8]>) -> Option<Vec<u8>> {
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
        self.changes().first(self.family, lower, upper)
    }

    fn own_before(&self, from: Bound<&[u8]>) -> Option<Vec<u8>> {
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
        self.changes().last(self.family, lower, upper)
    }
}
