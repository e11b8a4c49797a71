//! How a merge treats versions that depend on others: operands, single deletes, expired entries.
//!
//! * An expired entry is treated as a delete.
//! * The operands of a key within a stripe are collected until a value, a delete, the next stripe or the next
//!   key. They are folded onto the value or the delete, or onto nothing if no deeper level may hold the key;
//!   else with each other. If the operator fails all of them stay unchanged.
//! * A single delete is dropped together with the put that follows it in the same stripe. Without such a put
//!   it stays, unless nothing is deeper. It also stays below a newer put, because a newer single delete may
//!   remove that put, and then the older one must hide the deeper versions.
//!
//! # Records in two places
//! While a flush continues range by range, memory still has entries that level 1 has already; after a crash
//! the same entries are replayed. So an operand or a put may have a second copy in a deeper level, possibly
//! folded. Folding it with a newer operand would make two operands that overlap; dropping it with a single
//! delete would make the deeper copy visible. Neither is done unless its number is greater than any that may
//! lie deeper ([`JobSpec::below_seq_max`](crate::JobSpec::below_seq_max)). Onto a value, or onto nothing in
//! the last level, everything may be folded, because readers stop there.
//!
//! # Expiry
//! Operands are folded only if the newer one expires no later than the older one: when it expires, it hides
//! the older one. So the result is the same at any time.

use std::sync::Arc;

use terrane_base::chain::{Base, Chain, Operand};
use terrane_base::stored::put_prefix;
use terrane_base::{Entry, MergeOperator, Moment, RecordKind, Result, SeqKind, SeqNo, Stored};

use super::sink::Sink;
use crate::control::JobControl;
use crate::versions::Verdict;

/// Versions that wait for older versions of their key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Waiting {
    Nothing,
    /// The operands in the chain.
    Operands,
    /// A single delete.
    Single(SeqKind),
}

/// See the [module](self).
pub(super) struct Folding {
    operator: Option<Arc<dyn MergeOperator>>,
    now: Moment,
    /// A version with a greater number has no second copy in a deeper level.
    below_seq_max: SeqNo,
    pub(super) waiting: Waiting,
    /// Start (exclusive) of the stripe of the waiting versions.
    stripe_start: SeqNo,
    chain: Chain,
    value: Vec<u8>,
}

impl Folding {
    pub(super) fn new(control: &JobControl, below_seq_max: SeqNo) -> Self {
        Folding {
            operator: control.operator().cloned(),
            now: control.moment(),
            below_seq_max,
            waiting: Waiting::Nothing,
            stripe_start: SeqNo(0),
            chain: Chain::new(),
            value: Vec::new(),
        }
    }

    /// Returns true if `newer` and the adjacent `older` may become one operand.
    fn may_join(&self, newer: &Operand, older: &Operand) -> bool {
        newer.expires_at <= older.expires_at && older.first > self.below_seq_max
    }
}

/// How a group of operands is folded.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Fold {
    /// With each other.
    Partly,
    /// To a value.
    Fully,
}

