//! Which calls of a device fail, and how.

use std::io;
use std::path::Path;

use terrane_base::{Error, Kind};

use crate::call::Call;

/// How a call fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Failure {
    /// EIO: the device is defective; an error of kind `Io`.
    Broken,
    /// ENOSPC: the device is full; an error of kind `Full`.
    Full,
    /// No error: a read returns this bit of the file, counted from its front, inverted. What the device has
    /// stays right. Selects, of the reads that match, those that the bit lies in.
    WrongBit(u64),
}

impl Failure {
    /// Where in the bytes of a read the wrong bit lies: the byte, and the mask of the bit.
    fn wrong_in(self, offset: u64, len: usize) -> Option<(usize, u8)> {
        let Failure::WrongBit(bit) = self else { return None };
        let at = usize::try_from((bit / 8).checked_sub(offset)?).ok()?;
        (at < len).then_some((at, 1 << (bit % 8)))
    }
}

/// Selects the calls that fail: calls of one kind, on paths that contain a text, from the n-th on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    call: Call,
    path_part: String,
    /// Number of matching calls that still succeed.
    skip: u64,
    lasting: bool,
    failure: Failure,
}

impl Fault {
    /// The next `call` fails once.
    #[must_use]
    pub fn new(call: Call, failure: Failure) -> Self {
        assert!(
            call == Call::Read || !matches!(failure, Failure::WrongBit(_)),
            "{call:?} returns no bytes of a file"
        );
        Fault { call, path_part: String::new(), skip: 0, lasting: false, failure }
    }

    /// Lets the first `skip` matching calls succeed.
    #[must_use]
    pub fn after(mut self, skip: u64) -> Self {
        self.skip = skip;
        self
    }

    /// Fails every matching call from then on, instead of one only.
    #[must_use]
    pub fn lasting(mut self) -> Self {
        self.lasting = true;
        self
    }

    /// Counts a call that matches; returns true if it fails. Only one fault of a call is used up.
    fn is_due(&mut self, is_first: bool) -> bool {
        let is_due = self.skip == 0 && is_first;
        if self.skip > 0 {
            self.skip -= 1;
        } else if is_first {
            // A fault that was used up skips the largest count, which is never reached.
            self.skip = if self.lasting { 0 } else { u64::MAX };
        }
        is_due
    }

    /// Matches only paths that contain `part`.
    #[must_use]
    pub fn on(mut self, part: impl Into<String>) -> Self {
        self.path_part = part.into();
        self
    }
}

/// The faults of a device, and what was counted of its calls.
#[derive(Debug)]
pub(super) struct Plan {
    pub(super) counts: [u64; Call::COUNT],
    pub(super) faults: Vec<Fault>,
    /// Number of wrong bits that reads returned.
    pub(super) wrong_bits: u64,
    /// Number of changing calls that still succeed before the power is cut.
    pub(super) cut_after: Option<u64>,
    pub(super) is_cut: bool,
}

impl Plan {
    /// Counts a call and decides whether and how it fails.
    pub(super) fn decide(&mut self, call: Call, path: &Path) -> Option<Verdict> {
        self.counts[call as usize] += 1;
        if call.changes()
            && let Some(left) = &mut self.cut_after
        {
            if *left == 0 {
                self.is_cut = true;
            }
            *left = left.saturating_sub(1);
        }
        if self.is_cut {
            return Some(Verdict::Cut);
        }
        let path = path.to_string_lossy();
        let matching = |fault: &&mut Fault| {
            fault.call == call
                && path.contains(&fault.path_part)
                && !matches!(fault.failure, Failure::WrongBit(_))
        };
        let mut verdict = None;
        for fault in self.faults.iter_mut().filter(matching) {
            if fault.is_due(verdict.is_none()) {
                verdict = Some(fault.failure);
            }
        }
        verdict.map(Verdict::Fails)
    }

    /// Inverts the bits that a read of `bytes` from `offset`, which succeeded, returns wrong.
    pub(super) fn misread(&mut self, path: &Path, offset: u64, bytes: &mut [u8]) {
        let path = path.to_string_lossy();
        for fault in self.faults.iter_mut().filter(|fault| path.contains(&fault.path_part)) {
            if let Some((at, mask)) = fault.failure.wrong_in(offset, bytes.len())
                && fault.is_due(true)
            {
                bytes[at] ^= mask;
                self.wrong_bits += 1;
            }
        }
    }
}

/// The outcome of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    Fails(Failure),
    Cut,
}

impl Verdict {
    #[cold]
    pub(super) fn error(self, call: Call, path: &Path) -> Error {
        let path = path.display();
        match self {
            Verdict::Fails(Failure::Broken) => {
                Error::io(format!("{call:?} of {path}"), io::Error::from_raw_os_error(EIO))
            }
            Verdict::Fails(Failure::Full) => {
                Error::io(format!("{call:?} of {path}"), io::ErrorKind::StorageFull.into())
            }
            Verdict::Fails(Failure::WrongBit(bit)) => {
                unreachable!("a read with the wrong bit {bit} is not a failed call")
            }
            Verdict::Cut => Error::new(Kind::Io, format!("{call:?} of {path}: the power was cut")),
        }
    }
}

const EIO: i32 = rustix::io::Errno::IO.raw_os_error();
