//! Keys and values as text: printed text can be typed.
#![allow(clippy::unwrap_used, reason = "tests")]

use proptest::prelude::*;
use terrane_cli::text::{Format, count, escape, parse_bytes, size, write_row};

#[test]
fn typed_keys() {
    let cases: [(&str, &[u8]); 6] = [
        ("plain", b"plain"),
        (r"a\tb\n\r\0\\", b"a\tb\n\r\0\\"),
        (r"\x00\xfF", &[0, 0xff]),
        ("0x00Ff", &[0, 0xff]),
        (r"\x30x", b"0x"),
        ("", b""),
    ];
    for (typed, bytes) in cases {
        assert_eq!(parse_bytes(typed).as_deref(), Ok(bytes), "{typed}");
    }
    for wrong in [r"\", r"\q", r"\x1", r"\xg0", "0x1", "0xzz", "0xé"] {
        assert!(parse_bytes(wrong).is_err(), "{wrong}");
    }
}

#[test]
fn rows() {
    let row = |format| {
        let mut out = Vec::new();
        write_row(format, b"k\t", &[b'v', 0xff], &mut out);
        out.escape_ascii().to_string()
    };
    assert_eq!(row(Format::Tsv), r"k\\t\tv\\xff\n");
    assert_eq!(row(Format::Hex), r"6b09 76ff\n");
    assert_eq!(row(Format::Json), r#"{\"key\":\"k\\t\",\"value_hex\":\"76ff\"}\n"#);
    assert_eq!(row(Format::Raw), r"k\t\tv\xff\n");
}

#[test]
fn numbers_for_people() {
    assert_eq!([0, 999, 1000, 1_234_567].map(count), ["0", "999", "1,000", "1,234,567"]);
    assert_eq!(
        [0, 999, 1024, 1 << 20, 150 << 30, 1 << 50].map(size),
        ["0 B", "999 B", "1.0 KiB", "1.0 MiB", "150 GiB", "1024.0 TiB"]
    );
}

proptest! {
    #[test]
    fn printed_bytes_can_be_typed(bytes in prop::collection::vec(any::<u8>(), 0..40)) {
        let mut text = String::new();
        escape(&bytes, &mut text);
        prop_assert!(!text.contains(['\t', '\n', '\r']), "{}", text);
        prop_assert_eq!(parse_bytes(&text), Ok(bytes));
    }

    #[test]
    fn no_typed_text_panics(typed in "(0x|\\\\x?|[0-9a-f]|.){0,12}") {
        let _ = parse_bytes(&typed);
    }
}
