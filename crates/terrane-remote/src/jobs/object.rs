//! Objects of the table of jobs: a header with its own checksum, then the payload (`docs/format/jobs.md`).
//!
//! Objects are created if absent and never changed. The payload of an offer and of a report is a job and its
//! outcome, which have formats of their own. Bytes of a bucket are hostile: every field is checked.

use std::ops::Range;

use terrane_base::{Error, Result};

const MAGIC: [u8; 8] = *b"trn-jobs";
const VERSION: u16 = 1;
/// Bytes before a payload.
pub(super) const JOB_HEADER_BYTES: usize = 104;
/// Where the checksum of the header is.
const CHECKSUM_AT: usize = JOB_HEADER_BYTES - 4;
/// Longest payload of an offer or a report.
pub(super) const JOB_PAYLOAD_BYTES_MAX: u64 = 64 << 20;
/// Longest text of a report, and longest name of a worker.
pub(super) const JOB_TEXT_BYTES_MAX: u64 = 4096;
/// The greatest number of an attempt.
pub(super) const JOB_ATTEMPTS_MAX: u32 = 999;

/// The kind of an object of the table of jobs. The discriminants are part of the format.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub(super) enum JobTag {
    /// The writer of this epoch offers jobs; those of older writers are void. No payload.
    Coordinator = 1,
    /// A job. The payload is the job.
    Offer = 2,
    /// An attempt at a job that a worker may claim. No payload; it has the lease and the time limit.
    Attempt = 3,
    /// A worker runs the attempt. The payload is the name of the worker.
    Claim = 4,
    /// The worker is alive. No payload.
    Beat = 5,
    /// The worker has done the job. The payload is the outcome.
    Done = 6,
    /// The worker gives the attempt back: another one may run the job. The payload is the reason.
    GivenBack = 7,
    /// The worker cannot do the job. The payload is the reason.
    Failed = 8,
    /// A worker waits for jobs. The payload is its name.
    Worker = 9,
}

impl JobTag {
    const ALL: [JobTag; 9] = [
        JobTag::Coordinator,
        JobTag::Offer,
        JobTag::Attempt,
        JobTag::Claim,
        JobTag::Beat,
        JobTag::Done,
        JobTag::GivenBack,
        JobTag::Failed,
        JobTag::Worker,
    ];

    /// The lengths that a payload may have.
    pub(super) fn payload_bytes(self) -> Range<u64> {
        match self {
            JobTag::Coordinator | JobTag::Attempt | JobTag::Beat => 0..1,
            JobTag::Offer | JobTag::Done => 1..JOB_PAYLOAD_BYTES_MAX + 1,
            JobTag::Claim | JobTag::GivenBack | JobTag::Failed | JobTag::Worker => 1..JOB_TEXT_BYTES_MAX + 1,
        }
    }

    /// True if it belongs to an attempt at a job.
    fn is_of_attempt(self) -> bool {
        !matches!(self, JobTag::Coordinator | JobTag::Offer | JobTag::Worker)
    }
}

/// The decoded header of an object of the table of jobs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct JobObject {
    /// Its kind.
    pub(super) tag: JobTag,
    /// The epoch of the writer that offers the job; 0 only for a worker that waits.
    pub(super) epoch: u64,
    /// The job's number, from 1; 0 for a coordinator and for a worker that waits.
    pub(super) number: u64,
    /// The attempt, from 1; 0 without an attempt.
    pub(super) attempt: u32,
    /// Counts the signs of life of a claim or of a worker; 0 elsewhere.
    pub(super) beat: u32,
    /// The file numbers that an attempt may use; empty elsewhere.
    pub(super) lease: Range<u32>,
    /// The age of the last sign of life, in milliseconds, from which the attempt is lost; 0 elsewhere.
    pub(super) lost_ms: u32,
    /// Drawn by the maker of the object, so that it is known again. Signs of life and reports have that of
    /// their claim.
    pub(super) nonce: u128,
    /// Bytes of the payload.
    pub(super) len: u64,
}

impl JobObject {
    /// A header with these numbers and nothing else.
    pub(super) fn new(tag: JobTag, (epoch, number): (u64, u64), attempt: u32, nonce: u128) -> JobObject {
        JobObject { tag, epoch, number, attempt, beat: 0, lease: 0..0, lost_ms: 0, nonce, len: 0 }
    }

    /// The object: this header, with the length of `payload`, and `payload`.
    pub(super) fn encode(&self, payload: &[u8]) -> Vec<u8> {
        let whole = JobObject { len: payload.len() as u64, ..self.clone() };
        assert!(whole.is_sound(), "readers refuse {whole:?}");
        let numbers = [
            self.epoch,
            self.number,
            self.attempt.into(),
            self.beat.into(),
            self.lease.start.into(),
            self.lease.end.into(),
            self.lost_ms.into(),
            payload.len() as u64,
        ];
        encoded([self.tag as u8, 0], numbers, self.nonce, payload)
    }

