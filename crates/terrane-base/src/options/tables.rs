//! Settings of what the records of a table mean.

use std::time::Duration;

use super::Setting;
use crate::key_order::BYTEWISE;
use crate::merge_operator::check_name;
use crate::prefix_extractor;

/// Name of a merge operator, or none.
///
/// ```
/// # use terrane_base::options::{OperatorName, Options};
/// let mut options = Options::default();
/// assert_eq!(options.merge_operator, OperatorName::none());
/// options.set("merge_operator", "counter")?;
/// assert_eq!(options.merge_operator.get(), Some("counter"));
/// # Ok::<(), terrane_base::Error>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct OperatorName(Option<String>);

impl OperatorName {
    /// No operator: merges are refused.
    #[must_use]
    pub const fn none() -> Self {
        OperatorName(None)
    }

    /// The name, if there is an operator.
    #[must_use]
    pub fn get(&self) -> Option<&str> {
        self.0.as_deref()
    }
}

impl Setting for OperatorName {
    fn parse(text: &str) -> std::result::Result<Self, String> {
        if text == "none" {
            return Ok(OperatorName(None));
        }
        check_name(text)?;
        Ok(OperatorName(Some(text.to_owned())))
    }

    fn show(&self) -> String {
        self.get().unwrap_or("none").to_owned()
    }
}

/// Name of an order of keys, or that of bytes.
///
/// ```
/// # use terrane_base::options::{Options, OrderName};
/// let mut options = Options::default();
/// assert_eq!(options.key_order, OrderName::bytewise());
/// options.set("key_order", "reverse")?;
/// assert_eq!(options.key_order.get(), Some("reverse"));
/// # Ok::<(), terrane_base::Error>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct OrderName(Option<String>);

impl OrderName {
    /// The order of bytes.
    #[must_use]
    pub const fn bytewise() -> Self {
        OrderName(None)
    }

    /// The name, if it is another order than that of bytes.
    #[must_use]
    pub fn get(&self) -> Option<&str> {
        self.0.as_deref()
    }
}

impl Setting for OrderName {
    fn parse(text: &str) -> std::result::Result<Self, String> {
        if text == BYTEWISE {
            return Ok(OrderName(None));
        }
        check_name(text)?;
        Ok(OrderName(Some(text.to_owned())))
    }

    fn show(&self) -> String {
        self.get().unwrap_or(BYTEWISE).to_owned()
    }
}

/// Name of a prefix extractor, or none.
///
/// ```
/// # use terrane_base::options::{ExtractorName, Options};
/// let mut options = Options::default();
/// assert_eq!(options.prefix_extractor, ExtractorName::none());
/// options.set("prefix_extractor", "until:/")?;
/// assert_eq!(options.prefix_extractor.get(), Some("until:/"));
/// # Ok::<(), terrane_base::Error>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct ExtractorName(Option<String>);

impl ExtractorName {
    /// No extractor: filters hold whole keys only.
    #[must_use]
    pub const fn none() -> Self {
        ExtractorName(None)
    }

    /// The name, if there is an extractor.
    #[must_use]
    pub fn get(&self) -> Option<&str> {
        self.0.as_deref()
    }
}

impl Setting for ExtractorName {
    fn parse(text: &str) -> std::result::Result<Self, String> {
        if text == "none" {
            return Ok(ExtractorName(None));
        }
        prefix_extractor::check_name(text)?;
        Ok(ExtractorName(Some(text.to_owned())))
    }

    fn show(&self) -> String {
        self.get().unwrap_or("none").to_owned()
    }
}

/// A lifetime in milliseconds; unlimited if there is no number.
///
/// ```
/// # use std::time::Duration;
/// # use terrane_base::options::{Options, TimeToLive};
/// let day = TimeToLive::of(Duration::from_secs(24 * 60 * 60));
/// let mut options = Options { time_to_live: day, ..Options::default() };
/// assert_eq!(options.time_to_live.millis(), Some(86_400_000));
/// options.set("time_to_live", "1d")?; // the same, as text
/// assert_eq!(options.time_to_live, day);
/// assert!(day.is_possible() && !TimeToLive::of(Duration::ZERO).is_possible());
/// # Ok::<(), terrane_base::Error>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct TimeToLive(Option<u64>);

impl TimeToLive {
    /// For ever.
    pub const NONE: TimeToLive = TimeToLive(None);
    /// Ten thousand years, nearly: the longest.
    const MILLIS_MAX: u64 = 3_650_000 * 24 * 60 * 60 * 1000;

    /// This duration; fractions of a millisecond are dropped.
    #[must_use]
    pub fn of(duration: Duration) -> Self {
        TimeToLive(Some(u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)))
    }

    /// In milliseconds; `None` for ever.
    #[must_use]
    pub fn millis(self) -> Option<u64> {
        self.0
    }

    /// Returns true if it is within the limits.
    #[must_use]
    pub fn is_possible(&self) -> bool {
        self.0.is_none_or(|millis| (1..=Self::MILLIS_MAX).contains(&millis))
    }
}

const UNITS: [(&str, u64); 5] =
    [("ms", 1), ("s", 1000), ("m", 60 * 1000), ("h", 60 * 60 * 1000), ("d", 24 * 60 * 60 * 1000)];

impl Setting for TimeToLive {
    /// A whole number with a unit: `ms`, `s`, `m`, `h` or `d`.
    fn parse(text: &str) -> std::result::Result<Self, String> {
        if text == "none" {
            return Ok(TimeToLive::NONE);
        }
        let digits = text.trim_end_matches(|c: char| !c.is_ascii_digit());
        let unit = text[digits.len()..].trim();
        let unit = UNITS.iter().find(|(name, _)| *name == unit).map(|(_, millis)| *millis);
        let number = digits.parse::<u64>().ok().zip(unit).and_then(|(number, unit)| number.checked_mul(unit));
        let number = number.ok_or("expected none, or a whole number with ms, s, m, h or d")?;
        Ok(TimeToLive(Some(number)))
    }

    fn show(&self) -> String {
        let Some(millis) = self.0 else { return "none".to_owned() };
        let whole = UNITS.iter().rev().find(|(_, unit)| millis.is_multiple_of(*unit) && millis > 0);
        let (name, unit) = whole.unwrap_or(&UNITS[0]);
        format!("{}{name}", millis / unit)
    }
}