impl Sink<'_> {
    /// [`Sink::take`] for versions other than puts and deletes, and for versions after them.
    pub(super) fn take_dependent(&mut self, entry: Entry<'_>) -> Result<()> {
        let kind = entry.seq_kind;
        let entry = self.as_of_now(entry)?;
        if kind != entry.seq_kind && terrane_base::planted!(DropExpired) {
            return Ok(());
        }
        let seq = entry.seq_kind.seq();
        let goes_on = seq > self.folding.stripe_start;
        match self.folding.waiting {
            Waiting::Operands if goes_on && entry.seq_kind.is_pointer() => {
                let mut value = entry.value.to_vec();
                let seq_kind = match terrane_base::planted!(FoldOntoPointer) {
                    true => entry.seq_kind.inlined(),
                    false => self.resolved(entry, &mut value)?,
                };
                let folding = &mut self.folding;
                let goes_on = folding.chain.take(seq_kind, &value, folding.now)?;
                debug_assert!(!goes_on, "a value ends the chain");
                return self.emit_operands(false);
            }
            Waiting::Operands if goes_on => {
                let folding = &mut self.folding;
                if !folding.chain.take(entry.seq_kind, entry.value, folding.now)? {
                    self.emit_operands(false)?;
                }
                return Ok(());
            }
            // The same version, from an older source.
            Waiting::Single(delete) if delete.seq() == seq => return Ok(()),
            Waiting::Single(delete) if goes_on => {
                self.folding.waiting = Waiting::Nothing;
                let is_put = !entry.seq_kind.is_merge() && !entry.seq_kind.is_delete();
                let is_alone =
                    seq > self.folding.below_seq_max || terrane_base::planted!(SingleDeleteTooDeep);
                return if is_put && is_alone { Ok(()) } else { self.keep_single(delete) };
            }
            Waiting::Operands => self.emit_operands(false)?,
            Waiting::Single(delete) => {
                self.folding.waiting = Waiting::Nothing;
                self.keep_single(delete)?;
            }
            Waiting::Nothing => {}
        }
        self.decide(entry)
    }

    /// The entry, or a delete if it has expired.
    fn as_of_now<'e>(&mut self, entry: Entry<'e>) -> Result<Entry<'e>> {
        if !entry.seq_kind.is_wrapped()
            || !Stored::of_entry(entry.seq_kind, entry.value)?.is_expired(self.folding.now)
        {
            return Ok(entry);
        }
        self.work.entries_expired += 1;
        Ok(Entry { seq_kind: entry.seq_kind.with_kind(RecordKind::Delete), value: &[], ..entry })
    }

    /// Decides about an entry while no version waits.
    fn decide(&mut self, entry: Entry<'_>) -> Result<()> {
        let is_single = entry.seq_kind.kind() == Some(RecordKind::SingleDelete);
        match self.verdict(&entry) {
            Verdict::Drop if is_single && !self.is_bottom() && !terrane_base::planted!(DropHiddenSingle) => {}
            Verdict::Drop | Verdict::Hold => return Ok(()),
            Verdict::Keep => {}
        }
        if !is_single && !entry.seq_kind.is_merge() {
            return self.keep(entry);
        }
        debug_assert!(self.folding.waiting == Waiting::Nothing, "the newer version waits still");
        self.keep_held()?;
        self.folding.stripe_start = self.stripe_start();
        if is_single {
            self.folding.waiting = Waiting::Single(entry.seq_kind);
            return Ok(());
        }
        self.folding.waiting = Waiting::Operands;
        let folding = &mut self.folding;
        folding.chain.clear();
        folding.chain.take(entry.seq_kind, entry.value, folding.now).map(drop)
    }

    /// Emits the waiting versions: no older version of their key follows. Called before anything else is
    /// added to the output.
    pub(super) fn emit_waiting(&mut self) -> Result<()> {
        let emitted = match self.folding.waiting {
            Waiting::Nothing => Ok(()),
            Waiting::Operands => {
                let is_bottom = self.is_bottom();
                self.emit_operands(is_bottom)
            }
            Waiting::Single(delete) => {
                self.folding.waiting = Waiting::Nothing;
                self.keep_single(delete)
            }
        };
        debug_assert!(!self.waits(), "no version waits after all were emitted");
        emitted
    }

    fn keep_single(&mut self, seq_kind: SeqKind) -> Result<()> {
        self.add_of_key(seq_kind, &[])
    }

    /// Folds and emits the collected operands. `is_bottom`: nothing older exists.
    fn emit_operands(&mut self, is_bottom: bool) -> Result<()> {
        self.folding.waiting = Waiting::Nothing;
        debug_assert!(!self.folding.chain.is_empty(), "operands wait, or a base that has all of them");
        let chain = std::mem::take(&mut self.folding.chain);
        let given = self.give_out(&chain, is_bottom);
        self.folding.chain = chain;
        given
    }

    fn give_out(&mut self, chain: &Chain, is_bottom: bool) -> Result<()> {
        let operands = chain.operands();
        let mut from = 0;
        while from < operands.len() {
            let joins = |at: &usize| self.folding.may_join(&operands[*at], &operands[*at + 1]);
            let first = from..operands.len() - 1;
            let partly = first.take_while(joins).count() + from + 1;
            if self.ends_here(chain, from, is_bottom)
                && self.try_fold(chain, &operands[from..], Fold::Fully)?
            {
                return Ok(());
            }
            // An operand with a possible second copy is joined with no other, not even a newer one.
            let is_alone = operands[from].first <= self.folding.below_seq_max;
            let end = if is_alone { from + 1 } else { partly };
            assert!(
                from < end && end <= operands.len(),
                "operands {from}..{end} of {} are emitted",
                operands.len()
            );
            if end - from < 2 || !self.try_fold(chain, &operands[from..end], Fold::Partly)? {
                for operand in &operands[from..end] {
                    self.add_operand(operand, chain.operand_bytes(operand))?;
                }
            }
            from = end;
        }
        self.emit_base(chain)
    }

    /// Returns true if the operands from `from` on and the base may become a value.
    fn ends_here(&self, chain: &Chain, from: usize, is_bottom: bool) -> bool {
        let operands = &chain.operands()[from..];
        debug_assert!(!operands.is_empty(), "a group of operands, from {from} on, has one at least");
        let last = operands.last().map_or(Moment::NEVER, |operand| operand.expires_at);
        let has_end = match chain.base() {
            Base::Open => is_bottom,
            Base::Delete { .. } => true,
            Base::Value { expires_at, .. } => last <= *expires_at,
        };
        has_end && operands.is_sorted_by_key(|operand| operand.expires_at)
    }

    /// Emits one entry for these operands; returns false if that is not possible.
    fn try_fold(&mut self, chain: &Chain, operands: &[Operand], fold: Fold) -> Result<bool> {
        debug_assert!(!operands.is_empty(), "something is folded");
        let Some(operator) = self.folding.operator.clone() else { return Ok(false) };
        let (Some(newest), Some(oldest)) = (operands.first(), operands.last()) else { return Ok(false) };
        let mut value = std::mem::take(&mut self.folding.value);
        value.clear();
        let span = (fold == Fold::Partly).then(|| newest.last.0 - oldest.first.0);
        let kind = put_prefix(&mut value, newest.expires_at, span);
        let key = self.key();
        let folded = match fold {
            Fold::Partly => chain.fold_partly(&*operator, key, operands, &mut value),
            Fold::Fully => chain.fold_to_store(&*operator, key, operands, &mut value),
        };
        let added = match folded {
            Ok(true) => {
                self.work.operands_folded += operands.len() as u64;
                let seq_kind = SeqKind::new(newest.last, kind);
                match fold {
                    Fold::Partly => self.add_of_key(seq_kind, &value),
                    Fold::Fully => self.keep_of_key(seq_kind, &value),
                }
                .map(|()| true)
            }
            Ok(false) => Ok(false),
            // Readers of the key get the error. Here nothing may be lost, and other keys must be merged.
            Err(_) => {
                self.work.folds_failed += 1;
                Ok(false)
            }
        };
        self.folding.value = value;
        added
    }

    fn add_operand(&mut self, operand: &Operand, bytes: &[u8]) -> Result<()> {
        debug_assert!(
            operand.first <= operand.last,
            "the numbers of an operand ascend: {} to {}",
            operand.first,
            operand.last
        );
        let mut value = std::mem::take(&mut self.folding.value);
        value.clear();
        let kind = put_prefix(&mut value, operand.expires_at, Some(operand.last.0 - operand.first.0));
        value.extend_from_slice(bytes);
        let added = self.add_of_key(SeqKind::new(operand.last, kind), &value);
        self.folding.value = value;
        added
    }

    /// Emits the base if the operands were not folded onto it.
    fn emit_base(&mut self, chain: &Chain) -> Result<()> {
        match chain.base() {
            Base::Open => Ok(()),
            Base::Delete { seq } => {
                let delete = SeqKind::new(*seq, RecordKind::Delete);
                if self.is_bottom() {
                    // It is emitted only before an older version that stays for a snapshot.
                    self.hold(delete);
                    return Ok(());
                }
                self.add_of_key(delete, &[])
            }
            Base::Value { seq, expires_at } => {
                debug_assert!(chain.base_bytes().is_some(), "the value would become an empty one");
                let mut value = std::mem::take(&mut self.folding.value);
                value.clear();
                let kind = put_prefix(&mut value, *expires_at, None);
                value.extend_from_slice(chain.base_bytes().unwrap_or_default());
                let added = self.add_of_key(SeqKind::new(*seq, kind), &value);
                self.folding.value = value;
                added
            }
        }
    }
}
