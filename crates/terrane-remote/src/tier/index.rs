//! Which frame lies in which slot, and which one goes next: work in memory only.
//!
//! The replacement is S3-FIFO (Yang et al., 2023). Frames come into the *small* queue, a tenth of the slots.
//! One that was used behind that moves on to the *main* queue, every other one leaves, and only its hash
//! stays, as a *ghost*: a frame that comes in again while its ghost is there goes to the main queue at once.
//! A scan passes through the small queue and no further.
//!
//! The difference to the paper: a use counts only if enough frames came in since the last one that counted.
//! Blocks lie several to a frame, and a scan that reads one after the other uses a frame several times at
//! once.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::hash::{DefaultHasher, Hash, Hasher};

use super::header::{FRAME_PAYLOAD_BYTES, FrameKey, Header, ObjectKey};

/// The small queue has one of so many slots.
const SMALL_PART: usize = 10;
/// A use counts once so many hundredths of the slots were filled since the last one that counted.
const APART_PERCENT: u64 = 1;
/// Most uses that are counted.
const USES_MAX: u8 = 3;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Queue {
    Small,
    Main,
}

#[derive(Clone, Copy, Debug)]
struct Slot {
    header: Header,
    /// The order at the last use that counted.
    used_at: u64,
    uses: u8,
    queue: Queue,
}

/// A slot that is to be written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Admitted {
    pub(super) slot: u32,
    pub(super) header: Header,
    is_known: bool,
}

/// A frame that may be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct StoredFrame {
    pub(super) slot: u32,
    pub(super) header: Header,
}

/// The slots and their frames.
#[derive(Debug)]
pub(super) struct Index {
    /// `None` for a free slot, and for one that is being written.
    slots: Vec<Option<Slot>>,
    free: Vec<u32>,
    objects: BTreeMap<ObjectKey, BTreeMap<u32, u32>>,
    /// Slots with the order of their frame: an entry whose slot has another one by now is void.
    small: VecDeque<(u32, u64)>,
    main: VecDeque<(u32, u64)>,
    small_len: usize,
    main_len: usize,
    ghosts: Ghosts,
    /// The order of the next frame.
    order: u64,
    evicted: u64,
}

impl Index {
    /// An index of these slots, with the headers that were found in them. Of two frames with one identity the
    /// later one counts.
    pub(super) fn new(slots: u32, mut found: Vec<StoredFrame>) -> Self {
        let count = slots as usize;
        let mut index = Index {
            slots: vec![None; count],
            free: Vec::new(),
            objects: BTreeMap::new(),
            small: VecDeque::new(),
            main: VecDeque::new(),
            small_len: 0,
            main_len: 0,
            ghosts: Ghosts::new(count - count / SMALL_PART),
            order: 0,
            evicted: 0,
        };
        found.retain(|place| place.slot < slots);
        found.sort_by_key(|place| (place.header.order, place.slot));
        // The newest frames: it is not known yet whether they are read again.
        let main = found.len().saturating_sub(count / SMALL_PART);
        for (at, place) in found.into_iter().enumerate() {
            let queue = if at < main { Queue::Main } else { Queue::Small };
            index.order = index.order.max(place.header.order + 1);
            if let Some(before) = index.slot_of(&place.header.key) {
                index.take_out(before);
            }
            index.put(place, queue);
        }
        index.free = (0..slots).rev().filter(|slot| index.slots[*slot as usize].is_none()).collect();
        index
    }

    fn slot_of(&self, key: &FrameKey) -> Option<u32> {
        self.objects.get(&key.object)?.get(&key.frame).copied()
    }

    /// Where a frame is.
    pub(super) fn find(&self, key: &FrameKey) -> Option<StoredFrame> {
        let slot = self.slot_of(key)?;
        let header = self.slots[slot as usize].expect("a frame of an object is in its slot").header;
        debug_assert_eq!(header.key, *key, "the slot has the frame");
        Some(StoredFrame { slot, header })
    }

