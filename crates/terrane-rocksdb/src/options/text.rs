//! Options as text: `name=value;name=value`, where a value may be such a text itself, in braces. A name that
//! is not a field is refused: nothing is left out without a word.

use std::ffi::CString;
use std::sync::Arc;

use crate::callbacks::merge::MergeOperator;
use crate::callbacks::transform::Transform;
use crate::ffi::failure::{Failure, Given, Result};
use crate::ffi::option_fields::{Named, parsed};
use crate::options::codec;
use crate::options::database::Options;
use crate::options::objects::cache::Cache;
use crate::options::table::TableOptions;

/// The names and values of a text.
fn pairs(text: &str) -> Result<Vec<(&str, &str)>> {
    let (mut pairs, mut rest) = (Vec::new(), text.trim());
    while !rest.is_empty() {
        let (name, behind) = rest.split_once('=').ok_or_else(|| {
            Failure::invalid(format_args!("Mismatched key value pair, '=' expected: {rest}"))
        })?;
        let end = end_of_value(behind)
            .ok_or_else(|| Failure::invalid("Mismatched curly braces for nested options"))?;
        let value = behind[..end].trim();
        let inside = value.strip_prefix('{').and_then(|value| value.strip_suffix('}'));
        pairs.push((name.trim(), inside.unwrap_or(value)));
        rest = behind[end..].trim_start_matches(';').trim();
    }
    Ok(pairs)
}

/// Where a value ends: at the first semicolon outside of braces.
fn end_of_value(text: &str) -> Option<usize> {
    let mut depth = 0_i32;
    for (at, letter) in text.char_indices() {
        match letter {
            ';' if depth == 0 => return Some(at),
            '{' => depth += 1,
            '}' => depth -= 1,
            _ => {}
        }
        if depth < 0 {
            return None;
        }
    }
    (depth == 0).then_some(text.len())
}

fn unknown(name: &str) -> Failure {
    Failure::invalid(format_args!("Could not find option: {name}"))
}

impl Options {
    /// Sets what the text says.
    fn set_text(&mut self, text: &str) -> Result<()> {
        for (name, value) in pairs(text)? {
            self.set_pair(name, value)?;
        }
        Ok(())
    }

    /// Sets one option.
    pub(crate) fn set_pair(&mut self, name: &str, value: &str) -> Result<()> {
        if let Some(set) = self.fields.set_text(&name.to_ascii_lowercase(), value) {
            return set;
        }
        match (name, value) {
            ("block_based_table_factory" | "table_factory.block_based", _) => self.table.set_text(value),
            // What these stand for here in any case.
            ("table_factory", "BlockBasedTable") => Ok(()),
            ("memtable" | "memtable_factory", _) => Ok(()),
            ("comparator", "leveldb.BytewiseComparator") => {
                self.comparator = None;
                Ok(())
            }
            ("merge_operator", _) => {
                self.merge_operator = operator(value)?;
                Ok(())
            }
            ("prefix_extractor", _) => {
                self.transform = transform(value)?;
                Ok(())
            }
            ("compression_per_level", _) => {
                self.codec_of_levels = codec::of_levels(value)?;
                Ok(())
            }
            ("db_log_dir", _) => {
                self.log_directory = directory(name, value)?;
                Ok(())
            }
            ("wal_dir", _) => {
                self.wal_directory = directory(name, value)?;
                Ok(())
            }
            ("comparator" | "compaction_filter" | "compaction_filter_factory", _) => {
                Err(no_such(name, value))
            }
            _ => Err(unknown(name)),
        }
    }
}

fn no_such(name: &str, value: &str) -> Failure {
    Failure::invalid(format_args!(
        "{name}={value}: the library has none of that name; give the object instead"
    ))
}

fn directory(name: &str, path: &str) -> Result<CString> {
    CString::new(path).map_err(|_| Failure::invalid(format_args!("{name}: a path with a zero byte")))
}

/// The merge operator of a name.
fn operator(name: &str) -> Result<Option<Arc<MergeOperator>>> {
    match name {
        "nullptr" | "" => Ok(None),
        "uint64add" | "UInt64AddOperator" => Ok(Some(Arc::new(MergeOperator::AddNumbers))),
        _ => Err(no_such("merge_operator", name)),
    }
}

