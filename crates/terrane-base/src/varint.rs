//! LEB128 integers: 7 bits a byte, low bits first; of 32 bits in at most 5 bytes, of 64 bits in at most 10.

/// The first value that takes more than one byte.
pub(crate) const ONE_BYTE_END: u8 = 0x80;
/// Most bytes that [`put`] appends.
pub const BYTES_MAX: usize = 5;
/// Most bytes that [`put_long`] appends.
pub const LONG_BYTES_MAX: usize = 10;

/// Appends `value` to `out`.
#[inline]
pub fn put(out: &mut Vec<u8>, value: u32) {
    put_long(out, value.into());
}

/// Appends `value` to `out`; one that fits 32 bits as [`put`] does.
#[inline]
pub fn put_long(out: &mut Vec<u8>, mut value: u64) {
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
        _ => get_short(bytes),
    }
}

fn get_short(bytes: &[u8]) -> Option<(u32, usize)> {
    let (value, taken) = get_long(&bytes[..bytes.len().min(BYTES_MAX)])?;
    u32::try_from(value).ok().map(|value| (value, taken))
}

/// As [`get`], of up to 64 bits.
#[inline]
#[must_use]
pub fn get_long(bytes: &[u8]) -> Option<(u64, usize)> {
    let mut value = 0;
    for (index, &byte) in bytes.iter().take(LONG_BYTES_MAX).enumerate() {
        if index == LONG_BYTES_MAX - 1 && byte > 1 {
            return None;
        }
        value |= u64::from(byte & 0x7f) << (7 * index);
        if byte < 0x80 {
            return Some((value, index + 1));
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_64_bits_are_decoded_and_larger_ones_are_refused() {
        let mut numbers: Vec<u64> =
            (0..64).flat_map(|bit| [1 << bit, (1 << bit) - 1, u64::MAX >> bit]).collect();
        numbers.push(0);
        for number in numbers {
            let mut bytes = Vec::new();
            put_long(&mut bytes, number);
            assert_eq!(get_long(&bytes), Some((number, bytes.len())));
            assert_eq!(get_long(&bytes[..bytes.len() - 1]), None);
            let short = u32::try_from(number).ok();
            assert_eq!(get(&bytes), short.map(|number| (number, bytes.len())));
            assert!(short.is_none_or(|short| len(short) == bytes.len()));
        }
        assert_eq!(get_long(&[0xff; 10]), None, "more than 64 bits");
        assert_eq!(get_long(&[0x80; 10]), None, "too long");
    }
}