    /// Notes that a frame was read; false if its slot has another one by now, so that what was read is void.
    pub(super) fn used(&mut self, place: &StoredFrame) -> bool {
        let apart = (self.slots.len() as u64 * APART_PERCENT / 100).max(1);
        let found = self.slots.get_mut(place.slot as usize).and_then(Option::as_mut);
        let Some(slot) = found.filter(|slot| slot.header == place.header) else {
            return false;
        };
        if self.order - slot.used_at > apart {
            (slot.used_at, slot.uses) = (self.order, (slot.uses + 1).min(USES_MAX));
        }
        true
    }

    /// Chooses the slot for a frame, whose frame goes. `None` if the frame is here already.
    pub(super) fn admit(&mut self, key: FrameKey, len: u32) -> Option<Admitted> {
        assert!((1..=FRAME_PAYLOAD_BYTES).contains(&len.into()), "a frame of {len} bytes");
        if self.slot_of(&key).is_some() {
            return None;
        }
        let is_known = self.ghosts.take(&key);
        let slot = self.free.pop().or_else(|| self.evict())?;
        debug_assert!(self.slots[slot as usize].is_none(), "a slot is written only when it is empty");
        let header = Header { key, len, order: self.order };
        self.order += 1;
        Some(Admitted { slot, header, is_known })
    }

    /// Notes that a slot that was chosen is written: its frame may be read from now on.
    pub(super) fn written(&mut self, admitted: &Admitted) {
        let queue = if admitted.is_known { Queue::Main } else { Queue::Small };
        self.put(StoredFrame { slot: admitted.slot, header: admitted.header }, queue);
    }

    /// Forgets a frame that is damaged, if its slot still has it.
    pub(super) fn forget(&mut self, place: &StoredFrame) {
        if self.find(&place.header.key) == Some(*place) {
            self.take_out(place.slot);
            self.free.push(place.slot);
        }
    }

    /// Forgets the frames of an object.
    pub(super) fn forget_object(&mut self, object: &ObjectKey) {
        let slots: Vec<u32> =
            self.objects.get(object).map_or_else(Vec::new, |frames| frames.values().copied().collect());
        for slot in slots {
            self.take_out(slot);
            self.free.push(slot);
        }
    }

    /// Frames that may be read.
    pub(super) fn len(&self) -> usize {
        self.small_len + self.main_len
    }

    /// Frames that left for others.
    pub(super) fn evicted(&self) -> u64 {
        self.evicted
    }

    fn put(&mut self, place: StoredFrame, queue: Queue) {
        let StoredFrame { slot, header } = place;
        let known = self.objects.entry(header.key.object).or_default().insert(header.key.frame, slot);
        assert!(known.is_none(), "a frame is in one slot");
        let entry = &mut self.slots[slot as usize];
        assert!(entry.is_none(), "slot {slot} is free");
        *entry = Some(Slot { header, used_at: header.order, uses: 0, queue });
        self.push(slot, header.order, queue);
        self.drop_void_entries();
    }

    fn push(&mut self, slot: u32, order: u64, queue: Queue) {
        match queue {
            Queue::Small => {
                self.small.push_back((slot, order));
                self.small_len += 1;
            }
            Queue::Main => {
                self.main.push_back((slot, order));
                self.main_len += 1;
            }
        }
    }

    /// Empties a slot. Its entry in the queue is void from then on.
    fn take_out(&mut self, slot: u32) -> Slot {
        debug_assert!(self.len() > 0, "frames are counted");
        let taken = self.slots[slot as usize].take().expect("the slot has a frame");
        let key = taken.header.key;
        let frames = self.objects.get_mut(&key.object).expect("the frame was found");
        frames.remove(&key.frame);
        if frames.is_empty() {
            self.objects.remove(&key.object);
        }
        match taken.queue {
            Queue::Small => self.small_len -= 1,
            Queue::Main => self.main_len -= 1,
        }
        taken
    }

