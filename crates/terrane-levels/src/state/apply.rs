//! Applies an edit. Each operation is checked against the state before it; extents change last, removals
//! before additions (see `terrane_format::manifest::edit`).

use std::collections::BTreeMap;
use std::sync::Arc;

use terrane_base::{Collation, Error, KeyOrders, Kind, Result, SegmentId, SeqNo, TableId};
use terrane_format::extent::ExtentMeta;
use terrane_format::external::COMPARATOR;
use terrane_format::manifest::edit::{NAME_BYTES_MAX, OPTION_BYTES_MAX, OPTIONS_MAX, decode_edits};
use terrane_format::manifest::{Edit, EditOp, Seal, SegmentSpec, TableOptions};
use terrane_format::segment::SEGMENT_BYTES_MAX;

use super::numbers::{FILE_NUMBERS, TABLE_NUMBERS, after, after_u64, check_seq, raise, run_after};
use super::{Segment, State, Table};
use crate::metasnapshot::{Change, Metasnapshot};

type Placed = Metasnapshot<Arc<ExtentMeta>>;
type ExtentChanges = BTreeMap<TableId, Vec<Change<Arc<ExtentMeta>>>>;

/// A table whose extents contradict its comparator.
#[derive(Clone, Debug)]
pub struct Misfit {
    /// Its name.
    pub table: String,
    /// Versions in its extents.
    pub entries: u64,
    /// The contradiction.
    pub error: Error,
}

impl State {
    /// The same state with a program's comparators: before that, extents whose keys a comparator orders are
    /// known, but not their order.
    ///
    /// # Errors
    /// `Corrupt` if the extents of a table contradict its comparator; `Poisoned` if the comparator panicked.
    pub fn with_orders(self, orders: &KeyOrders) -> Result<State> {
        let (state, misfits) = self.with_orders_that_fit(orders)?;
        misfits.into_iter().next().map_or(Ok(state), |misfit| Err(misfit.error))
    }

    /// As [`State::with_orders`], but tables whose extents contradict their comparators lose the extents, and
    /// are returned.
    ///
    /// # Errors
    /// `Poisoned` if a comparator panicked.
    pub fn with_orders_that_fit(mut self, orders: &KeyOrders) -> Result<(State, Vec<Misfit>)> {
        self.orders = Arc::new(orders.clone());
        let mut misfits = Vec::new();
        let compared: Vec<_> =
            self.tables.values().filter(|table| !table.collation.is_bytes()).cloned().collect();
        for mut table in compared {
            let collation = collation_of(&table.options, orders);
            let placed = placed_by(&table.extents, &collation);
            // A comparator that panicked proves nothing about the extents.
            collation.check().map_err(|failed| {
                failed.context(format!("table {}", table.name)).with_kind(Kind::Poisoned)
            })?;
            let extents = placed.unwrap_or_else(|error| {
                let metas = table.extents.places().flat_map(|(_, level)| level.iter());
                let entries = metas.map(|meta| meta.entries).fold(0, u64::saturating_add);
                let error = error.context(format!("table {}", table.name)).with_kind(Kind::Corrupt);
                misfits.push(Misfit { table: table.name.clone(), entries, error });
                Metasnapshot::default()
            });
            let changed = Arc::make_mut(&mut table);
            (changed.extents, changed.collation) = (extents, collation);
            let had = self.tables.put(table);
            assert!(had, "a table takes its own place");
        }
        Ok((self, misfits))
    }

    /// The state after `edit`, sharing everything that the edit does not change.
    ///
    /// # Errors
    /// `Invalid`, naming the operation and what it contradicts.
    pub fn apply(&self, edit: &Edit) -> Result<State> {
        let mut next = self.clone();
        next.apply_in_place(edit)?;
        debug_assert!(
            next.durable >= self.durable && next.epoch >= self.epoch && next.next.run >= self.next.run,
            "the numbers of a manifest never go back"
        );
        Ok(next)
    }

