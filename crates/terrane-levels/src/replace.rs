//! Replaces extents of a level: plan, check, commit.
//!
//! 1. Find the chunks that removals and additions touch; neighbours among them form a stretch.
//! 2. Widen a stretch that would leave a chunk too short.
//! 3. Merge the extents that stay in each stretch with the added ones, check their order, divide them evenly
//!    into new chunks.
//! 4. Only when every stretch has passed: replace the old chunks by the new ones.

use std::ops::Range;

use terrane_base::{Collation, Error, Result};
use terrane_format::extent::ExtentMeta;

use crate::chunk::{CHUNK_LEN_MAX, CHUNK_LEN_MIN, Chunk, HasMeta, Totals, top};
use crate::level::{Level, Removal};

/// New chunks for a range of old ones. Stretches are in order and not adjacent.
pub(crate) struct Stretch<E> {
    old: Range<usize>,
    new: Vec<Chunk<E>>,
}

impl<E: HasMeta> Level<E> {
    /// The level without the extents at the ascending indexes `hidden`. Compares no keys, so that a failing
    /// or contradictory order cannot make it fail; chunks may be short. Requires: the indexes are within
    /// `0..len()`.
    #[must_use]
    pub fn without(&self, hidden: &[usize]) -> Self {
        debug_assert!(hidden.is_sorted_by(|a, b| a < b), "places ascend, each once: {hidden:?}");
        let mut rest = hidden.iter().copied().peekable();
        let mut plan: Vec<Stretch<E>> = Vec::new();
        while let Some(&next) = rest.peek() {
            let first = self.chunk_of(next);
            let mut old = first..first;
            let mut stays: Vec<E> = Vec::new();
            while rest.peek().is_some_and(|&next| self.chunk_of(next) == old.end) {
                let items = (self.starts[old.end] as usize..).zip(self.chunks[old.end].iter());
                stays.extend(
                    items.filter(|(index, _)| rest.next_if_eq(index).is_none()).map(|(_, item)| item.clone()),
                );
                old.end += 1;
            }
            plan.push(Stretch { new: cut(&stays), old });
        }
        let mut level = self.clone();
        level.carry_out(plan);
        assert!(
            level.len() + hidden.len() == self.len(),
            "{} of {} extents are left",
            level.len(),
            self.len()
        );
        level
    }

