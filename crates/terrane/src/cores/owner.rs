//! One round of a core: it does the requests that have arrived.
//!
//! 1. Of each lane take a *window*: the longest front part in which reads may be done first and writes after
//!    them. It ends before a get of a key that the window may have written, and before a multi-get or a scan,
//!    which is done alone when it is at the front.
//! 2. The gets of all windows, by table, as interleaved multi-gets.
//! 3. The writes of all windows as one commit, synced if one of them asked for it.
//! 4. Return the windows.
//!
//! Reads may come first because none of these requests was answered before the round, so they are concurrent,
//! except for the order within a session, which concerns equal keys only.

use std::sync::Arc;

use terrane_base::key_order::Order;
use terrane_base::{Batch, Error, Kind, RecordKind, Result, SeqNo};

use super::lane::{Serve, Server};
use super::ownership::Ownership;
use super::request::{Ask, SCAN_BYTES_MAX, Slot};
use crate::{Cursor, Db, Table, Values};

/// Requests of one lane in a round.
const WINDOW: usize = 64;
/// Gets of one table that are read together.
const GROUP: usize = 64;
/// Bytes of writes after which a commit takes no further request.
const COMMIT_BYTES: usize = 128 << 10;

/// Where a request is.
#[derive(Clone, Copy)]
struct At {
    place: u32,
    lane: u32,
    index: u32,
}

/// The server of a core. See the head of the file.
pub(super) struct Owner {
    db: Db,
    ownership: Arc<Ownership>,
    /// The lane that the last round began with.
    first: usize,
    // Of one round; here because their memory is used again.
    windows: Vec<usize>,
    reads: Vec<At>,
    writes: Vec<At>,
    write_bytes: usize,
    merged: Batch,
    values: Values,
}

impl Owner {
    pub(super) fn new(db: &Db, ownership: Arc<Ownership>) -> Self {
        Owner {
            db: db.clone(),
            ownership,
            first: 0,
            windows: Vec::new(),
            reads: Vec::new(),
            writes: Vec::new(),
            write_bytes: 0,
            merged: Batch::new(),
            values: Values::new(),
        }
    }

    /// Notes the reads and writes of a lane's window; returns its length.
    fn window(&mut self, number: usize, lane: &mut Server<Slot>) -> usize {
        let mut written = Written::default();
        let len = lane.waiting().min(WINDOW);
        for index in 0..len {
            let slot = lane.get(index);
            let at = At { place: slot.place, lane: number as u32, index: index as u32 };
            match slot.ask {
                Ask::Get => {
                    if written.may_hold(&slot.key) && !terrane_base::planted!(OvertakeWrite) {
                        return index;
                    }
                    self.reads.push(at);
                }
                Ask::Write | Ask::Batch => {
                    let bytes = slot.batch.bytes().len();
                    if self.write_bytes > 0 && self.write_bytes + bytes > COMMIT_BYTES {
                        return index;
                    }
                    self.write_bytes += bytes;
                    written.note(&slot.batch);
                    self.writes.push(at);
                }
                Ask::MultiGet | Ask::Scan(_) => {
                    if index > 0 {
                        return index;
                    }
                    self.read_alone(lane.get_mut(0));
                    return 1;
                }
            }
        }
        len
    }

    fn read_alone(&self, slot: &mut Slot) {
        let table = self.ownership.table(slot.place);
        let done = match slot.ask {
            Ask::MultiGet => multi_get(table, slot),
            _ => scan(table, self.ownership.order(slot.place), slot),
        };
        slot.error = done.err();
    }

    fn answer_reads(&mut self, lanes: &mut [Server<Slot>]) {
        let mut reads = std::mem::take(&mut self.reads);
        if reads.iter().any(|read| read.place != reads[0].place) {
            reads.sort_unstable_by_key(|read| (read.place, read.lane, read.index));
        }
        for group in reads.chunk_by(|left, right| left.place == right.place) {
            group.chunks(GROUP).for_each(|part| self.read_together(part, lanes));
        }
        reads.clear();
        self.reads = reads;
    }

