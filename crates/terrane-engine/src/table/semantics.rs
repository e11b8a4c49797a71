//! The meaning of a table's records to a reader: the merge operator that folds its operands, the clock by
//! which they expire, and the prefixes that filters have of its keys.
//!
//! The moment of a read is that at which it meets its first record that expires: a read that meets none asks
//! no clock. A scan and a multi-get have one moment for all of their rows, a snapshot has none: values that
//! it sees expire like all others.

use std::cell::Cell;
use std::sync::Arc;
use terrane_base::sync::atomic::{AtomicU64, Ordering};

use terrane_base::env::Clock;
use terrane_base::key_order::Order;
use terrane_base::options::TimeToLive;
use terrane_base::prefix_extractor::Extractor;
use terrane_base::sync::RwLock;
use terrane_base::{Collation, Error, Kind, MergeOperator, Moment, Result, SeqKind, Stored, callback};

/// Steps in which the operands of a table with a time to live expire: those of one step can be folded.
const OPERAND_STEPS: u64 = 16;

/// The meaning of a table's records for its readers. Belongs to an open table.
#[derive(Debug)]
pub struct TableSemantics {
    meaning: Meaning,
    /// True if the operator checks values that are put.
    checks_values: bool,
    /// Changed while the table is open; asked once per scan and per job.
    extractor: RwLock<Option<Arc<Extractor>>>,
    clock: Arc<dyn Clock>,
    /// In milliseconds; 0 for ever.
    time_to_live: AtomicU64,
    skips: Skips,
}

/// Versions that one placement or step of a scan passes by without showing one.
#[derive(Debug)]
pub(crate) struct Skips {
    /// Name of the table.
    pub(crate) table: String,
    /// At most so many; `u64::MAX` is any number.
    pub(crate) limit: u64,
    /// The most that any did.
    pub(crate) most: AtomicU64,
}

impl Skips {
    /// Refuses to go on when so many were passed.
    ///
    /// # Errors
    /// `Full`, naming the option.
    #[inline]
    pub(crate) fn check(&self, skipped: u64) -> Result<()> {
        if skipped > self.limit { Err(self.too_many()) } else { Ok(()) }
    }

    #[cold]
    fn too_many(&self) -> Error {
        let Skips { table, limit, .. } = self;
        Error::new(
            Kind::Full,
            format!(
                "a scan of table {table:?} passed more than skipped_versions_max={limit} versions that are deleted, expired \
                 or hidden: compact the range, delete whole ranges by delete_range, or raise the option"
            ),
        )
    }

    /// Notes how many one placement or step has passed.
    #[inline]
    pub(crate) fn note(&self, skipped: u64) {
        // Relaxed: a measure. Most steps pass none, and write nothing that others read.
        if skipped > self.most.load(Ordering::Relaxed) {
            self.most.fetch_max(skipped, Ordering::Relaxed);
        }
    }
}

/// The functions of a table that never change.
#[derive(Debug, Default)]
pub(crate) struct Meaning {
    /// Folds operands; it is called with keys as the user knows them.
    pub(crate) operator: Option<Arc<dyn MergeOperator>>,
    /// Another order of keys than that of their bytes.
    pub(crate) order: Option<Arc<Order>>,
}

impl TableSemantics {
    /// The semantics of a table with these functions and this time to live.
    pub(crate) fn new(
        meaning: Meaning,
        extractor: Option<Arc<Extractor>>,
        clock: Arc<dyn Clock>,
        time_to_live: TimeToLive,
        skips: Skips,
    ) -> Arc<TableSemantics> {
        let time_to_live = AtomicU64::new(time_to_live.millis().unwrap_or(0));
        let checks_values = meaning.operator.as_ref().is_some_and(|operator| {
            // A panic here is the error of the first put whose value it is asked about.
            callback::call(|| operator.checks_values()).unwrap_or(true)
        });
        let extractor = RwLock::new(extractor);
        Arc::new(TableSemantics { meaning, checks_values, extractor, clock, time_to_live, skips })
    }

    /// Rows that its scans pass by.
    #[inline]
    pub(crate) fn skips(&self) -> &Skips {
        &self.skips
    }

    /// Folds the table's operands.
    #[must_use]
    pub fn operator(&self) -> Option<&Arc<dyn MergeOperator>> {
        self.meaning.operator.as_ref()
    }

    /// Checks values that are put; `None` if every value is accepted.
    #[inline]
    #[must_use]
    pub fn value_checker(&self) -> Option<&Arc<dyn MergeOperator>> {
        let operator = self.meaning.operator.as_ref();
        debug_assert!(!self.checks_values || operator.is_some(), "an operator checks values");
        operator.filter(|_| self.checks_values)
    }

    /// How the table's keys are encoded; `None` where their order is that of bytes. The engine knows encoded
    /// keys only: its caller encodes and decodes them.
    #[must_use]
    pub fn order(&self) -> Option<&Arc<Order>> {
        self.meaning.order.as_ref()
    }