    /// Applies the edits that a record of the manifest has, in place; the state is unusable after an error.
    /// For media of a manifest, which keep records as bytes.
    ///
    /// # Errors
    /// `Corrupt`, without a place, if the bytes are not edits or contradict the state.
    pub fn apply_record(&mut self, payload: &[u8]) -> Result<()> {
        let edits = decode_edits(payload)?;
        let applied = edits.iter().try_for_each(|edit| self.apply_in_place(edit));
        applied.map_err(|error| error.with_kind(Kind::Corrupt))
    }

    /// As [`State::apply`], in place; unusable after an error.
    pub(crate) fn apply_in_place(&mut self, edit: &Edit) -> Result<()> {
        let before = cfg!(debug_assertions).then(|| self.rising());
        // After any edit the database is in use again; `CleanClose` sets this again.
        self.clean_close = None;
        let mut changes = ExtentChanges::new();
        for op in &edit.ops {
            self.apply_op(op, &mut changes).map_err(|error| error.context(op.as_str()))?;
        }
        // Only tables that the edit changes can be empty now: checking all of them for each edit of a hostile
        // file would take unbounded time.
        let mut touched: Vec<TableId> = changes.keys().copied().collect();
        touched.extend(edit.ops.iter().filter_map(|op| match op {
            EditOp::DropTable { id } => Some(*id),
            _ => None,
        }));
        self.change_extents(changes)?;
        for id in touched {
            if self.tables.get(&id).is_some_and(|table| table.dropped && table.extents.is_empty()) {
                self.tables.remove(&id);
            }
        }
        if let Some(before) = before {
            let after = self.rising();
            debug_assert!(
                before.iter().zip(&after).all(|(before, after)| before <= after),
                "no edit lowers a number: {before:?} to {after:?}"
            );
        }
        Ok(())
    }

    fn apply_op(&mut self, op: &EditOp, changes: &mut ExtentChanges) -> Result<()> {
        self.check_version(op)?;
        match op {
            EditOp::CreateTable { id, name, options } => self.create_table(*id, name, options),
            EditOp::SetOptions { id, options } => {
                check_options(options)?;
                let table = self.live_table(*id)?;
                if comparator_of(&table.options) != comparator_of(options) {
                    return Err(Error::invalid(format!("table {} keeps its comparator", table.name)));
                }
                table.options.clone_from(options);
                Ok(())
            }
            EditOp::DropTable { id } => self.drop_table(*id),
            EditOp::AddExtent { table, place, meta } => {
                let extent = ordered(meta, &self.live_table(*table)?.collation)?;
                let change = Change::Add { place: *place, extent };
                changes.entry(*table).or_default().push(change);
                Ok(())
            }
            EditOp::RemoveExtent { table, place, id, smallest } => {
                let change = Change::Remove { place: *place, id: *id, smallest: smallest.clone() };
                changes.entry(*table).or_default().push(change);
                Ok(())
            }
            EditOp::AddSegment(spec) => self.add_segment(*spec),
            EditOp::SealSegment { id, seal } => self.seal_segment(*id, *seal),
            EditOp::RemoveSegment { id } => self.remove_segment(*id),
            EditOp::VoidMark { seq } => self.void_mark(*seq),
            EditOp::Flushed { table, seq } => raise(&mut self.live_table(*table)?.flushed, *seq),
            EditOp::FlushedAll { seq } => raise(&mut self.flushed_all, *seq),
            // Several flushes append this concurrently, in any order; the number never goes back.
            EditOp::Durable { seq } => {
                let seq = self.durable.max(*seq);
                raise(&mut self.durable, seq)
            }
            EditOp::NextIds(next) => self.raise_next(next),
            EditOp::Epoch { epoch } if *epoch > self.epoch => {
                after_u64(*epoch)?;
                self.epoch = *epoch;
                Ok(())
            }
            EditOp::Epoch { epoch } => {
                Err(Error::invalid(format!("epoch {epoch} is not above the present one, {}", self.epoch)))
            }
            EditOp::CleanClose { last_seq } => {
                check_seq(*last_seq)?;
                self.clean_close = Some(*last_seq);
                Ok(())
            }
            EditOp::KeepSegment { id, kept } => self.keep_segment(*id, *kept),
            EditOp::ForgetSegment { id } => self.forget_segment(*id),
            EditOp::SetHistory(rule) => {
                self.history_rule = *rule;
                Ok(())
            }
        }
    }

