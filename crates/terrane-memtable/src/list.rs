//! The ordered list: the index of a memtable whose keys a comparator orders, of which bytes say nothing.
//!
//! A skip list (Pugh: Skip Lists, CACM 1990) that only grows. Each key has a *post* with the newest version of the key, links to
//! the next post on each of its levels, and one back on the lowest. A post is on level 1 and up by chance, a quarter as many on
//! each as below it. Posts lie in buckets, each twice as large as the one before, and name each other by number.
//!
//! Readers neither wait nor take a lock. A writer searches like a reader, takes the list's lock, goes on from where it came to
//! by what others inserted meanwhile, and links its post.
//!
//! # Who may touch what
//! 1. Links and slots of posts are written under the list's lock only; anyone may read them.
//! 2. A post's links are set before the first link to it; a slot that holds something never becomes empty.
//! 3. A post never goes, nor does its place among the others change.
//!
//! # Memory ordering
//! A link is stored with Release and loaded with Acquire: with it come the post that it names, its slot and its links. Links to
//! a new post are set from the lowest level up, the one back to it last: whoever inserted it has set all.

use std::cmp::Ordering;
use std::sync::OnceLock;

use terrane_base::Collation;
use terrane_base::sync::Mutex;
use terrane_base::sync::atomic::{AtomicU32, AtomicU64, Ordering as Memory};

use crate::arena::LaneGuard;
use crate::node::{Child, Link, Slot};
use crate::version::{Pushed, VersionEntry, push};

/// Levels of the list: with a quarter on each next one enough for 16 million keys.
const LEVELS: usize = 12;
/// Posts of the first bucket.
const BUCKET_FIRST: usize = 64;
const BUCKETS: usize = 26;
/// How many posts before it is needed a bucket is made.
const AHEAD: u32 = 16;
/// Number of the post in front of all keys, and of none behind them.
const END: u32 = 0;

/// A key's place in the list.
struct Post {
    /// The newest version of the key; empty in the first post.
    slot: Slot,
    next: [AtomicU32; LEVELS],
    /// The post in front of it; of the first one the last.
    before: AtomicU32,
}

#[cfg(not(feature = "shuttle"))]
const _: () = assert!(size_of::<Post>() == 64); // a line for each key

/// See the [module](self).
pub(crate) struct List {
    collation: Collation,
    buckets: [OnceLock<Box<[Post]>>; BUCKETS],
    /// Posts so far, the one in front of all among them. Changed under the lock only.
    count: AtomicU32,
    lock: Mutex<()>,
    bytes: AtomicU64,
}

/// A post of a list: where a walk stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Stand(u32);

/// What a search came by.
struct Found {
    /// The last post in front of the key, on each level.
    before: [u32; LEVELS],
    /// The post behind that one, which is not in front of the key; more may be between the two by now.
    behind: [u32; LEVELS],
    /// The post of the key itself.
    post: Option<u32>,
}

impl List {
    pub(crate) fn new(collation: &Collation) -> Self {
        let list = List {
            collation: collation.clone(),
            buckets: std::array::from_fn(|_| OnceLock::new()),
            count: AtomicU32::new(1),
            lock: Mutex::new(()),
            bytes: AtomicU64::new(0),
        };
        list.make_bucket(0);
        list
    }