    /// Gets of one table.
    fn read_together(&mut self, reads: &[At], lanes: &mut [Server<Slot>]) {
        let table = self.ownership.table(reads[0].place);
        if let [read] = reads {
            return get(table, slot_mut(lanes, *read));
        }
        let mut keys: [&[u8]; GROUP] = [&[]; GROUP];
        for (key, read) in keys.iter_mut().zip(reads) {
            *key = &slot(lanes, *read).key;
        }
        if table.multi_get_into(&keys[..reads.len()], &mut self.values).is_err() {
            // One by one, so that the error of a key is that of its request alone.
            return reads.iter().for_each(|read| get(table, slot_mut(lanes, *read)));
        }
        for (read, value) in reads.iter().zip(self.values.iter()) {
            slot_mut(lanes, *read).found(value);
        }
    }

    fn commit_writes(&mut self, lanes: &mut [Server<Slot>]) {
        let mut writes = std::mem::take(&mut self.writes);
        writes.retain(|write| {
            let slot = slot_mut(lanes, *write);
            slot.error = self.refuse_dropped(slot).err();
            slot.error.is_none()
        });
        match &*writes {
            [] => {}
            [write] => self.commit_alone(slot_mut(lanes, *write)),
            _ => self.commit_together(&writes, lanes),
        }
        writes.clear();
        self.writes = writes;
        self.write_bytes = 0;
    }

    /// A dropped table is the error of its own requests, not of the commit.
    fn refuse_dropped(&self, slot: &Slot) -> Result<()> {
        match slot.ask {
            Ask::Batch => slot.rare.places.iter().try_for_each(|place| self.refuse_dropped_table(*place)),
            _ => self.refuse_dropped_table(slot.place),
        }
    }

    fn refuse_dropped_table(&self, place: u32) -> Result<()> {
        self.ownership.table(place).refuse_if_dropped()
    }

    fn commit_alone(&self, slot: &mut Slot) {
        match self.db.engine().write(&slot.batch, slot.is_synced) {
            Ok(seq) => slot.seq = seq,
            Err(error) => slot.error = Some(error),
        }
    }

    fn commit_together(&mut self, writes: &[At], lanes: &mut [Server<Slot>]) {
        self.merged.clear();
        let mut is_synced = false;
        for write in writes {
            let slot = slot(lanes, *write);
            is_synced |= slot.is_synced;
            self.merged.append(&slot.batch).expect("a commit of several is far below the limit of a batch");
        }
        match self.db.engine().write(&self.merged, is_synced) {
            Ok(last) => number(writes, lanes, last),
            // Together they are beyond a limit that each of them may keep; nothing was written.
            Err(error) if error.kind() == Kind::Invalid => {
                writes.iter().for_each(|write| self.commit_alone(slot_mut(lanes, *write)));
            }
            // A transaction holds the lock of one of the keys, and nothing was written, so the other requests
            // need not wait for it. The request for that key has waited for as long as a write does.
            Err(error) if matches!(error.kind(), Kind::TimedOut | Kind::Deadlock) => {
                for write in writes {
                    let slot = slot_mut(lanes, *write);
                    match self.db.engine().write_unless_locked(&slot.batch, slot.is_synced) {
                        Ok(seq) => slot.seq = seq,
                        Err(error) => slot.error = Some(error),
                    }
                }
            }
            Err(error) => {
                writes.iter().for_each(|write| slot_mut(lanes, *write).error = Some(error.clone()));
            }
        }
    }
}

impl Serve for Owner {
    type Slot = Slot;

    fn serve(&mut self, lanes: &mut [Server<Slot>]) {
        self.windows.clear();
        self.windows.resize(lanes.len(), 0);
        // Every round begins with another lane: the first may take all that a commit takes.
        self.first = (self.first + 1) % lanes.len().max(1);
        for number in (self.first..lanes.len()).chain(0..self.first) {
            self.windows[number] = self.window(number, &mut lanes[number]);
        }
        self.answer_reads(lanes);
        self.commit_writes(lanes);
        for (lane, len) in lanes.iter_mut().zip(&self.windows) {
            lane.advance(*len);
        }
    }