    fn create_table(&mut self, id: TableId, name: &str, options: &TableOptions) -> Result<()> {
        if name.is_empty() || name.len() > NAME_BYTES_MAX {
            let bytes = name.len();
            return Err(Error::invalid(format!(
                "table name of {bytes} bytes: 1 to {NAME_BYTES_MAX} are possible"
            )));
        }
        check_options(options)?;
        if self.table_named(name).is_some() {
            return Err(Error::invalid(format!("a table named {name} exists")));
        }
        if id < self.next.table {
            return Err(Error::invalid(format!("table number {id} was used before")));
        }
        let numbers = if terrane_base::planted!(UnlimitedTableNumbers) { u32::MAX } else { TABLE_NUMBERS };
        self.next.table = TableId(after(id.0, numbers)?);
        self.names.insert_mut(name.to_owned(), id);
        let (name, options) = (name.to_owned(), options.clone());
        let (flushed, extents) = (SeqNo::default(), Metasnapshot::default());
        let collation = collation_of(&options, &self.orders);
        let table = Table { id, name, options, flushed, dropped: false, extents, collation };
        let had = self.tables.put(Arc::new(table));
        assert!(!had, "table {id} exists: numbers are used once");
        Ok(())
    }

    fn drop_table(&mut self, id: TableId) -> Result<()> {
        if id == TableId::DEFAULT {
            return Err(Error::invalid("the default table cannot be dropped"));
        }
        let table = self.live_table(id)?;
        table.dropped = true;
        let name = table.name.clone();
        let had = self.names.remove_mut(&name);
        debug_assert!(had, "the name of each table that lives leads to it: {id}");
        Ok(())
    }

    fn live_table(&mut self, id: TableId) -> Result<&mut Table> {
        debug_assert!(
            self.tables.get(&id).is_none_or(|table| table.id == id),
            "a table lies under its number"
        );
        match self.tables.get_mut(&id) {
            Some(table) if !table.dropped => Ok(Arc::make_mut(table)),
            Some(table) => Err(Error::invalid(format!("table {} ({id}) is dropped", table.name))),
            None => Err(no_table(id)),
        }
    }

    fn add_segment(&mut self, spec: SegmentSpec) -> Result<()> {
        if spec.id < self.next.segment {
            return Err(Error::invalid(format!("segment number {} was used before", spec.id)));
        }
        if spec.bytes > SEGMENT_BYTES_MAX {
            let message = format!("segment {} of {} bytes: at most {SEGMENT_BYTES_MAX}", spec.id, spec.bytes);
            return Err(Error::invalid(message));
        }
        if self.segment_files.contains(&spec.file) {
            let message = format!("segment {}: file {} belongs to another segment", spec.id, spec.file);
            return Err(Error::invalid(message));
        }
        self.next.segment = SegmentId(after_u64(spec.id.0)?);
        self.next.segment_file = self.next.segment_file.max(after(spec.file, FILE_NUMBERS)?);
        self.segment_files.insert(spec.file);
        let before = self.segments.insert(spec.id, Segment { spec, seal: None });
        assert!(before.is_none(), "segment {} exists: numbers are used once", spec.id);
        Ok(())
    }