    /// Decodes an object: the header and the payload.
    ///
    /// # Errors
    /// `Corrupt`, without a place, if the bytes are not a whole object; `Invalid` if a later version wrote
    /// it.
    pub(super) fn decode(bytes: &[u8]) -> Result<(JobObject, &[u8])> {
        let (header, payload) = whole(bytes)?;
        let u64_at = |at: usize| u64::from_le_bytes(std::array::from_fn(|i| header[at + i]));
        let small = |at: usize| {
            u32::try_from(u64_at(at))
                .map_err(|_| Error::corrupt(format!("impossible number at byte {at} of an object of a job")))
        };
        let known = JobTag::ALL.into_iter().find(|known| *known as u8 == header[10] && header[11] == 0);
        let unknown = || Error::corrupt(format!("object of a job of unknown type {}", header[10]));
        let header = JobObject {
            tag: known.ok_or_else(unknown)?,
            epoch: u64_at(16),
            number: u64_at(24),
            attempt: small(32)?,
            beat: small(40)?,
            lease: small(48)?..small(56)?,
            lost_ms: small(64)?,
            len: u64_at(72),
            nonce: u128::from_le_bytes(std::array::from_fn(|i| header[80 + i])),
        };
        if !header.is_sound() {
            return Err(Error::corrupt(format!("object of a job with impossible numbers: {header:?}")));
        }
        if header.len != payload.len() as u64 {
            let (len, found) = (header.len, payload.len());
            let message = format!("object of a job: {len} bytes of payload expected, {found} found");
            return Err(Error::corrupt(message));
        }
        Ok((header, payload))
    }

    fn is_sound(&self) -> bool {
        let waits = self.tag == JobTag::Worker;
        let has_job = !matches!(self.tag, JobTag::Coordinator | JobTag::Worker);
        let is_attempt = self.tag == JobTag::Attempt;
        let has_beat = matches!(self.tag, JobTag::Beat | JobTag::Worker);
        waits == (self.epoch == 0)
            && self.epoch < u64::MAX / 2
            && has_job == (self.number > 0)
            && self.number < u64::MAX / 2
            && self.tag.is_of_attempt() == (self.attempt > 0)
            && self.attempt <= JOB_ATTEMPTS_MAX
            && has_beat == (self.beat > 0)
            && self.lease.start <= self.lease.end
            && (is_attempt || self.lease == (0..0))
            && (self.lease.start > 0 || self.lease == (0..0))
            && is_attempt == (self.lost_ms > 0)
            && self.tag.payload_bytes().contains(&self.len)
    }
}

fn encoded(tags: [u8; 2], numbers: [u64; 8], nonce: u128, payload: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(JOB_HEADER_BYTES + payload.len());
    out.extend_from_slice(&MAGIC);
    out.extend_from_slice(&VERSION.to_le_bytes());
    out.extend_from_slice(&tags);
    out.extend_from_slice(&crc32c::crc32c(payload).to_le_bytes());
    numbers.iter().for_each(|number| out.extend_from_slice(&number.to_le_bytes()));
    out.extend_from_slice(&nonce.to_le_bytes());
    out.resize(CHECKSUM_AT, 0);
    out.extend_from_slice(&crc32c::crc32c(&out).to_le_bytes());
    out.extend_from_slice(payload);
    out
}

/// Header and payload of an object whose magic, version and checksums are right.
fn whole(bytes: &[u8]) -> Result<(&[u8; JOB_HEADER_BYTES], &[u8])> {
    let (header, payload) = bytes
        .split_first_chunk::<JOB_HEADER_BYTES>()
        .ok_or_else(|| Error::corrupt("object of a job is cut in its header"))?;
    if header[..8] != MAGIC {
        return Err(Error::corrupt(format!("magic {:02x?}: expected {MAGIC:02x?}", &header[..8])));
    }
    let u32_at = |at: usize| u32::from_le_bytes(std::array::from_fn(|i| header[at + i]));
    for (what, at, found) in [
        ("header", CHECKSUM_AT, crc32c::crc32c(&header[..CHECKSUM_AT])),
        ("payload", 12, crc32c::crc32c(payload)),
    ] {
        if found != u32_at(at) {
            let expected = u32_at(at);
            let message =
                format!("object of a job: checksum of the {what} {found:08x}, expected {expected:08x}");
            return Err(Error::corrupt(message));
        }
    }
    let version = u16::from_le_bytes([header[8], header[9]]);
    if version != VERSION {
        let message =
            format!("object of a job of version {version}: this program reads {VERSION}; use a newer one");
        return Err(Error::invalid(message));
    }
    Ok((header, payload))
}

