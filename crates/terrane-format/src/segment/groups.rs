//! Walks the groups of a segment in memory.
//!
//! A walk ends at the first offset at which no valid group continues the numbering. The walk does not decide
//! whether that is the end, a torn tail or corruption: this depends on the durable-end marks of the whole
//! journal.

use std::ops::Range;

use terrane_base::record::Record;
use terrane_base::{Error, Result, SegmentId, SeqNo};

use super::{
    BATCH_HEADER_BYTES, GROUP_ALIGN, GROUP_HEADER_BYTES, GroupHeader, SEGMENT_HEADER_BYTES, SegmentHeader,
    batch_checksum, chain, segment_seed, u32_at,
};
use crate::dump;

/// How often the bytes of a segment may be checked in vain.
const WASTE_MAX: u64 = 4;

/// A group whose checksums are valid, or were when it was checked before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Group {
    /// Offset in the segment.
    pub offset: usize,
    /// Its header.
    pub header: GroupHeader,
}

/// The state of a walk after the last valid group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Walk {
    /// Bytes from the start of the segment to the end of the last valid group.
    pub offset: usize,
    /// Number of the last record up to there.
    pub last_seq: SeqNo,
    /// Running checksum up to there; see [`super::chain`].
    pub checksum: u32,
}

/// The valid groups of a segment, in order; ends at the first offset that holds none.
#[derive(Clone, Debug)]
pub struct Groups<'a> {
    segment: &'a [u8],
    seed: u32,
    walk: Walk,
    /// Bytes of groups that were checked and found damaged.
    wasted: u64,
}

impl<'a> Groups<'a> {
    /// Walks `segment`, the bytes of a whole segment or of its valid part.
    ///
    /// # Errors
    /// `Corrupt`, without a place, if the segment header is not valid.
    pub fn new(segment: &'a [u8]) -> Result<(SegmentHeader, Groups<'a>)> {
        let (header, checksum) = SegmentHeader::decode(segment)?;
        let walk = Walk { offset: SEGMENT_HEADER_BYTES, last_seq: header.previous.last_seq, checksum };
        Ok((header, Groups { segment, seed: segment_seed(header.id, header.salt), walk, wasted: 0 }))
    }