    fn seal_segment(&mut self, id: SegmentId, seal: Seal) -> Result<()> {
        check_seq(seal.last_seq)?;
        let segment = self.segments.get_mut(&id).ok_or_else(|| no_segment(id))?;
        if seal.end_offset > segment.spec.bytes {
            let (end, bytes) = (seal.end_offset, segment.spec.bytes);
            return Err(Error::invalid(format!("segment {id} of {bytes} bytes cannot end at {end}")));
        }
        if segment.seal.is_some_and(|before| before != seal) {
            return Err(Error::invalid(format!("segment {id} was sealed otherwise before")));
        }
        segment.seal = Some(seal);
        if self.last_sealed.is_none_or(|(last, _)| last.id <= id) {
            self.last_sealed = Some((segment.spec, seal));
        }
        debug_assert!(
            self.last_sealed.is_some_and(|(last, _)| last.id >= id),
            "the next open would look for an earlier end of the journal"
        );
        Ok(())
    }

    fn change_extents(&mut self, changes: ExtentChanges) -> Result<()> {
        let run_before = self.next.run;
        let mut gone = Vec::new();
        let mut come = Vec::new();
        for (id, changes) in changes {
            for change in &changes {
                if let Change::Add { place, extent } = change {
                    come.push((extent.id, extent.slots));
                    self.next.run = self.next.run.max(run_after(*place)?);
                    if let Some(values) = extent.value_table
                        && !terrane_base::planted!(ReuseValueTableNumber)
                    {
                        self.next.run = self.next.run.max(after_u64(values.number.0)?);
                    }
                }
            }
            let table = Arc::make_mut(self.tables.get_mut(&id).ok_or_else(|| no_table(id))?);
            let removed = table.extents.apply_in_place(changes);
            gone.extend(removed.map_err(|error| error.context(format!("table {}", table.name)))?);
        }
        debug_assert!(self.next.run >= run_before, "the number of a run would be given out twice");
        gone.iter().try_for_each(|meta| self.slots.free(meta.id, meta.slots))?;
        come.into_iter().try_for_each(|(id, count)| self.slots.take(id, count))
    }
}

/// The comparator that a table's options name.
fn comparator_of(options: &TableOptions) -> Option<&str> {
    options.iter().find(|(name, _)| name == COMPARATOR).map(|(_, name)| name.as_str())
}

fn collation_of(options: &TableOptions, orders: &KeyOrders) -> Collation {
    comparator_of(options).map_or(Collation::BYTES, |name| orders.collation(name))
}

/// The same extents, with the key order of their table.
fn placed_by(extents: &Placed, collation: &Collation) -> Result<Placed> {
    let mut changes = Vec::new();
    for (place, meta) in extents.extents() {
        changes.push(Change::Add { place, extent: ordered(meta, collation)? });
    }
    Metasnapshot::default().apply(changes)
}

/// An extent with the key order of its table.
fn ordered(meta: &Arc<ExtentMeta>, collation: &Collation) -> Result<Arc<ExtentMeta>> {
    let ordered = match collation.is_bytes() && meta.collation.is_bytes() {
        true => meta.check_order().map(|()| meta.clone()),
        false => ExtentMeta::clone(meta).ordered(collation).map(Arc::new),
    };
    ordered.map_err(|error| error.with_kind(Kind::Invalid))
}

fn check_options(options: &TableOptions) -> Result<()> {
    let long =
        |(name, value): &(String, String)| name.len() > NAME_BYTES_MAX || value.len() > OPTION_BYTES_MAX;
    if options.len() > OPTIONS_MAX {
        return Err(Error::invalid(format!(
            "{} options of a table: the limit is {OPTIONS_MAX}",
            options.len()
        )));
    }
    match options.iter().find(|option| long(option)) {
        Some((name, _)) => Err(Error::invalid(format!("table option {name:.40}: name or value is too long"))),
        None => Ok(()),
    }
}

#[cold]
fn no_table(id: TableId) -> Error {
    Error::invalid(format!("there is no table {id}"))
}

#[cold]
pub(super) fn no_segment(id: SegmentId) -> Error {
    Error::invalid(format!("there is no live segment {id}"))
}