    /// Bytes of memory that the list takes beside its versions.
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes.load(Memory::Relaxed)
    }

    /// How its keys are ordered.
    pub(crate) fn collation(&self) -> &Collation {
        &self.collation
    }

    /// The newest version of `key`.
    pub(crate) fn find(&self, key: &[u8]) -> Option<&VersionEntry> {
        self.search(key).post.and_then(|post| self.head(Stand(post)))
    }

    /// The newest version at a post.
    pub(crate) fn head(&self, at: Stand) -> Option<&VersionEntry> {
        match self.post(at.0).slot.load().child() {
            Child::Leaf(head) => Some(head),
            _ => None,
        }
    }

    /// The first post whose key is not less than `key`, and whether it is that of `key`.
    pub(crate) fn at_or_behind(&self, key: &[u8]) -> (Option<Stand>, bool) {
        let found = self.search(key);
        match found.post {
            Some(post) => (Some(Stand(post)), true),
            // Not what is behind the post in front by now: that may be another one in front.
            None => (stand(found.behind[0]), false),
        }
    }

    /// The last post whose key is less than `key`.
    pub(crate) fn before(&self, key: &[u8]) -> Option<Stand> {
        stand(self.search(key).before[0])
    }

    pub(crate) fn first(&self) -> Option<Stand> {
        self.next(Stand(END))
    }

    pub(crate) fn last(&self) -> Option<Stand> {
        self.prev(Stand(END))
    }

    pub(crate) fn next(&self, at: Stand) -> Option<Stand> {
        stand(self.post(at.0).next[0].load(Memory::Acquire))
    }

    pub(crate) fn prev(&self, at: Stand) -> Option<Stand> {
        stand(self.post(at.0).before.load(Memory::Acquire))
    }

    /// Inserts a version of `key`, which is the key of `entry`'s record.
    pub(crate) fn insert<'t>(
        &'t self,
        lane: &mut LaneGuard<'t>,
        key: &'t [u8],
        entry: &'t VersionEntry,
    ) -> Pushed<'t> {
        let mut found = self.search(key);
        // Nobody waits for memory under the lock, unless so many writers come at once.
        self.bucket(place_of(self.count.load(Memory::Relaxed).saturating_add(AHEAD)).0, lane);
        let _alone = self.lock.lock();
        let count = self.count.load(Memory::Relaxed);
        if found.post.is_none() {
            self.catch_up(key, &mut found, levels_of(count));
        }
        if let Some(post) = found.post {
            let slot = &self.post(post).slot;
            let Child::Leaf(head) = slot.load().child() else {
                unreachable!("a post that is linked has a key")
            };
            return push(lane, slot, head, entry);
        }
        self.bucket(place_of(count).0, lane);
        self.link(count, &found.before, entry);
        let next = count.checked_add(1).expect("a memtable has fewer keys than 32 bits count");
        self.count.store(next, Memory::Relaxed);
        Pushed::First
    }

    /// Goes on from what a search came by to what was inserted since, on the lowest `levels`. What the search saw is not compared
    /// again. Requires: the lock.
    fn catch_up(&self, key: &[u8], found: &mut Found, levels: usize) {
        for level in 0..levels {
            loop {
                let next = self.post(found.before[level]).next[level].load(Memory::Acquire);
                if next == found.behind[level] || next == END {
                    break;
                }
                match self.compare(next, key) {
                    Ordering::Less => found.before[level] = next,
                    Ordering::Equal => return found.post = Some(next),
                    Ordering::Greater => break,
                }
            }
        }
    }

    /// Hangs a new post with the number `new` behind `before`. Requires: the lock; the post's bucket is there.
    fn link(&self, new: u32, before: &[u32; LEVELS], entry: &VersionEntry) {
        let (post, levels) = (self.post(new), levels_of(new));
        post.slot.store(Link::leaf(entry));
        post.before.store(before[0], Memory::Relaxed);
        for (level, &before) in before.iter().enumerate().take(levels) {
            let next = self.post(before).next[level].load(Memory::Relaxed);
            post.next[level].store(next, Memory::Relaxed);
        }
        let behind = post.next[0].load(Memory::Relaxed);
        for (level, &before) in before.iter().enumerate().take(levels) {
            // Release: pairs with the Acquire of whoever comes by this link.
            self.post(before).next[level].store(new, Memory::Release);
        }
        // Release: likewise. The first post stands behind the last one, too.
        self.post(behind).before.store(new, Memory::Release);
    }

    fn search(&self, key: &[u8]) -> Found {
        let mut found = Found { before: [END; LEVELS], behind: [END; LEVELS], post: None };
        let mut at = END;
        // The post that ended the way on the level above: it need not be compared again.
        let mut behind = END;
        for level in (0..LEVELS).rev() {
            loop {
                let next = self.post(at).next[level].load(Memory::Acquire);
                found.behind[level] = next;
                if next == END || next == behind {
                    break;
                }
                match self.compare(next, key) {
                    Ordering::Less => at = next,
                    order => {
                        if order == Ordering::Equal {
                            found.post = Some(next);
                        }
                        behind = next;
                        break;
                    }
                }
            }
            found.before[level] = at;
        }
        found
    }

    fn compare(&self, post: u32, key: &[u8]) -> Ordering {
        let head = self.head(Stand(post));
        head.map_or(Ordering::Greater, |head| self.collation.cmp(head.key(), key))
    }

    #[inline]
    fn post(&self, number: u32) -> &Post {
        let (bucket, place) = place_of(number);
        &self.buckets[bucket].get().expect("whoever knows a number has its bucket")[place]
    }

    /// Makes sure that a bucket is there; what it takes is noted in the account of the lane's arena.
    fn bucket(&self, bucket: usize, lane: &LaneGuard<'_>) {
        let made = self.make_bucket(bucket);
        if made > 0 {
            lane.account().take(made);
        }
    }

    /// As [`List::bucket`], but returns the bytes that it took.
    fn make_bucket(&self, bucket: usize) -> u64 {
        let mut made = 0;
        self.buckets[bucket].get_or_init(|| {
            let posts: Box<[Post]> = (0..BUCKET_FIRST << bucket).map(|_| Post::empty()).collect();
            made = size_of_val(&*posts) as u64;
            posts
        });
        if made > 0 {
            self.bytes.fetch_add(made, Memory::Relaxed);
        }
        made
    }
}

impl Post {
    fn empty() -> Self {
        Post {
            slot: Slot::empty(),
            next: std::array::from_fn(|_| AtomicU32::new(END)),
            before: AtomicU32::new(END),
        }
    }
}

fn stand(post: u32) -> Option<Stand> {
    (post != END).then_some(Stand(post))
}

/// Bucket and place of a post.
#[inline]
fn place_of(number: u32) -> (usize, usize) {
    let from_first = number as usize + BUCKET_FIRST;
    let bucket = (from_first / BUCKET_FIRST).ilog2() as usize;
    (bucket, from_first - (BUCKET_FIRST << bucket))
}

/// On how many levels a post is: by its number, mixed as by a die (Steele, Lea, Flood: `SplitMix`, OOPSLA 2014).
fn levels_of(number: u32) -> usize {
    let mut mixed = u64::from(number).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    mixed = (mixed ^ mixed >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    let zeros = (mixed ^ mixed >> 31).trailing_zeros() as usize;
    1 + (zeros / 2).min(LEVELS - 1)
}
