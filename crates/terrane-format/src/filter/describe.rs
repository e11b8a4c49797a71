//! Describes a filter for `terrane dump`.

use super::{Filter, TRAILER_BYTES, VERSION, VERSION_PREFIXED, split_name};
use crate::dump::{self, Field};

/// The fields of a filter.
#[must_use]
pub fn describe(bytes: &[u8]) -> Vec<Field> {
    let filter = match Filter::decode(bytes) {
        Ok(filter) => filter,
        Err(error) => return vec![dump::broken(0, bytes.len(), error)],
    };
    let ones: u32 = filter.lines.iter().map(|byte| byte.count_ones()).sum();
    let bits = filter.lines.len() * 8;
    let trailer = bytes.len() - TRAILER_BYTES;
    let checksum = crate::wire::u32_at(bytes, trailer + 6).unwrap_or(0);
    let name = filter.prefixes.and_then(|_| split_name(&bytes[..trailer]).ok());
    let lines = name.map_or(trailer, |(lines, _)| lines.len());
    let version = if name.is_some() { VERSION_PREFIXED } else { VERSION };
    let text = format!("{} lines, {ones} of {bits} bits set", filter.lines().len());
    let mut fields = vec![Field::new(0, lines, "lines", text)];
    if let Some((_, name)) = name {
        fields.push(Field::new(lines, name.len(), "prefix extractor", name));
        fields.push(Field::new(lines + name.len(), 1, "its bytes", name.len()));
    }
    fields.extend([
        Field::new(trailer, 4, "keys", filter.keys),
        Field::new(trailer + 4, 1, "probes", filter.probes),
        Field::new(trailer + 5, 1, "version", version),
        Field::new(trailer + 6, 4, "checksum", format!("{checksum:08x}")),
    ]);
    fields
}