    /// Empties one slot and returns it. `None` if all are being written.
    fn evict(&mut self) -> Option<u32> {
        debug_assert!(self.free.is_empty(), "free slots are filled first");
        let small_max = (self.slots.len() / SMALL_PART).max(1);
        while self.len() > 0 {
            let is_small = self.small_len >= small_max || self.main_len == 0;
            let evicted = if is_small { self.pass_small() } else { self.pass_main() };
            if let Some(slot) = evicted {
                self.evicted += 1;
                return Some(slot);
            }
        }
        None
    }

    /// Takes the oldest frame of the small queue: it moves on, or leaves its slot.
    fn pass_small(&mut self) -> Option<u32> {
        let (slot, order) = self.small.pop_front()?;
        let entry = self.live(slot, order, Queue::Small)?;
        if entry.uses > 0 {
            (entry.uses, entry.queue) = (0, Queue::Main);
            self.small_len -= 1;
            self.push(slot, order, Queue::Main);
            return None;
        }
        let taken = self.take_out(slot);
        self.ghosts.add(&taken.header.key);
        Some(slot)
    }

    /// Takes the oldest frame of the main queue: it stays if it was used since, or leaves its slot.
    fn pass_main(&mut self) -> Option<u32> {
        let (slot, order) = self.main.pop_front()?;
        let entry = self.live(slot, order, Queue::Main)?;
        if entry.uses > 0 {
            entry.uses -= 1;
            self.main.push_back((slot, order));
            return None;
        }
        self.take_out(slot);
        Some(slot)
    }

    /// The frame of an entry of a queue; `None` if the entry is void.
    fn live(&mut self, slot: u32, order: u64, queue: Queue) -> Option<&mut Slot> {
        self.slots[slot as usize].as_mut().filter(|slot| slot.header.order == order && slot.queue == queue)
    }

    /// Entries of frames that were forgotten would gather where slots are freed and filled again.
    fn drop_void_entries(&mut self) {
        if self.small.len() + self.main.len() <= 2 * self.slots.len() {
            return;
        }
        let slots = &self.slots;
        let is_live = |queue: Queue, (slot, order): &(u32, u64)| {
            slots[*slot as usize].is_some_and(|found| found.header.order == *order && found.queue == queue)
        };
        self.small.retain(|entry| is_live(Queue::Small, entry));
        self.main.retain(|entry| is_live(Queue::Main, entry));
        debug_assert_eq!(self.small.len() + self.main.len(), self.len(), "one entry for each frame");
    }
}

/// Hashes of frames that left the small queue.
#[derive(Debug)]
struct Ghosts {
    hashes: BTreeSet<u64>,
    /// Oldest first; one that was taken meanwhile is void.
    order: VecDeque<u64>,
    len_max: usize,
}

impl Ghosts {
    fn new(len_max: usize) -> Self {
        Ghosts { hashes: BTreeSet::new(), order: VecDeque::new(), len_max }
    }

    fn hash(key: &FrameKey) -> u64 {
        let FrameKey { object: ObjectKey { nonce, epoch, number, part }, frame } = *key;
        let mut hasher = DefaultHasher::new();
        (nonce, epoch, number, part, frame).hash(&mut hasher);
        hasher.finish()
    }

    fn add(&mut self, key: &FrameKey) {
        let hash = Ghosts::hash(key);
        if self.hashes.insert(hash) {
            self.order.push_back(hash);
        }
        debug_assert!(self.hashes.len() <= self.order.len(), "each ghost has an end");
        while self.order.len() > self.len_max {
            let oldest = self.order.pop_front().expect("it is longer than that");
            self.hashes.remove(&oldest);
        }
    }

    /// True if there is a ghost of the frame, which is taken away.
    fn take(&mut self, key: &FrameKey) -> bool {
        self.hashes.remove(&Ghosts::hash(key))
    }
}

#[cfg(test)]
mod tests;