    /// Walks from the first valid group of segment `id`, whatever precedes it; `None` if no group is valid.
    /// `salt` is that of its groups. For repair.
    #[must_use]
    pub fn anywhere(segment: &'a [u8], id: SegmentId, salt: Option<u32>) -> Option<Groups<'a>> {
        // Directly before the offset of the first group, so that the search begins there.
        let walk = Walk { offset: SEGMENT_HEADER_BYTES - GROUP_ALIGN, last_seq: SeqNo(0), checksum: 0 };
        let mut groups = Groups { segment, seed: segment_seed(id, salt), walk, wasted: 0 };
        groups.skip_damage()?;
        Some(groups)
    }

    /// Goes on behind `walk`, at which an earlier walk of segment `id` ended; see [`Groups::skip_damage`].
    /// `salt` is that of its groups.
    #[must_use]
    pub fn behind(segment: &'a [u8], id: SegmentId, salt: Option<u32>, walk: Walk) -> Groups<'a> {
        Groups { segment, seed: segment_seed(id, salt), walk, wasted: 0 }
    }

    /// Continues at the next valid group header; returns the number of its first record, or `None` if there
    /// is no other. For repair: the bytes between are lost, so the running checksum means nothing from then
    /// on.
    ///
    /// Returns `None` once the damaged groups add up to several times the segment: only a forged segment
    /// nests damaged groups, and checking them would take unbounded time.
    pub fn skip_damage(&mut self) -> Option<SeqNo> {
        if self.wasted > WASTE_MAX * self.segment.len() as u64 {
            return None;
        }
        let start = (self.walk.offset + 1).next_multiple_of(GROUP_ALIGN);
        let mut offsets = (start..self.segment.len()).step_by(GROUP_ALIGN);
        let found = offsets.find_map(|offset| {
            let (header, _) = GroupHeader::decode(self.segment, self.seed, offset)?;
            (header.first_seq > self.walk.last_seq).then_some((offset, header.first_seq))
        });
        let (offset, first_seq) = found?;
        self.walk = Walk { offset, last_seq: SeqNo(first_seq.0 - 1), checksum: 0 };
        Some(first_seq)
    }

    /// The state after the last group that [`Iterator::next`] returned.
    #[must_use]
    pub fn walk(&self) -> Walk {
        self.walk
    }

    /// The reason why the walk ended: what was expected and what was found.
    #[must_use]
    pub fn stop_reason(&self) -> String {
        let expected = self.walk.last_seq.0 + 1;
        match GroupHeader::decode(self.segment, self.seed, self.walk.offset) {
            None => format!(
                "expected a group starting with sequence number {expected}, found no valid group header"
            ),
            Some((header, _)) if header.first_seq.0 != expected => {
                format!(
                    "expected a group starting with #{expected}, found one starting with {}",
                    header.first_seq
                )
            }
            Some((header, checksum)) => match self.check_batches(&header, checksum) {
                Err(why) => why,
                Ok(_) => "found a valid group".to_owned(),
            },
        }
    }

    /// Returns true if a valid group header lies at the end of the walk, but its group is damaged.
    #[must_use]
    pub fn is_torn(&self) -> bool {
        GroupHeader::decode(self.segment, self.seed, self.walk.offset).is_some()
    }

    /// Checks every batch of a group; returns the running checksum after it.
    fn check_batches(&self, header: &GroupHeader, group_checksum: u32) -> std::result::Result<u32, String> {
        let start = self.walk.offset;
        let group = &self.segment[start..start + header.len as usize];
        check_batches(group, start, (header, group_checksum), self.walk.checksum)
    }
}

/// Checks every batch of the group `group` at `start` of its segment, given its header and the header's
/// checksum; returns the running checksum after it. `running` is the one before it.
///
/// # Errors
/// The reason why the group is damaged.
pub fn check_batches(
    group: &[u8],
    start: usize,
    (header, group_checksum): (&GroupHeader, u32),
    running: u32,
) -> std::result::Result<u32, String> {
    let mut running = chain(running, group_checksum);
    let (mut at, mut record_count) = (GROUP_HEADER_BYTES, 0u64);
    for index in 0..header.batch_count {
        let cut = || format!("batch {index} of the group passes the group's end");
        let fields = group.get(at..at + BATCH_HEADER_BYTES).ok_or_else(cut)?;
        let (len, count, expected) = (u32_at(fields, 0), u32_at(fields, 4), u32_at(fields, 8));
        let from = at + BATCH_HEADER_BYTES;
        let records = from.checked_add(len as usize).and_then(|to| group.get(from..to)).ok_or_else(cut)?;
        let found = batch_checksum(group_checksum, (start + at) as u64, count, records);
        if found != expected && !terrane_base::planted!(IgnoreBatchChecksum) {
            return Err(format!(
                "batch {index} of the group: expected checksum {expected:08x}, found {found:08x}"
            ));
        }
        running = chain(running, found);
        record_count += u64::from(count);
        at = from + len as usize;
    }
    if record_count != u64::from(header.record_count) || at.next_multiple_of(GROUP_ALIGN) != group.len() {
        return Err("the batches do not add up to the group".to_owned());
    }
    Ok(running)
}

impl Iterator for Groups<'_> {
    type Item = Group;

    fn next(&mut self) -> Option<Group> {
        let offset = self.walk.offset;
        let (header, group_checksum) = GroupHeader::decode(self.segment, self.seed, offset)?;
        if header.first_seq.0 != self.walk.last_seq.0 + 1 && !terrane_base::planted!(ReplayPastGap) {
            return None;
        }
        let Ok(checksum) = self.check_batches(&header, group_checksum) else {
            self.wasted += u64::from(header.len);
            return None;
        };
        self.walk = Walk { offset: offset + header.len as usize, last_seq: header.last_seq(), checksum };
        Some(Group { offset, header })
    }
}

/// A batch within a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Batch {
    /// Offset of its records in the segment.
    pub offset: usize,
    /// Bytes of its records.
    pub len: usize,
    /// Number of its first record.
    pub first_seq: SeqNo,
    /// Records in it.
    pub record_count: u32,
}

/// The batches of a valid group of [`Groups`], in order.
#[derive(Clone, Debug)]
pub struct Batches<'a> {
    segment: &'a [u8],
    at: usize,
    left: u32,
    next_seq: SeqNo,
}

impl<'a> Batches<'a> {
    /// The batches of `group`, which was found in `segment`.
    #[must_use]
    pub fn new(segment: &'a [u8], group: &Group) -> Self {
        Batches {
            segment,
            at: group.offset + GROUP_HEADER_BYTES,
            left: group.header.batch_count,
            next_seq: group.header.first_seq,
        }
    }
}