/// One object of each kind: for tests and as the corpus of the fuzz target.
pub(super) fn samples() -> Vec<(JobObject, &'static [u8])> {
    let object = |tag, numbers, attempt| JobObject::new(tag, numbers, attempt, 99 << 70);
    vec![
        (object(JobTag::Coordinator, (7, 0), 0), b""),
        (object(JobTag::Offer, (7, 3), 0), b"a job"),
        (JobObject { lease: 10..20, lost_ms: 10_000, ..object(JobTag::Attempt, (7, 3), 1) }, b""),
        (object(JobTag::Claim, (7, 3), 1), b"worker-1"),
        (JobObject { beat: 4, ..object(JobTag::Beat, (7, 3), 1) }, b""),
        (object(JobTag::Done, (7, 3), 1), b"an outcome"),
        (object(JobTag::GivenBack, (7, 3), 2), b"a signal"),
        (object(JobTag::Failed, (7, 3), 999), b"a reason"),
        (JobObject { beat: 1, ..object(JobTag::Worker, (0, 0), 0) }, b"worker-1"),
    ]
}

/// The object with its checksums set right, as an enemy has it; `None` if it is too short.
pub(super) fn repaired(bytes: &[u8]) -> Option<Vec<u8>> {
    let mut out = bytes.to_vec();
    let payload = crc32c::crc32c(out.get(JOB_HEADER_BYTES..)?);
    let len = (out.len() - JOB_HEADER_BYTES) as u64;
    out[..8].copy_from_slice(&MAGIC);
    out[8..10].copy_from_slice(&VERSION.to_le_bytes());
    out[12..16].copy_from_slice(&payload.to_le_bytes());
    out[72..80].copy_from_slice(&len.to_le_bytes());
    let header = crc32c::crc32c(&out[..CHECKSUM_AT]);
    out[CHECKSUM_AT..JOB_HEADER_BYTES].copy_from_slice(&header.to_le_bytes());
    Some(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_object_comes_back_and_no_flipped_bit_does() {
        for (header, payload) in samples() {
            let bytes = header.encode(payload);
            let expected = JobObject { len: payload.len() as u64, ..header };
            assert_eq!(JobObject::decode(&bytes).expect("whole"), (expected, payload));
            for at in 0..bytes.len() * 8 {
                let mut damaged = bytes.clone();
                damaged[at / 8] ^= 1 << (at % 8);
                assert!(JobObject::decode(&damaged).is_err(), "bit {at}");
            }
            for len in 0..bytes.len() {
                assert!(JobObject::decode(&bytes[..len]).is_err(), "cut at {len}");
            }
            JobObject::decode(&[&bytes[..], &[0]].concat()).expect_err("one byte too many");
        }
    }

    /// Objects whose checksums are right, as of an enemy.
    #[test]
    fn impossible_numbers_are_refused() {
        let refused = |tag: u8, numbers: [u64; 7], payload: &[u8]| {
            let mut all = [payload.len() as u64; 8];
            all[..7].copy_from_slice(&numbers);
            let bytes = encoded([tag, 0], all, 1, payload);
            let error = JobObject::decode(&bytes).expect_err("impossible");
            assert_eq!(error.kind(), terrane_base::Kind::Corrupt, "{tag} {numbers:?}");
        };
        for (tag, numbers, payload) in [
            (0, [7, 3, 0, 0, 0, 0, 0], &b"a"[..]),
            (10, [7, 3, 0, 0, 0, 0, 0], b"a"),
            (2, [0, 3, 0, 0, 0, 0, 0], b"a"),
            (2, [7, 0, 0, 0, 0, 0, 0], b"a"),
            (2, [7, u64::MAX, 0, 0, 0, 0, 0], b"a"),
            (2, [7, 3, 1, 0, 0, 0, 0], b"a"),
            (2, [7, 3, 0, 0, 0, 0, 0], b""),
            (3, [7, 3, 0, 0, 5, 6, 9], b""),
            (3, [7, 3, 1, 0, 6, 5, 9], b""),
            (3, [7, 3, 1, 0, 0, 5, 9], b""),
            (3, [7, 3, 1, 0, 5, 6, 0], b""),
            (3, [7, 3, 1, 0, 5, 1 << 32, 9], b""),
            (3, [7, 3, 1000, 0, 5, 6, 9], b""),
            (4, [7, 3, 1, 0, 0, 0, 0], &[b'a'; 4097]),
            (4, [7, 3, 1, 0, 5, 6, 0], b"a"),
            (5, [7, 3, 1, 0, 0, 0, 0], b""),
            (5, [7, 3, 1, 1, 0, 0, 0], b"a"),
            (6, [7, 3, 0, 0, 0, 0, 0], b"a"),
            (9, [7, 0, 0, 1, 0, 0, 0], b"a"),
            (9, [0, 0, 0, 0, 0, 0, 0], b"a"),
        ] {
            refused(tag, numbers, payload);
        }
    }
}
