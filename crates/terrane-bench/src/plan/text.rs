//! Values of a plan as text: sizes, times, distributions, sizes of values, controls.

use crate::engine::Control;
use crate::error::{Error, Result};
use crate::plan::{Distribution, ValueSize};

/// Every shape step by name.
pub const CONTROLS: [(&str, Control); 10] = [
    ("flush", Control::Flush),
    ("compact0", Control::Compact0),
    ("compact1", Control::Compact1),
    ("compact_all", Control::CompactAll),
    ("wait_until_quiescent", Control::WaitUntilQuiescent),
    ("pause_background", Control::PauseBackground),
    ("resume_background", Control::ResumeBackground),
    ("flush_to_run", Control::FlushToRun),
    ("filters_off", Control::FiltersOff),
    ("filters_on", Control::FiltersOn),
];

/// The shape step of this name.
#[must_use]
pub fn control(name: &str) -> Option<Control> {
    CONTROLS.iter().find(|(known, _)| *known == name).map(|(_, control)| *control)
}

/// The name of a shape step.
#[must_use]
pub fn control_name(control: Control) -> &'static str {
    CONTROLS.iter().find(|(_, known)| *known == control).map_or("control", |(name, _)| name)
}

/// A number of bytes with a unit: `64KiB`, `1.5GiB`, `4096`.
///
/// # Errors
/// `Plan`, naming the accepted forms.
pub fn size(text: &str) -> Result<u64> {
    let text = text.trim();
    let digits = text.find(|c: char| !c.is_ascii_digit() && c != '.' && c != '_').unwrap_or(text.len());
    let number: f64 = text[..digits].replace('_', "").parse().map_err(|_| bad_size(text))?;
    let unit: u64 = match text[digits..].trim() {
        "" | "B" => 1,
        "KiB" | "K" => 1 << 10,
        "MiB" | "M" => 1 << 20,
        "GiB" | "G" => 1 << 30,
        "TiB" | "T" => 1 << 40,
        _ => return Err(bad_size(text)),
    };
    Ok((number * unit as f64) as u64)
}

fn bad_size(text: &str) -> Error {
    Error::plan(format!(
        "{text:?} is not a size: accepted are bytes with KiB, MiB, GiB or TiB, such as 256MiB"
    ))
}

/// A count with an optional unit: `10M`, `1_000_000`, `200k`.
///
/// # Errors
/// `Plan`, naming the accepted forms.
pub fn count(text: &str) -> Result<u64> {
    let trimmed = text.trim().replace('_', "");
    let (number, unit) = match trimmed.chars().last() {
        Some('k' | 'K') => (&trimmed[..trimmed.len() - 1], 1e3),
        Some('m' | 'M') => (&trimmed[..trimmed.len() - 1], 1e6),
        Some('g' | 'G') => (&trimmed[..trimmed.len() - 1], 1e9),
        _ => (trimmed.as_str(), 1.0),
    };
    let number: f64 = number.parse().ok().filter(|number| *number >= 0.0).ok_or_else(|| {
        Error::plan(format!("{text:?} is not a count: accepted are numbers with k, M or G, such as 10M"))
    })?;
    Ok((number * unit) as u64)
}

/// A time in seconds: `2.5`, `90s`, `5m`, `1h`.
///
/// # Errors
/// `Plan`, naming the accepted forms.
pub fn duration_seconds(text: &str) -> Result<f64> {
    let text = text.trim();
    let (number, unit) = match text.chars().last() {
        Some('s') => (&text[..text.len() - 1], 1.0),
        Some('m') => (&text[..text.len() - 1], 60.0),
        Some('h') => (&text[..text.len() - 1], 3600.0),
        _ => (text, 1.0),
    };
    let number: Option<f64> = number.trim().parse().ok();
    number
        .map(|number| number * unit)
        .filter(|seconds| *seconds > 0.0 && seconds.is_finite())
        .ok_or_else(|| Error::plan(format!("{text:?} is not a time: accepted are seconds, or 90s, 5m, 1h")))
}

/// `name(1,2)` as its name and numbers.
fn call(text: &str) -> (String, Option<Vec<f64>>) {
    let text = text.trim();
    let Some((name, rest)) = text.split_once('(') else { return (text.to_owned(), Some(Vec::new())) };
    let numbers = rest
        .trim_end()
        .strip_suffix(')')
        .and_then(|inside| inside.split(',').map(|number| number.trim().parse().ok()).collect());
    (name.trim().to_owned(), numbers)
}

/// How keys are chosen.
///
/// # Errors
/// `Plan`, listing the distributions.
pub fn distribution(text: &str) -> Result<Distribution> {
    let (name, numbers) = call(text);
    let found = match (name.as_str(), numbers.as_deref()) {
        ("default", Some([])) => Some(Distribution::Default),
        ("sequential", Some([])) => Some(Distribution::Sequential),
        ("uniform", Some([])) => Some(Distribution::Uniform),
        ("latest", Some([])) => Some(Distribution::Latest),
        ("zipfian", Some([])) => Some(Distribution::Zipfian(0.99)),
        ("zipfian", Some([constant])) if *constant > 0.0 => Some(Distribution::Zipfian(*constant)),
        ("hot", Some([keys, operations])) => Some(Distribution::HotRange(*keys, *operations)),
        _ => None,
    };
    found.ok_or_else(|| {
        Error::plan(format!(
            "unknown distribution {text:?}: known are default, sequential, uniform, zipfian(0.99), latest, hot(0.2,0.8)"
        ))
    })
}

/// A distribution as text that [`distribution`] reads.
#[must_use]
pub fn show_distribution(distribution: Distribution) -> String {
    match distribution {
        Distribution::Default => "default".to_owned(),
        Distribution::Sequential => "sequential".to_owned(),
        Distribution::Uniform => "uniform".to_owned(),
        Distribution::Zipfian(constant) => format!("zipfian({constant})"),
        Distribution::Latest => "latest".to_owned(),
        Distribution::HotRange(keys, operations) => format!("hot({keys},{operations})"),
    }
}

/// Sizes of values.
///
/// # Errors
/// `Plan`, listing the forms.
pub fn value_size(text: &str) -> Result<ValueSize> {
    let (name, numbers) = call(text);
    let found = match (name.as_str(), numbers.as_deref()) {
        ("uniform", Some([low, high])) if low <= high => {
            Some(ValueSize::Uniform(*low as usize, *high as usize))
        }
        ("pareto", Some([shape, scale, max])) => {
            Some(ValueSize::Pareto { shape: *shape, scale: *scale, max: *max as usize })
        }
        (bytes, Some([])) => size(bytes).ok().map(|bytes| ValueSize::Fixed(bytes as usize)),
        _ => None,
    };
    found.ok_or_else(|| {
        Error::plan(format!(
            "{text:?} is not a size of values: accepted are a number of bytes, uniform(50,200) or pareto(0.2615,25.45,1024)"
        ))
    })
}