/// The slice transform of a name such as `fixed:8` or `rocksdb.FixedPrefix.8`.
fn transform(name: &str) -> Result<Option<Arc<Transform>>> {
    let bytes =
        ["fixed:", "rocksdb.FixedPrefix."].iter().find_map(|start| name.strip_prefix(start)?.parse().ok());
    match (name, bytes) {
        ("nullptr" | "", _) => Ok(None),
        ("rocksdb.Noop", _) => Ok(Some(Arc::new(Transform::Whole))),
        (_, Some(bytes)) => Ok(Some(Arc::new(Transform::Fixed(bytes)))),
        _ => Err(no_such("prefix_extractor", name)),
    }
}

impl TableOptions {
    fn set_text(&mut self, text: &str) -> Result<()> {
        for (name, value) in pairs(text)? {
            self.set_pair(name, value)?;
        }
        Ok(())
    }

    /// Sets one option.
    pub(crate) fn set_pair(&mut self, name: &str, value: &str) -> Result<()> {
        match (self.fields.set_text(&name.to_ascii_lowercase(), value), name) {
            (Some(set), _) => return set,
            (None, "block_cache") => self.cache = Some(Cache::new(parsed(name, value)?)),
            (None, "filter_policy") => {
                self.filter_bits = if value == "nullptr" { None } else { Some(policy_bits(value)?) };
            }
            (None, _) => return Err(unknown(name)),
        }
        Ok(())
    }
}

/// The bits per key of a policy such as `bloomfilter:10:false` or `ribbonfilter:10`.
fn policy_bits(text: &str) -> Result<f64> {
    let mut parts = text.split(':');
    let is_known = matches!(parts.next(), Some("bloomfilter" | "ribbonfilter" | "rocksdb.BloomFilter"));
    let bits = parts.next().and_then(|bits| bits.parse().ok()).filter(|_| is_known);
    bits.ok_or_else(|| Failure::invalid(format_args!("filter_policy={text}: no policy that is known")))
}

export! {
    fn rocksdb_get_options_from_string(
        base: Option<&Options>,
        text: Text<'_>,
        options: Option<&mut Options>,
        error: ErrPtr<'_>,
    ) {
        let mut made = base.given()?.clone();
        made.set_text(text.utf8()?)?;
        *options.given()? = made;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(text: &str) -> Result<Options> {
        let mut options = Options::default();
        options.set_text(text).map(|()| options)
    }

    #[test]
    fn options_are_read_from_text() {
        let text = "write_buffer_size=8M; WAL_ttl_seconds=60;create_if_missing=true;compression=kNoCompression;\
                    block_based_table_factory={block_size=16K;block_cache=1G;filter_policy=bloomfilter:12:false}";
        let options = set(text).expect("all is known");
        assert_eq!((options.fields.write_buffer_size, options.fields.wal_ttl_seconds), (8 << 20, 60));
        assert_eq!((options.fields.create_if_missing, options.fields.compression), (1, 0));
        assert_eq!((options.table.fields.block_size, options.table.filter_bits), (16 << 10, Some(12.0)));
        assert_eq!(options.table.cache.map(|cache| cache.capacity_bytes()), Some(1 << 30));
        set("").expect("nothing is fine");
    }

    #[test]
    fn functions_that_the_library_has_are_found_by_their_names() {
        let options =
            set("merge_operator=uint64add;prefix_extractor=rocksdb.FixedPrefix.3").expect("both are there");
        assert!(matches!(options.merge_operator.as_deref(), Some(MergeOperator::AddNumbers)));
        assert!(matches!(options.transform.as_deref(), Some(Transform::Fixed(3))));
        assert!(matches!(set("prefix_extractor=fixed:8").map(|o| o.transform), Ok(Some(_))));
        let none =
            set("merge_operator=nullptr;prefix_extractor=nullptr;comparator=leveldb.BytewiseComparator");
        assert!(none.is_ok_and(|none| none.merge_operator.is_none() && none.transform.is_none()));
    }

    #[test]
    fn an_unknown_option_is_refused_by_name() {
        for (text, named) in [
            ("no_such_option=1", "no_such_option"),
            ("block_based_table_factory={cache=1}", "cache"),
            ("max_open_files=many", "max_open_files"),
            ("create_if_missing=300", "create_if_missing"),
            ("write_buffer_size", "write_buffer_size"),
            ("block_based_table_factory={block_size=1", "braces"),
            ("filter_bits=}", "braces"),
            ("merge_operator=my_operator", "my_operator"),
            ("prefix_extractor=capped:x", "capped:x"),
            ("comparator=my.order", "my.order"),
            ("compression_per_level=kLZ4Compression:lz5", "lz5"),
        ] {
            let failure = set(text).map(|_| ()).expect_err(text);
            assert!(failure.text().starts_with("Invalid argument: "), "{}", failure.text());
            assert!(failure.text().contains(named), "{}", failure.text());
        }
    }
}
