//! Pointer to an encoded record in segment memory.
//!
//! ```text
//! bits 0..48: address of the record's first byte | bits 48..64: index of its segment in the memtable's table
//! ```
//!
//! User space ends below 2^47 on the 64-bit systems we run on unless a program asks for more;
//! [`RecordPtr::new`] asserts it.
//!
//! # Which thread may touch what
//! 1. The journal wrote the record before it was indexed and never changes it: any thread may read its bytes.
//! 2. The bytes around the record may be written at the same time: this module never reads outside the
//!    record.
//! 3. The memtable for which the pointer was made keeps the segment's memory alive (`segments`), so a
//!    reference that borrows from the memtable may point into the record.
#![expect(unsafe_code, reason = "follows raw pointers into segments")]

use terrane_base::RecordKind;

const ADDRESS_BITS: u32 = 48;
const ADDRESS_MASK: usize = (1 << ADDRESS_BITS) - 1;

/// See the [module](self).
#[derive(Clone, Copy)]
pub(crate) struct RecordPtr(*const u8);

// SAFETY: leads to immutable bytes (rule 1).
unsafe impl Send for RecordPtr {}
// SAFETY: as above.
unsafe impl Sync for RecordPtr {}

/// The decoded parts of a record, borrowed from segment memory.
#[derive(Clone, Copy)]
pub(crate) struct RecordView<'t> {
    pub(crate) key: &'t [u8],
    pub(crate) value: &'t [u8],
    /// Bytes of the whole encoded record.
    pub(crate) len: usize,
}

impl RecordPtr {
    /// A pointer to the record at `start` in the segment with index `segment`.
    #[inline]
    pub(crate) fn new(start: *const u8, segment: u16) -> Self {
        assert!(start.addr() <= ADDRESS_MASK, "segment memory lies below 2^48");
        RecordPtr(start.map_addr(|address| address | usize::from(segment) << ADDRESS_BITS))
    }

    /// Index of the segment in the memtable's table.
    #[inline]
    pub(crate) fn segment(self) -> u16 {
        (self.0.addr() >> ADDRESS_BITS) as u16
    }

    /// The record's first byte.
    #[inline]
    pub(crate) fn start(self) -> *const u8 {
        self.0.map_addr(|address| address & ADDRESS_MASK)
    }

    /// Reads the record's kind.
    ///
    /// # Safety
    /// As [`RecordPtr::view`].
    #[inline]
    pub(crate) unsafe fn kind(self) -> RecordKind {
        // SAFETY: a record has at least one byte.
        let number = unsafe { self.start().read() };
        RecordKind::from_u8(number).expect("an indexed record has a known kind")
    }

    /// Decodes the record.
    ///
    /// # Safety
    /// A whole, valid record lies at the address, and its memory lives and does not change for `'t`.
    #[inline]
    pub(crate) unsafe fn view<'t>(self) -> RecordView<'t> {
        let start = self.start();
        let mut at = 1; // the kind
        // SAFETY: the three varints and then key and value belong to the record (layout in
        // `terrane_base::record`); it lives and stays for `'t` by the caller's promise.
        unsafe {
            let _table = varint(start, &mut at);
            let key_len = varint(start, &mut at) as usize;
            let value_len = varint(start, &mut at) as usize;
            debug_assert!(key_len <= terrane_base::key::KEY_BYTES_MAX, "these bytes are not a record");
            let key = std::slice::from_raw_parts(start.add(at), key_len);
            let value = std::slice::from_raw_parts(start.add(at + key_len), value_len);
            RecordView { key, value, len: at + key_len + value_len }
        }
    }
}

/// Reads the varint at `start + at` and moves `at` after it.
///
/// `terrane_base::varint::get` takes a slice, and a slice of unknown length would cover bytes that another
/// thread may be writing (rule 2).
///
/// # Safety
/// A whole varint of at most 32 bits is stored there.
#[inline]
unsafe fn varint(start: *const u8, at: &mut usize) -> u32 {
    // SAFETY: by the caller's promise every byte up to one below 0x80 belongs to the varint.
    let mut byte = unsafe { start.add(*at).read() };
    *at += 1;
    let mut value = u32::from(byte & 0x7f);
    let mut shift = 7;
    while byte >= 0x80 {
        debug_assert!(shift <= 28, "a number of 32 bits has at most five bytes");
        // SAFETY: as above; the byte before said that another one follows.
        byte = unsafe { start.add(*at).read() };
        *at += 1;
        value |= u32::from(byte & 0x7f) << shift;
        shift += 7;
    }
    value
}