impl Iterator for Batches<'_> {
    type Item = Batch;

    fn next(&mut self) -> Option<Batch> {
        self.left = self.left.checked_sub(1)?;
        let fields = self.segment.get(self.at..self.at + BATCH_HEADER_BYTES)?;
        let (len, record_count) = (u32_at(fields, 0) as usize, u32_at(fields, 4));
        let batch =
            Batch { offset: self.at + BATCH_HEADER_BYTES, len, first_seq: self.next_seq, record_count };
        self.segment.get(batch.offset..)?.get(..len)?;
        self.at = batch.offset + len;
        self.next_seq = SeqNo(self.next_seq.0 + u64::from(record_count));
        Some(batch)
    }
}

impl Batch {
    /// Calls `each` with the offset in the segment, the sequence number and the value of every record.
    ///
    /// # Errors
    /// `Corrupt`, without a place, if the bytes are not exactly the records that the header promises; any
    /// error that `each` returns.
    pub fn records<'a>(
        &self,
        segment: &'a [u8],
        mut each: impl FnMut(usize, SeqNo, &Record<'a>) -> Result<()>,
    ) -> Result<()> {
        let bytes = segment.get(self.offset..).and_then(|rest| rest.get(..self.len));
        let bytes = bytes.ok_or_else(|| Error::corrupt("batch passes the end of the segment"))?;
        let mut at = 0;
        for index in 0..u64::from(self.record_count) {
            let (record, len) = Record::decode(&bytes[at..])?;
            each(self.offset + at, SeqNo(self.first_seq.0 + index), &record)?;
            at += len;
        }
        if at != bytes.len() {
            return Err(Error::corrupt(format!(
                "expected {} records in {} bytes, found them in {at}",
                self.record_count,
                bytes.len()
            )));
        }
        Ok(())
    }
}

/// The greatest durable-end mark in any valid group header of segment `id` with this `salt`, at or after
/// `from`, across damage; `None` if there is no valid header.
#[must_use]
pub fn durable_marks(segment: &[u8], id: SegmentId, salt: Option<u32>, from: usize) -> Option<SeqNo> {
    let seed = segment_seed(id, salt);
    let mut greatest = None;
    let start = from.max(SEGMENT_HEADER_BYTES).next_multiple_of(GROUP_ALIGN);
    let words = segment.get(start..).unwrap_or_default().chunks_exact(GROUP_ALIGN);
    for (index, _) in words.enumerate().filter(|(_, word)| word[4..] != [0; 4]) {
        if let Some((header, _)) = GroupHeader::decode(segment, seed, start + index * GROUP_ALIGN) {
            greatest = greatest.max(Some(header.durable));
        }
    }
    greatest
}

/// Passes the meaning of each part of a segment to `line`, front to back; stops where no valid group follows.
///
/// # Errors
/// `Corrupt`, without a place, if the segment header or a record is not valid.
pub fn describe(segment: &[u8], line: &mut dyn FnMut(Range<usize>, String)) -> Result<()> {
    let (header, mut groups) = Groups::new(segment)?;
    let salt = header.salt.map_or(String::new(), |salt| format!(", salt {salt:08x}"));
    line(
        0..SEGMENT_HEADER_BYTES,
        format!(
            "segment {}, file {}, {} bytes, after {}, manifest at edit {}{salt}",
            header.id, header.file, header.bytes, header.previous, header.edit
        ),
    );
    for group in groups.by_ref() {
        let head = &group.header;
        let what = if head.batch_count == 0 {
            format!(
                "mark before {}, durable up to {}, {} edits since",
                head.first_seq, head.durable, head.edits
            )
        } else {
            format!(
                "group of {} bytes from {}, durable up to {}, {} batches, {} records",
                head.len, head.first_seq, head.durable, head.batch_count, head.record_count
            )
        };
        line(group.offset..group.offset + GROUP_HEADER_BYTES, what);
        for batch in Batches::new(segment, &group) {
            let at = batch.offset - BATCH_HEADER_BYTES;
            line(at..batch.offset, format!("batch of {} bytes, {} records", batch.len, batch.record_count));
            batch.records(segment, |offset, seq, record| {
                let (words, value) = dump::stored(Some(record.kind), record.value);
                let what = format!(
                    "{seq} {:?}{words} {} key {} value {} bytes",
                    record.kind,
                    record.table,
                    record.key.escape_ascii(),
                    value.len()
                );
                line(offset..offset + record.encoded_len(), what);
                Ok(())
            })?;
        }
    }
    line(groups.walk().offset..segment.len(), groups.stop_reason());
    Ok(())
}
