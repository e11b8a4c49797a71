//! Targets: options as text, and keys and values as typed and shown.

use terrane_base::Kind;
use terrane_base::options::{Diagnostics, Experiments, Options};
use terrane_cli::text::{escape, hex, parse_bytes};
use terrane_engine::check_table_option;

use crate::Seed;

/// Lines `name=value`: set one after the other, shown, read back, resolved.
pub fn run(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    let mut options = Options::default();
    for line in text.lines().take(64) {
        let (name, value) = line.split_once('=').unwrap_or((line, ""));
        let mut next = options.clone();
        match next.set(name, value) {
            Ok(()) => options = next,
            Err(error) => assert_eq!(error.kind(), Kind::Invalid, "{error}"),
        }
        if let Err(error) = check_table_option(name, value) {
            assert_eq!(error.kind(), Kind::Invalid, "{error}");
        }
    }
    let mut again = Options::default();
    for (name, value) in options.show() {
        again.set(name, &value).expect("a shown value is accepted");
    }
    assert!(again == options, "the shown values are complete");
    for processors in [1, 2, 64, usize::MAX] {
        match options.resolve(processors) {
            Ok(resolved) => {
                assert!(resolved.resolve(processors).expect("resolved options are good") == resolved);
            }
            Err(error) => assert_eq!(error.kind(), Kind::Invalid, "{error}"),
        }
    }
}

/// Corpus of [`run`].
#[must_use]
pub fn seeds() -> Vec<Seed> {
    let defaults: String =
        Options::default().show().iter().map(|(name, value)| format!("{name}={value}\n")).collect();
    let others = [Diagnostics::describe(), Experiments::describe()].concat();
    let others: String = others.iter().map(|info| format!("{}={}\n", info.name, info.default)).collect();
    vec![
        ("defaults".into(), defaults.into_bytes()),
        ("experiments".into(), others.into_bytes()),
        (
            "units".into(),
            b"memory_bytes=64MiB\nsegment_bytes=1 m\nblock_bytes=4k\nmemory_bytes=16tib\n".into(),
        ),
        (
            "wrong".into(),
            b"memory=1\nblock_bytes=-1\nblock_bytes=99999999999999999999g\ndirect_io=maybe\n".into(),
        ),
        ("contradiction".into(), b"memory_bytes=16MiB\nwrite_memory_bytes=16MiB\nread_only=on\n".into()),
    ]
}

/// A key as typed: parsed, shown, parsed again.
pub fn text(bytes: &[u8]) {
    let shown = |bytes: &[u8]| {
        let mut text = String::new();
        escape(bytes, &mut text);
        text
    };
    assert_eq!(parse_bytes(&shown(bytes)).as_deref(), Ok(bytes), "every key can be typed");
    let mut digits = "0x".to_owned();
    hex(bytes, &mut digits);
    assert_eq!(parse_bytes(&digits).as_deref(), Ok(bytes));
    if let Ok(parsed) = parse_bytes(&String::from_utf8_lossy(bytes)) {
        assert_eq!(parse_bytes(&shown(&parsed)), Ok(parsed));
    }
}

/// Corpus of [`text()`].
#[must_use]
pub fn text_seeds() -> Vec<Seed> {
    let typed = ["plain", "0x00ff", "a\\x00\\n\\\\b", "0x", "\\", "\\x4", "caf\u{e9}\t"];
    (0..).zip(typed).map(|(number, text): (u32, _)| (number.to_string(), text.into())).collect()
}