    /// How the table's keys, as they are kept, compare.
    #[inline]
    #[must_use]
    pub fn collation(&self) -> &Collation {
        self.meaning.order.as_ref().map_or(Collation::bytes(), |order| order.collation())
    }

    /// Whose prefixes filters hold that are written from now on.
    pub(crate) fn extractor(&self) -> Option<Arc<Extractor>> {
        self.extractor.read().clone()
    }

    pub(crate) fn set_extractor(&self, extractor: Option<Arc<Extractor>>) {
        *self.extractor.write() = extractor;
    }

    /// The present moment.
    #[must_use]
    pub fn now(&self) -> Moment {
        Moment(self.clock.wall().as_millis() as u64)
    }

    /// The moment that lies `millis` ahead.
    #[must_use]
    pub fn ahead(&self, millis: u64) -> Moment {
        // One below the last, which means never.
        Moment(self.now().0.saturating_add(millis).min(Moment::NEVER.0 - 1))
    }

    /// When a put that is written now expires by the table's time to live.
    #[inline]
    #[must_use]
    pub fn expiry_of_put(&self) -> Moment {
        match self.time_to_live.load(Ordering::Relaxed) {
            0 => Moment::NEVER,
            millis => self.ahead(millis),
        }
    }

    /// When an operand that is written now expires by the table's time to live: up to a sixteenth of it later
    /// than a put, so that neighbours share a moment and can be folded.
    #[inline]
    #[must_use]
    pub fn expiry_of_operand(&self) -> Moment {
        match self.time_to_live.load(Ordering::Relaxed) {
            0 => Moment::NEVER,
            millis => {
                let step = (millis / OPERAND_STEPS).max(1);
                let moment = self.ahead(millis);
                let end =
                    moment.0.checked_next_multiple_of(step).unwrap_or(moment.0).min(Moment::NEVER.0 - 1);
                debug_assert!(end >= moment.0, "an operand lives as long as a put, or longer");
                Moment(end)
            }
        }
    }

    pub(crate) fn set_time_to_live(&self, time_to_live: TimeToLive) {
        self.time_to_live.store(time_to_live.millis().unwrap_or(0), Ordering::Relaxed);
    }
}

/// The moment of one read, found out when it is needed.
pub(crate) struct ReadClock<'s> {
    semantics: &'s TableSemantics,
    at: Cell<Option<Moment>>,
}

/// The meaning of a version for a reader.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Shown<'a> {
    /// A value.
    Value(&'a [u8]),
    /// A delete, or something expired.
    Nothing,
    /// More than this version must be looked at: an operand, a pointer to a value, or damaged.
    Chain,
}

impl<'s> ReadClock<'s> {
    pub(crate) fn new(semantics: &'s TableSemantics) -> Self {
        ReadClock { semantics, at: Cell::new(None) }
    }

    pub(crate) fn semantics(&self) -> &'s TableSemantics {
        self.semantics
    }

    /// The moment of the read.
    pub(crate) fn get(&self) -> Moment {
        let at = self.at.get().unwrap_or_else(|| self.semantics.now());
        self.at.set(Some(at));
        at
    }

    /// The meaning of a version, whose bytes are as stored.
    #[inline]
    pub(crate) fn shown<'a>(&self, seq_kind: SeqKind, bytes: &'a [u8]) -> Shown<'a> {
        if seq_kind.is_wrapped() {
            return self.shown_wrapped(seq_kind, bytes);
        }
        if seq_kind.is_delete() { Shown::Nothing } else { Shown::Value(bytes) }
    }

    fn shown_wrapped<'a>(&self, seq_kind: SeqKind, bytes: &'a [u8]) -> Shown<'a> {
        debug_assert!(seq_kind.is_wrapped(), "the bytes of {seq_kind:?} are the value itself");
        match Stored::of_entry(seq_kind, bytes) {
            Ok(stored) if stored.expires() && stored.is_expired(self.get()) => Shown::Nothing,
            Ok(stored) if !seq_kind.is_merge() && !seq_kind.is_pointer() => Shown::Value(stored.value),
            _ => Shown::Chain,
        }
    }

    /// Makes the bytes of a put from `start` on, as stored, the value that the reader sees; returns whether
    /// there is one.
    ///
    /// # Errors
    /// `Corrupt` if they are too short.
    pub(crate) fn unwrap(&self, seq_kind: SeqKind, value: &mut Vec<u8>, start: usize) -> Result<bool> {
        let bytes = &value[start..];
        let stored = Stored::of_entry(seq_kind, bytes)?;
        let prefix = bytes.len() - stored.value.len();
        debug_assert!(bytes.ends_with(stored.value), "the value is the end of the stored bytes");
        if stored.expires() && stored.is_expired(self.get()) {
            value.truncate(start);
            return Ok(false);
        }
        value.drain(start..start + prefix);
        Ok(true)
    }
}
