//! LEB128 integers of up to 32 bits: 7 bits a byte, low bits first, at most 5 bytes.

/// Most bytes that [`put`] appends.
pub const BYTES_MAX: usize = 5;

/// Appends `value` to `out`.
#[inline]
pub fn put(out: &mut Vec<u8>, mut value: u32) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

/// Reads a value from the front of `bytes`; also returns how many bytes it took.
///
/// `None` if the bytes end too early or the value does not fit 32 bits.
#[inline]
#[must_use]
pub fn get(bytes: &[u8]) -> Option<(u32, usize)> {
    match bytes.first() {
        Some(&byte) if byte < 0x80 => Some((u32::from(byte), 1)),
        _ => get_long(bytes),
    }
}

fn get_long(bytes: &[u8]) -> Option<(u32, usize)> {
    let mut value = 0u64;
    for (index, &byte) in bytes.iter().take(BYTES_MAX).enumerate() {
        value |= u64::from(byte & 0x7f) << (7 * index);
        if byte < 0x80 {
            return u32::try_from(value).ok().map(|value| (value, index + 1));
        }
    }
    None
}

/// How many bytes [`put`] appends for `value`.
#[inline]
#[must_use]
pub fn len(value: u32) -> usize {
    match value {
        0..0x80 => 1,
        0x80..0x4000 => 2,
        0x4000..0x20_0000 => 3,
        0x20_0000..0x1000_0000 => 4,
        _ => 5,
    }
}