    /// Steps 1 to 3. Also returns the extents that are removed.
    pub(crate) fn plan(
        &self,
        removed: &[Removal<'_>],
        mut added: Vec<E>,
    ) -> Result<(Vec<Stretch<E>>, Vec<E>)> {
        let gone = self.locate(removed)?;
        let collation = added.first().map_or(Collation::BYTES, |item| item.meta().collation.clone());
        collation.sort_by_key(&mut added, |item| &item.meta().smallest);
        let mut stretches = Vec::new();
        let mut gone_rest = gone.as_slice();
        let mut added_rest = added.as_slice();
        for old in self.touched(&gone, &added) {
            let (gone_end, added_end) = match self.chunks.get(old.end) {
                Some(next) => (
                    gone_rest.partition_point(|&index| index < self.starts[old.end] as usize),
                    added_rest.partition_point(|item| begins_before(item.meta(), next.smallest())),
                ),
                None => (gone_rest.len(), added_rest.len()),
            };
            let (gone_here, added_here) = (&gone_rest[..gone_end], &added_rest[..added_end]);
            (gone_rest, added_rest) = (&gone_rest[gone_end..], &added_rest[added_end..]);
            let items = self.merge(&old, gone_here, added_here)?;
            stretches.push(Stretch { new: cut(&items), old });
        }
        if !gone_rest.is_empty() || !added_rest.is_empty() {
            return Err(Error::invalid(format!(
                "extents that are added lie in no stretch of their level: order {collation:?} contradicts itself"
            ))
            .of_order());
        }
        let went =
            || stretches.iter().flat_map(|it| &self.chunks[it.old.clone()]).map(Chunk::len).sum::<usize>();
        let came = || stretches.iter().flat_map(|it| &it.new).map(Chunk::len).sum::<usize>();
        debug_assert!(
            came() + gone.len() == went() + added.len(),
            "new chunks have each extent that stays or comes: {} for {} of which {} go, and {} that come",
            came(),
            went(),
            gone.len(),
            added.len()
        );
        Ok((stretches, gone.iter().map(|&index| self.get(index).clone()).collect()))
    }

    /// Indexes of the extents to be removed, ascending.
    fn locate(&self, removed: &[Removal<'_>]) -> Result<Vec<usize>> {
        let mut gone = Vec::with_capacity(removed.len());
        for removal in removed {
            let index = self.find(removal.smallest);
            let found = (index < self.len()).then(|| self.get(index).meta());
            if found.is_none_or(|meta| meta.id != removal.id || meta.smallest != removal.smallest) {
                let message = format!("extent {} is missing and cannot be removed", removal.id);
                return Err(Error::invalid(message).of_order());
            }
            gone.push(index);
        }
        debug_assert_eq!(gone.len(), removed.len(), "each removal has one place");
        gone.sort_unstable();
        match gone.windows(2).find(|pair| pair[0] == pair[1]) {
            Some(pair) => {
                let id = self.get(pair[0]).meta().id;
                Err(Error::invalid(format!("extent {id} is to be removed twice")).of_order())
            }
            None => Ok(gone),
        }
    }

    /// The ranges of chunks to replace: steps 1 and 2.
    fn touched(&self, gone: &[usize], added: &[E]) -> Vec<Range<usize>> {
        if self.chunks.is_empty() {
            return (!added.is_empty()).then_some(0..0).into_iter().collect();
        }
        let last = self.chunks.len() - 1;
        // Chunk, and the number of extents that the change adds to it.
        let mut changes: Vec<(usize, isize)> = gone.iter().map(|&index| (self.chunk_of(index), -1)).collect();
        changes.extend(added.iter().map(|item| (self.find_chunk(&item.meta().smallest).min(last), 1)));
        changes.sort_unstable();
        let mut stretches: Vec<(Range<usize>, isize)> = Vec::new();
        for (chunk, change) in changes {
            match stretches.last_mut() {
                Some((old, len)) if chunk < old.end => *len += change,
                _ => stretches.push((chunk..chunk + 1, self.chunks[chunk].len() as isize + change)),
            }
        }
        let stretches = self.widen(stretches);
        let is_apart = stretches.is_sorted_by(|one, next| one.end <= next.start);
        debug_assert!(is_apart, "a chunk would be replaced twice: {stretches:?}");
        stretches
    }

    /// Joins adjacent stretches and widens short ones by a neighbour.
    fn widen(&self, stretches: Vec<(Range<usize>, isize)>) -> Vec<Range<usize>> {
        let mut wide: Vec<(Range<usize>, isize)> = Vec::with_capacity(stretches.len());
        for (mut old, mut len) in stretches {
            loop {
                match wide.last() {
                    Some((before, _)) if before.end >= old.start => {
                        let (before, before_len) = wide.pop().expect("just seen");
                        // A stretch before that was widened to the right covers chunks of this one.
                        let shared: usize =
                            (old.start..before.end.min(old.end)).map(|i| self.chunks[i].len()).sum();
                        len += before_len - shared as isize;
                        old = before.start..old.end.max(before.end);
                    }
                    _ if len >= CHUNK_LEN_MIN as isize => break,
                    _ if old.end < self.chunks.len() => {
                        len += self.chunks[old.end].len() as isize;
                        old.end += 1;
                    }
                    _ if old.start > 0 => {
                        old.start -= 1;
                        len += self.chunks[old.start].len() as isize;
                    }
                    _ => break,
                }
            }
            wide.push((old, len));
        }
        debug_assert!(wide.windows(2).all(|pair| pair[0].0.end < pair[1].0.start), "stretches are apart");
        wide.into_iter().map(|(old, _)| old).collect()
    }

    /// Step 3: the new content of the stretch `old`, checked against itself and its neighbours.
    fn merge(&self, old: &Range<usize>, gone: &[usize], added: &[E]) -> Result<Vec<E>> {
        let mut gone = gone.iter().copied().peekable();
        let mut added = added.iter().peekable();
        let before = old.start.checked_sub(1).map(|index| &self.chunks[index]);
        let mut merged: Vec<E> = Vec::new();
        let mut push = |item: &E| {
            let last = merged.last().or_else(|| before.map(|chunk| chunk.get(chunk.len() - 1)));
            check_order(last, item)?;
            merged.push(item.clone());
            Ok(())
        };
        let stays = self.chunks[old.clone()].iter().flat_map(|chunk| chunk.iter());
        for (index, item) in (self.starts.get(old.start).map_or(0, |&start| start as usize)..).zip(stays) {
            if gone.next_if_eq(&index).is_some() {
                continue;
            }
            while let Some(first) = added.next_if(|added| begins_before(added.meta(), &item.meta().smallest))
            {
                push(first)?;
            }
            push(item)?;
        }
        added.try_for_each(&mut push)?;
        debug_assert!(gone.peek().is_none(), "each extent that goes lies in its stretch, {old:?}");
        if let (Some(last), Some(after)) = (merged.last(), self.chunks.get(old.end)) {
            check_order(Some(last), after.get(0))?;
        }
        Ok(merged)
    }

    /// Step 4: cannot fail. Reads no chunk that stays: there are many, and each would be a cache miss.
    pub(crate) fn carry_out(&mut self, plan: Vec<Stretch<E>>) {
        // From the back, so that the indexes of earlier stretches stay valid.
        for Stretch { old, new } in plan.into_iter().rev() {
            let totals = |chunks: &[Chunk<E>]| {
                chunks.iter().fold(Totals::default(), |sum, chunk| sum.plus(chunk.totals))
            };
            let (came, went) = (totals(&new), totals(&self.chunks[old.clone()]));
            let mut start = self.starts.get(old.start).copied().unwrap_or(self.totals.extents as u32);
            let starts = new.iter().map(|chunk| {
                let here = start;
                start += chunk.len() as u32;
                here
            });
            let new_end = old.start + new.len();
            self.starts.splice(old.clone(), starts);
            for later in &mut self.starts[new_end..] {
                *later = later.wrapping_add(came.extents as u32).wrapping_sub(went.extents as u32);
            }
            self.fences.splice(old.clone(), new.iter().map(|chunk| chunk.largest()));
            self.chunks.splice(old, new);
            self.totals = self.totals.minus(went).plus(came);
        }
        assert!(self.chunks.len() == self.starts.len(), "one start for each chunk");
        let last = self.starts.last().map_or(0, |start| u64::from(*start));
        let len = self.chunks.last().map_or(0, |chunk| last + chunk.len() as u64);
        assert!(len == self.totals.extents, "{len} extents by the starts, {} counted", self.totals.extents);
        let collation = self.chunks.first().map_or(Collation::BYTES, |chunk| chunk.collation().clone());
        self.fences.refresh_prefix(&collation, |index| self.chunks[index].largest());
    }
}

/// Returns true if an extent begins before `key`.
fn begins_before(meta: &ExtentMeta, key: &[u8]) -> bool {
    meta.collation.lt(&meta.smallest, key)
}

/// Divides items evenly into as few chunks as possible.
fn cut<E: HasMeta>(items: &[E]) -> Vec<Chunk<E>> {
    let count = items.len().div_ceil(CHUNK_LEN_MAX);
    (0..count).map(|i| Chunk::new(&items[items.len() * i / count..items.len() * (i + 1) / count])).collect()
}

/// Checks that `item` is in order itself and begins after the end of `last`.
pub(crate) fn check_order<E: HasMeta>(last: Option<&E>, item: &E) -> Result<()> {
    let meta = item.meta();
    let collation = &meta.collation;
    if collation.lt(top(meta), &meta.smallest) {
        let message = format!("extent {} has a smallest key above its largest", meta.id);
        return Err(Error::invalid(message).of_order());
    }
    match last.map(HasMeta::meta) {
        Some(last) if collation.le(&meta.smallest, top(last)) && !terrane_base::planted!(AcceptOverlap) => {
            Err(Error::invalid(format!("extents {} and {} overlap", last.id, meta.id)).of_order())
        }
        _ => Ok(()),
    }
}
