//! Names of segment files.

/// Name of segment file `number` within the journal's directory.
#[must_use]
pub fn file_name(number: u32) -> String {
    format!("{number:06}.seg")
}

/// The number in a segment file's name, if it is one.
#[must_use]
pub fn file_number(name: &str) -> Option<u32> {
    let number = name.strip_suffix(".seg")?.parse().ok()?;
    (file_name(number) == name).then_some(number)
}
