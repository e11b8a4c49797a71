//! Moments of a database, and how they are written.

use std::fmt;
use std::time::Duration;

use terrane_base::{Error, Result, SeqNo};

/// A moment of a database.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum At {
    /// Behind the last commit up to this number, before the next one.
    Commit(SeqNo),
    /// A time since the Unix epoch, by the clock of the object store.
    Time(Duration),
}

const DAY_SECONDS: u64 = 86_400;
/// The last second of the year 9999: no date is written with more digits.
const SECONDS_MAX: u64 = 253_402_300_799;

impl At {
    /// Reads a time as people write it: `2026-11-29T10:00:00Z`, with or without a fraction of the second, or
    /// a time before `now` in seconds, minutes, hours or days: `-30s`, `-10m`, `-2h`, `-1d`.
    ///
    /// ```
    /// use std::time::Duration;
    /// use terrane_remote::At;
    /// let now = Duration::from_secs(86_400);
    /// assert_eq!(At::read_time("-10m", now)?, At::Time(Duration::from_secs(85_800)));
    /// let then = At::read_time("1970-01-02T00:00:00.5Z", now)?;
    /// assert_eq!(then.to_string(), "1970-01-02T00:00:00.500Z");
    /// # Ok::<(), terrane_base::Error>(())
    /// ```
    ///
    /// # Errors
    /// `Invalid` for any other text.
    pub fn read_time(text: &str, now: Duration) -> Result<At> {
        let read = match text.strip_prefix('-') {
            Some(before) => ago(before).map(|before| now.saturating_sub(before)),
            None => date(text),
        };
        read.map(At::Time).ok_or_else(|| {
            Error::invalid(format!(
                "{text:?} is not a time: expected one as 2026-11-29T10:00:00Z, in universal time, or -30s, -10m, \
                 -2h, -1d for a time before now"
            ))
        })
    }
}

impl fmt::Display for At {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            At::Commit(seq) => write!(f, "commit {seq}"),
            At::Time(time) => f.write_str(&shown(*time)),
        }
    }
}

fn ago(text: &str) -> Option<Duration> {
    let unit = text.chars().next_back()?;
    let seconds = match unit {
        's' => 1,
        'm' => 60,
        'h' => 3600,
        'd' => DAY_SECONDS,
        _ => return None,
    };
    number(text.strip_suffix(unit)?)?.checked_mul(seconds).map(Duration::from_secs)
}

/// Digits and nothing else.
fn number(text: &str) -> Option<u64> {
    let is_number = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    if is_number { text.parse().ok() } else { None }
}

fn date(text: &str) -> Option<Duration> {
    let (day, time) = text.strip_suffix('Z')?.split_once('T')?;
    let (time, fraction) = time.split_once('.').unwrap_or((time, "0"));
    let [year, month, day] = fields(day, '-', [4, 2, 2])?;
    let [hour, minute, second] = fields(time, ':', [2, 2, 2])?;
    let is_real = (1..=12).contains(&month) && (1..=days_of(year, month)).contains(&day);
    if year < 1970 || !is_real || hour > 23 || minute > 59 || second > 59 || fraction.len() > 9 {
        return None;
    }
    let nanos = number(fraction)? * 10u64.pow(9 - fraction.len() as u32);
    let days = (1970..year).map(days_of_year).sum::<u64>()
        + (1..month).map(|month| days_of(year, month)).sum::<u64>()
        + (day - 1);
    let seconds = ((days * 24 + hour) * 60 + minute) * 60 + second;
    Some(Duration::new(seconds, nanos as u32))
}

fn fields(text: &str, between: char, digits: [usize; 3]) -> Option<[u64; 3]> {
    let mut parts = text.split(between);
    let mut read = [0; 3];
    for (field, digits) in read.iter_mut().zip(digits) {
        *field = number(parts.next().filter(|part| part.len() == digits)?)?;
    }
    parts.next().is_none().then_some(read)
}

fn is_leap(year: u64) -> bool {
    year.is_multiple_of(4) && !year.is_multiple_of(100) || year.is_multiple_of(400)
}

fn days_of_year(year: u64) -> u64 {
    if is_leap(year) { 366 } else { 365 }
}

fn days_of(year: u64, month: u64) -> u64 {
    match month {
        2 if is_leap(year) => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

/// A time as [`At::read_time`] reads it.
pub(super) fn shown(time: Duration) -> String {
    let seconds = time.as_secs().min(SECONDS_MAX);
    let (mut year, mut month, mut days) = (1970, 1, seconds / DAY_SECONDS);
    while days >= days_of_year(year) {
        days -= days_of_year(year);
        year += 1;
    }
    while days >= days_of(year, month) {
        days -= days_of(year, month);
        month += 1;
    }
    debug_assert!(month <= 12 && days < 31, "whole years and months were taken off");
    let (day, second) = (days + 1, seconds % DAY_SECONDS);
    let (hour, minute, second) = (second / 3600, second / 60 % 60, second % 60);
    // Cutting digits off would make an earlier time of it.
    let (nanos, millis) = (time.subsec_nanos(), time.subsec_millis());
    let fraction = if nanos == millis * 1_000_000 { format!("{millis:03}") } else { format!("{nanos:09}") };
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{fraction}Z")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(text: &str) -> Option<u64> {
        match At::read_time(text, Duration::from_secs(1_000_000)) {
            Ok(At::Time(time)) => Some(time.as_secs()),
            _ => None,
        }
    }

    #[test]
    fn times_are_read_and_shown() {
        for (text, seconds) in [
            ("1970-01-01T00:00:00Z", 0),
            ("2000-02-29T23:59:59Z", 951_868_799),
            ("2026-11-29T10:00:00Z", 1_795_946_400),
            ("9999-12-31T23:59:59Z", SECONDS_MAX),
        ] {
            assert_eq!(at(text), Some(seconds), "{text}");
            assert_eq!(shown(Duration::from_secs(seconds)), text.replace('Z', ".000Z"));
        }
        assert_eq!(at("-10m"), Some(999_400));
        assert_eq!(at("-2d"), Some(827_200));
        assert_eq!(at("-99d"), Some(0), "before the epoch there is nothing");
        assert_eq!(shown(Duration::from_millis(1)), "1970-01-01T00:00:00.001Z");
        assert_eq!(date("1970-01-01T00:00:00.001Z"), Some(Duration::from_millis(1)));
        for nanos in [1, 999_999_999, 1_000_001, 500_000_000] {
            let time = Duration::new(7, nanos);
            assert_eq!(date(&shown(time)), Some(time), "what an error names is that time");
        }
    }

    #[test]
    fn other_texts_are_refused() {
        for text in [
            "",
            "-",
            "-m",
            "10m",
            "-10",
            "--1m",
            "-+1m",
            "-1w",
            "-99999999999999999999d",
            "-300000000000000d",
            "2026-11-29",
            "2026-11-29T10:00:00",
            "2026-11-29T10:00:00+01:00",
            "2026-13-01T00:00:00Z",
            "2026-02-29T00:00:00Z",
            "2026-04-31T00:00:00Z",
            "2026-01-00T00:00:00Z",
            "2026-01-01T24:00:00Z",
            "2026-01-01T00:60:00Z",
            "2026-01-01T00:00:60Z",
            "1969-12-31T23:59:59Z",
            "2026-1-01T00:00:00Z",
            "2026-01-01T00:00:00.Z",
            "2026-01-01T00:00:00.1234567890Z",
            "2026-01-01T00:00:00:00Z",
            "Z",
            "é",
        ] {
            assert_eq!(at(text), None, "{text}");
        }
    }
}
