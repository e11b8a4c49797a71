//! Targets: the parsers of `import`. First byte: size of the pieces in which the stream gives its bytes, the
//! column separator, and which keys are asked for.
//!
//! However the stream is cut the records are the same, and from the end of any record the rest is found
//! again.

use std::io::{self, BufReader, Cursor};

use terrane_cli::import::{self, Format, Keys, Position, Row, Step, Streamed, Syntax};

use crate::Seed;
use crate::input::Input;

/// Places from which an input is read again.
const RESUMES_MAX: usize = 6;

/// JSON lines.
pub fn jsonl(bytes: &[u8]) {
    check(Format::Jsonl, bytes, [&["id"], &["a.b", "id"]]);
}

/// Comma-separated rows.
pub fn csv(bytes: &[u8]) {
    check(Format::Csv, bytes, [&["id"], &["name", "id"]]);
}

/// Tab-separated lines.
pub fn tsv(bytes: &[u8]) {
    check(Format::Tsv, bytes, [&["1"], &["3", "1"]]);
}

/// Debian control stanzas.
pub fn deb(bytes: &[u8]) {
    check(Format::Deb, bytes, [&["Package"], &["Package", "Version"]]);
}

type Found = Vec<(Step, Row, Position)>;

fn check(format: Format, bytes: &[u8], fields: [&[&str]; 2]) {
    let mut input = Input(bytes);
    let shape = input.u8();
    let fields = fields[usize::from(shape >> 7)].iter().map(|&field| field.to_owned()).collect();
    let delimiter = [b',', b';', b'\r', b'"'][usize::from(shape >> 5 & 3)];
    let syntax =
        Syntax { format, keys: Keys { fields, separator: b"/".to_vec() }, delimiter, comment: Some(b'#') };
    let text = input.rest();
    let piece = 1 + usize::from(shape & 0x1f);
    let (Ok(all), Ok(whole)) =
        (read(&syntax, text, Position::default(), piece), read(&syntax, text, Position::default(), 1 << 16))
    else {
        return;
    };
    assert!(all == whole, "the records depend on how the stream is cut");
    let step = all.len().div_ceil(RESUMES_MAX).max(1);
    for (number, (_, _, position)) in all.iter().enumerate().step_by(step) {
        let rest = read(&syntax, text, *position, piece).expect("the input reaches so far");
        assert!(rest[..] == all[number + 1..], "from {position:?} the rest is not the same");
    }
}

fn read(syntax: &Syntax, text: &[u8], from: Position, piece: usize) -> io::Result<Found> {
    let input = Box::new(Streamed(BufReader::with_capacity(piece, Cursor::new(text.to_vec()))));
    let mut records = import::open(input, syntax, from)?;
    let mut found = Found::new();
    loop {
        let mut row = Row::default();
        match records.next(&mut row)? {
            Step::End => return Ok(found),
            // What a bad record left in the row means nothing.
            Step::Bad(bad) => found.push((Step::Bad(bad), Row::default(), records.position())),
            step => found.push((step, row, records.position())),
        }
        assert!(records.position().offset <= text.len() as u64);
    }
}

fn with(shapes: &[u8], texts: &[&str]) -> Vec<Seed> {
    let pairs = shapes.iter().flat_map(|shape| texts.iter().map(move |text| (*shape, *text)));
    (0..)
        .zip(pairs)
        .map(|(number, (shape, text)): (u32, _)| {
            (number.to_string(), [&[shape][..], text.as_bytes()].concat())
        })
        .collect()
}

/// Corpus of [`jsonl`].
#[must_use]
pub fn jsonl_seeds() -> Vec<Seed> {
    with(
        &[3, 0x83],
        &[
            "\u{feff}{\"id\": 7, \"x\": 1}\r\n\n{\"x\":{\"id\":1},\"id\":\"a\\u0062\"}\n{\"id\":1,\"id\":true}",
            "{\"a\":{\"b\":1.50},\"id\":\"z\"}\n{\"a\":}\n[1]\n{\"a\":{\"b\":null}}\n{\"id\":[[[[]]]]}\n",
        ],
    )
}

/// Corpus of [`csv`].
#[must_use]
pub fn csv_seeds() -> Vec<Seed> {
    with(
        &[5, 0x85],
        &[
            "name,id\r\nada,1\r\n\n\"gr\"\"ace, h\",2\n\"two\nlines\",3\n,4",
            "id,name\n1\n1,2,3\n\"open,\n2,x\n",
            "id;name\n\"\"\n\"a\"b,2\r\n",
        ],
    )
}

/// Corpus of [`tsv`].
#[must_use]
pub fn tsv_seeds() -> Vec<Seed> {
    with(&[1, 0x87], &["a\tb\tc\n# no\nd\te\r\n\n\t\t\nlast\tone\tx", "one\n\ttwo\n"])
}

/// Corpus of [`deb`].
#[must_use]
pub fn deb_seeds() -> Vec<Seed> {
    with(
        &[9, 0x81],
        &[
            "Package: a\nVersion: 1.0\nDescription: x\n more\n .\n\npackage: b\nVersion: 2\n# no\n\n\n",
            " odd\nPackage: c\n\nPackage\n\nPackage: d\nPackage: e\n\nVersion: 3\n",
        ],
    )
}