    fn fail(&mut self, slot: &mut Slot) {
        slot.error = Some(Error::new(
            Kind::Poisoned,
            "the core panicked: whether this request was done is not known; close the database and open it again",
        ));
    }
}

#[inline]
fn slot(lanes: &[Server<Slot>], at: At) -> &Slot {
    lanes[at.lane as usize].get(at.index as usize)
}

#[inline]
fn slot_mut(lanes: &mut [Server<Slot>], at: At) -> &mut Slot {
    lanes[at.lane as usize].get_mut(at.index as usize)
}

/// Tells each write of a commit its position, from that of the last record.
fn number(writes: &[At], lanes: &mut [Server<Slot>], last: SeqNo) {
    let mut last = last.0;
    for write in writes.iter().rev() {
        let slot = slot_mut(lanes, *write);
        slot.seq = SeqNo(last);
        last -= u64::from(slot.batch.record_count());
    }
}

fn get(table: &Table, slot: &mut Slot) {
    slot.value.clear();
    match table.get_into(&slot.key, &mut slot.value) {
        Ok(is_found) => slot.is_found = is_found,
        Err(error) => slot.error = Some(error),
    }
}

fn multi_get(table: &Table, slot: &mut Slot) -> Result<()> {
    let mut values = std::mem::take(&mut slot.rare.values);
    let done = table.multi_get_into(&slot.keys(), &mut values);
    slot.rare.values = values;
    done
}

fn scan(table: &Table, order: Option<&Order>, slot: &mut Slot) -> Result<()> {
    let Slot { ask, key, value, rare, .. } = slot;
    value.clear();
    rare.ends.clear();
    let (mut cursor, mut decoded) = (table.cursor(), Vec::new());
    let step: fn(&mut Cursor) -> Result<()> = if *ask == Ask::Scan(true) {
        cursor.seek(key)?;
        Cursor::next
    } else {
        cursor.seek_back(key)?;
        Cursor::prev
    };
    while let Some((row_key, row_value)) = cursor.row() {
        if rare.ends.len() == 2 * rare.rows_max || value.len() >= SCAN_BYTES_MAX {
            break;
        }
        let row_key = match order {
            None => row_key,
            Some(order) => {
                order.decode_into(row_key, &mut decoded)?;
                &decoded
            }
        };
        for piece in [row_key, row_value] {
            value.extend_from_slice(piece);
            rare.ends.push(value.len());
        }
        step(&mut cursor)?;
    }
    Ok(())
}

/// The keys that a window has written, approximately: a bit for each of 256 hashes. A get may be mistaken for
/// one after a write of its key, which ends the window early.
#[derive(Default)]
struct Written {
    bits: [u64; 4],
    is_empty_no_more: bool,
}

impl Written {
    fn note(&mut self, batch: &Batch) {
        self.is_empty_no_more = true;
        // A range delete writes more keys than it names.
        let is_ranged = batch.records().any(|record| record.kind == RecordKind::RangeDelete);
        if batch.record_count() > WINDOW as u32 || is_ranged {
            self.bits = [u64::MAX; 4];
            return;
        }
        for record in batch.records() {
            let hash = hash(record.key);
            self.bits[usize::from(hash >> 6)] |= 1 << (hash & 63);
        }
    }

    #[inline]
    fn may_hold(&self, key: &[u8]) -> bool {
        self.is_empty_no_more && {
            let hash = hash(key);
            self.bits[usize::from(hash >> 6)] & (1 << (hash & 63)) != 0
        }
    }
}

/// Eight bits of a key.
#[inline]
fn hash(key: &[u8]) -> u8 {
    let mix = |hash: u64, word: u64| (hash.rotate_left(29) ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let words = key.chunks(8).map(|chunk| {
        let mut word = [0; 8];
        word[..chunk.len()].copy_from_slice(chunk);
        u64::from_le_bytes(word)
    });
    (words.fold(key.len() as u64, mix) >> 56) as u8
}
