//! The bytes of a key, from its number.
//!
//! ```text
//! in order, number fits        0 0 ... 0 decimal digits          (db_bench, YCSB with ordered inserts)
//! hashed, 16 bytes or more     0 0 ... 0 16 hexadecimal digits of 2 x scatter(number)
//! else                         0 0 ... 0 8 bytes, big-endian, of 2 x number or 2 x scatter(number)
//! ```
//!
//! Keys have a fixed length, so a missing key cannot be made by appending. It is made near the key of a
//! number, inside the range of the existing keys of that number's table: in the doubled forms the odd
//! neighbour, in the decimal form with a last character that is not a digit. Both are sure where a table has
//! at least 11 keys.

use super::permutation::scatter;
use crate::plan::Data;

/// Writes keys.
#[derive(Clone, Debug)]
pub struct Keys {
    form: Form,
    bytes: usize,
    tables: u64,
    hashed: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Form {
    Decimal,
    Hexadecimal,
    Binary,
}

impl Keys {
    /// The keys of `data`, whose `key_bytes` is at least 8.
    #[must_use]
    pub fn new(data: &Data) -> Self {
        // Room for ten times the loaded keys: inserts go on above them.
        let digits = data.keys.max(1).ilog10() as usize + 2;
        let form = match data.hashed_keys {
            false if data.key_bytes >= digits => Form::Decimal,
            true if data.key_bytes >= 16 => Form::Hexadecimal,
            _ => Form::Binary,
        };
        let tables = u64::from(data.tables.max(1));
        Keys { form, bytes: data.key_bytes, tables, hashed: data.hashed_keys }
    }

    /// Bytes of a key.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// The table of a key.
    #[inline]
    #[must_use]
    pub fn table_of(&self, number: u64) -> u32 {
        if self.tables == 1 { 0 } else { (number % self.tables) as u32 }
    }

    /// Writes the key of a number into `key`, which is [`Keys::bytes`] long.
    #[inline]
    pub fn write(&self, number: u64, key: &mut [u8]) {
        match self.form {
            Form::Decimal => decimal(number, key),
            Form::Hexadecimal => tail(key, &hexadecimal(self.place(number))),
            Form::Binary => tail(key, &self.place(number).to_be_bytes()),
        }
    }

    /// Writes a key that lies about `keys` keys behind that of `number` in its table, where all have `count`
    /// keys: the end of a range. It is greater than the key of `number`.
    pub fn write_end(&self, number: u64, keys: u64, count: u64, key: &mut [u8]) {
        if !self.hashed {
            return self.write(number + keys * self.tables, key);
        }
        let apart = (1u128 << 64) / u128::from((count / self.tables).max(1));
        let end = (u128::from(self.place(number)) + u128::from(keys) * apart).min(u64::MAX.into()) as u64;
        match self.form {
            Form::Hexadecimal => tail(key, &hexadecimal(end)),
            _ => tail(key, &end.to_be_bytes()),
        }
    }

    /// Writes a key that never exists into `key`, near the key of `number`.
    #[inline]
    pub fn write_missing(&self, number: u64, key: &mut [u8]) {
        if self.form == Form::Decimal {
            decimal(number, key);
            // The lowest number of the table is below `tables`. A character below the digits sorts before the
            // ten keys that share the other digits; if that would be before the whole table, take one above
            // the digits.
            let low = number / 10 * 10 <= u64::from(self.table_of(number));
            let last = key.len() - 1;
            key[last] = key[last] - b'0' + if low { b'a' } else { b'&' };
            return;
        }
        // Towards the middle of the range: above the lower half, below the upper half.
        let place = self.place(number);
        let up = if self.hashed { place < 1 << 63 } else { number < self.tables };
        let missing = if up { place + 1 } else { place - 1 };
        match self.form {
            Form::Hexadecimal => tail(key, &hexadecimal(missing)),
            _ => tail(key, &missing.to_be_bytes()),
        }
    }

    /// The even number that stands for a key where keys are not decimal.
    #[inline]
    fn place(&self, number: u64) -> u64 {
        (if self.hashed { scatter(number) } else { number }) << 1
    }
}

/// Writes `digits` at the end of `key` and zeros before.
#[inline]
fn tail(key: &mut [u8], digits: &[u8]) {
    let zeros = key.len() - digits.len();
    key[..zeros].fill(b'0');
    key[zeros..].copy_from_slice(digits);
}

#[inline]
fn decimal(number: u64, key: &mut [u8]) {
    const HALF: u64 = 100_000_000;
    if number >= HALF * HALF {
        return decimal_long(number, key);
    }
    let mut digits = [0; 16];
    digits[..8].copy_from_slice(&eight_digits(number / HALF));
    digits[8..].copy_from_slice(&eight_digits(number % HALF));
    match key.len() {
        16 => key.copy_from_slice(&digits),
        length if length < 16 => key.copy_from_slice(&digits[16 - length..]),
        _ => tail(key, &digits),
    }
}

#[cold]
fn decimal_long(mut number: u64, key: &mut [u8]) {
    for digit in key.iter_mut().rev() {
        *digit = b'0' + (number % 10) as u8;
        number /= 10;
    }
}

/// The digits of a number below 10^8, all at once: halves, then quarters, then single digits, side by side in
/// a word.
#[inline]
fn eight_digits(number: u64) -> [u8; 8] {
    // Each step splits every lane by a multiplication with a rounded-up reciprocal; lanes are little-endian,
    // so that the high part goes to the low lane.
    let fours = (number / 10_000) | ((number % 10_000) << 32);
    let hundreds = ((fours * 10_486) >> 20) & 0x7f_0000_007f;
    let twos = hundreds | ((fours - hundreds * 100) << 16);
    let tens = ((twos * 103) >> 10) & 0x000f_000f_000f_000f;
    let ones = tens | ((twos - tens * 10) << 8);
    (ones | 0x3030_3030_3030_3030).to_le_bytes()
}

/// The sixteen digits of a number.
#[inline]
fn hexadecimal(number: u64) -> [u8; 16] {
    let mut digits = [0; 16];
    digits[..8].copy_from_slice(&eight_hexadecimal(number >> 32));
    digits[8..].copy_from_slice(&eight_hexadecimal(number & 0xffff_ffff));
    digits
}

/// The eight digits of a number below 2^32: its nibbles are spread to the bytes of a word, then made
/// characters.
#[inline]
fn eight_hexadecimal(number: u64) -> [u8; 8] {
    let mut x = number;
    x = (x | (x << 16)) & 0x0000_ffff_0000_ffff;
    x = (x | (x << 8)) & 0x00ff_00ff_00ff_00ff;
    x = (x | (x << 4)) & 0x0f0f_0f0f_0f0f_0f0f;
    // A nibble of 10 or more carries into bit 4; those become letters.
    let letters = ((x + 0x0606_0606_0606_0606) >> 4) & 0x0101_0101_0101_0101;
    (x + 0x3030_3030_3030_3030 + letters * 0x27).to_be_bytes()
}
