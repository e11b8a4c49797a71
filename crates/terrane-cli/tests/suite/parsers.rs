//! The import parsers: what they take, what they call bad, and that they go on from any record.
#![expect(clippy::unwrap_used, reason = "tests")]

use std::io::{BufReader, Cursor};

use proptest::prelude::*;
use terrane_cli::import::{self, Format, Keys, Position, Row, Step, Streamed, Syntax};

fn syntax(format: Format, fields: &[&str]) -> Syntax {
    let fields = fields.iter().map(|&field| field.to_owned()).collect();
    Syntax { format, keys: Keys { fields, separator: b"/".to_vec() }, delimiter: b',', comment: Some(b'#') }
}

/// One line for each step: `key => value`, or `line N: reason`.
fn run(syntax: &Syntax, text: &[u8]) -> Vec<String> {
    let show = |bytes: &[u8]| bytes.escape_ascii().to_string();
    let steps = steps_from(syntax, text, Position::default(), 8).unwrap();
    let line = |(step, row, _): (Step, Row, Position)| match step {
        Step::Row => format!("{} => {}", show(&row.key), show(&row.value)),
        Step::Bad(bad) => format!("line {}: {}", bad.line, bad.reason),
        Step::Table(name, _) => format!("table {name}"),
        Step::End => unreachable!("the end is not kept"),
    };
    steps.into_iter().map(line).collect()
}

type Found = Vec<(Step, Row, Position)>;

fn steps_from(syntax: &Syntax, text: &[u8], from: Position, chunk: usize) -> std::io::Result<Found> {
    let input = Box::new(Streamed(BufReader::with_capacity(chunk, Cursor::new(text.to_vec()))));
    let mut records = import::open(input, syntax, from)?;
    let mut found = Vec::new();
    loop {
        let mut row = Row::default();
        match records.next(&mut row)? {
            Step::End => return Ok(found),
            step => found.push((step, row, records.position())),
        }
    }
}

#[track_caller]
fn check(format: Format, fields: &[&str], text: &str, expected: &[&str]) {
    assert_eq!(run(&syntax(format, fields), text.as_bytes()), expected);
}

#[test]
fn json_lines() {
    check(
        Format::Jsonl,
        &["id"],
        "\u{feff}{\"id\": 7, \"x\": 1}\r\n\n{\"x\":{\"id\":1},\"id\":\"a\\u0062\"}\n{\"id\":1,\"id\":true}",
        &[
            "7 => {\"id\": 7, \"x\": 1}",
            "ab => {\"x\":{\"id\":1},\"id\":\"a\\\\u0062\"}",
            "true => {\"id\":1,\"id\":true}",
        ]
        .map(|line| line.replace('"', "\\\""))
        .iter()
        .map(String::as_str)
        .collect::<Vec<_>>(),
    );
    check(
        Format::Jsonl,
        &["a.b", "c"],
        "{\"a\":{\"b\":1.50},\"c\":\"z\"}\n",
        &["1.50/z => {\\\"a\\\":{\\\"b\\\":1.50},\\\"c\\\":\\\"z\\\"}"],
    );
}

#[test]
fn bad_json_lines_are_named_and_skipped() {
    check(
        Format::Jsonl,
        &["a.b"],
        "{\"a\":}\n[1]\n{\"a\":1}\n{\"x\":1}\n{\"a\":{\"b\":null}}\n{\"a\":{\"b\":[]}}\n{\"a\":{\"b\":1}} x\n{\"a\":{\"b\":2}}\n",
        &[
            "line 1: not JSON: expected a text in double quotes, a number, an object, a list, true, false or null, at column 6",
            "line 2: not an object (key field a.b)",
            "line 3: not an object (key field a.b)",
            "line 4: has no field a (key field a.b)",
            "line 5: key field a.b is null",
            "line 6: key field a.b is not a string, number or boolean",
            "line 7: not JSON: text behind the end of the object, at column 15",
            "2 => {\\\"a\\\":{\\\"b\\\":2}}",
        ],
    );
    let found = run(&syntax(Format::Jsonl, &["a"]), b"{\"a\":\"\xff\"}\n");
    assert_eq!(found, ["line 1: not UTF-8 at byte 6"]);
}

#[test]
fn csv_rows() {
    check(
        Format::Csv,
        &["id"],
        "name,id\r\nada,1\r\n\n\"gr\"\"ace, h\",2\n\"two\nlines\",3\n,4",
        &[
            "1 => {\\\"name\\\":\\\"ada\\\",\\\"id\\\":\\\"1\\\"}",
            "2 => {\\\"name\\\":\\\"gr\\\\\\\"ace, h\\\",\\\"id\\\":\\\"2\\\"}",
            "3 => {\\\"name\\\":\\\"two\\\\nlines\\\",\\\"id\\\":\\\"3\\\"}",
            "4 => {\\\"name\\\":\\\"\\\",\\\"id\\\":\\\"4\\\"}",
        ],
    );
}

#[test]
fn a_byte_order_mark_is_left_out_at_the_start_of_csv_only() {
    check(
        Format::Csv,
        &["id"],
        "\u{feff}id,name\n\u{feff}1,ada\n\n\u{feff}2,\n",
        &[
            "\\xef\\xbb\\xbf1 => {\\\"id\\\":\\\"\\xef\\xbb\\xbf1\\\",\\\"name\\\":\\\"ada\\\"}",
            "\\xef\\xbb\\xbf2 => {\\\"id\\\":\\\"\\xef\\xbb\\xbf2\\\",\\\"name\\\":\\\"\\\"}",
        ],
    );
}

/// Found by fuzzing: a carriage return between columns took a byte off an empty last column.
#[test]
fn quotes_and_line_ends_are_not_separators_of_columns() {
    for delimiter in [b'"', b'\r', b'\n'] {
        let syntax = Syntax { delimiter, ..syntax(Format::Csv, &["id"]) };
        let refused = steps_from(&syntax, b"id\rname\r\n1\r\r\n", Position::default(), 8).unwrap_err();
        assert_eq!(refused.kind(), std::io::ErrorKind::InvalidData);
        assert!(refused.to_string().contains("cannot separate columns"), "{refused}");
    }
}

#[test]
fn bad_csv_rows_are_named_and_skipped() {
    check(
        Format::Csv,
        &["a"],
        "a,b\n1\n2,3\n\n4,5,6\n\"7\nx\",8\n9,\"open\n",
        &[
            "line 2: 1 columns where the header has 2",
            "2 => {\\\"a\\\":\\\"2\\\",\\\"b\\\":\\\"3\\\"}",
            "line 5: 3 columns where the header has 2",
            "7\\nx => {\\\"a\\\":\\\"7\\\\nx\\\",\\\"b\\\":\\\"8\\\"}",
            "line 8: a quote is not closed",
        ],
    );
    let refused =
        |text: &[u8]| steps_from(&syntax(Format::Csv, &["id"]), text, Position::default(), 8).unwrap_err();
    assert_eq!(refused(b"a,b\n").to_string(), "has no column id: the header names a, b");
    assert_eq!(refused(b"").to_string(), "has no header: the first line must name the columns");
}

#[test]
fn stanzas() {
    check(
        Format::Deb,
        &["package", "Architecture"],
        "\n# a comment\nPackage: ada\nArchitecture: all\nDescription: one\n two\n .\n three\n \nPackage: b\nArchitecture:c\n",
        &[
            "ada/all => Package: ada\\nArchitecture: all\\nDescription: one\\n two\\n .\\n three",
            "b/c => Package: b\\nArchitecture:c",
        ],
    );
}

#[test]
fn bad_stanzas_are_named_and_skipped() {
    check(
        Format::Deb,
        &["Package"],
        " lost\n\nVersion: 1\n\nPackage: a\nno colon\n\nPackage: b\nPackage: c\n\nPackage: d\n",
        &[
            "line 1: a continuation line without a field before it",
            "line 3: has no field Package",
            "line 6: expected `Name: value`",
            "line 9: key field Package occurs twice in one stanza",
            "d => Package: d",
        ],
    );
}

#[test]
fn tab_separated_lines() {
    check(
        Format::Tsv,
        &["3", "1"],
        "# comment\nDE\t+5230\tEurope/Berlin\tmost\n\nX\nCH\t\tEurope/Zurich\r\n",
        &[
            "Europe/Berlin/DE => +5230\\tmost",
            "line 4: has 1 columns, the key needs column 3",
            "Europe/Zurich/CH => ",
        ],
    );
    let refused = steps_from(&syntax(Format::Tsv, &["name"]), b"", Position::default(), 8).unwrap_err();
    assert!(refused.to_string().contains("by number"), "{refused}");
}

#[test]
fn names_tell_formats() {
    let cases = [
        ("a/b.jsonl.gz", Some(Format::Jsonl)),
        ("/var/lib/dpkg/status", Some(Format::Deb)),
        ("zone1970.tab", Some(Format::Tsv)),
        ("X.CSV.zst", Some(Format::Csv)),
        ("a.bin", None),
        ("-", None),
    ];
    for (name, format) in cases {
        assert_eq!(Format::of_name(name), format, "{name}");
    }
}

#[test]
fn a_position_beyond_the_end_is_refused() {
    for format in [Format::Jsonl, Format::Deb, Format::Tsv, Format::Csv] {
        let fields = if format == Format::Tsv { "1" } else { "a" };
        let beyond = Position { offset: 100, line: 3 };
        let refused = steps_from(&syntax(format, &[fields]), b"a,b\n1,2\n", beyond, 8).unwrap_err();
        assert_eq!(refused.kind(), std::io::ErrorKind::UnexpectedEof, "{format:?}");
    }
}

/// Pieces that make inputs which are nearly right.
fn piece() -> impl Strategy<Value = Vec<u8>> {
    let fixed = prop::sample::select(vec![
        "\n",
        "\r\n",
        "\r",
        "\t",
        ",",
        "\"",
        "\"\"",
        "a",
        "id",
        ": ",
        "Package: x\n",
        "{\"id\":1}\n",
        "{\"id\":",
        "{\"key\":\"k\",\"value_hex\":\"00ff\"}\n",
        "{\"table\":\"t\",\"options\":{\"key_order\":\"reverse\"}}\n",
        "0x",
        "k\tv\n",
        "k,v,\nff,v,k\n",
        " ",
        "#",
        "}",
        "\u{feff}",
        "é",
        "1,2\n",
        "\n\n",
        "\\",
    ]);
    prop_oneof![8 => fixed.prop_map(|text| text.as_bytes().to_vec()), 1 => prop::collection::vec(any::<u8>(), 1..4)]
}

fn any_syntax() -> impl Strategy<Value = (Syntax, &'static str)> {
    prop::sample::select(vec![
        (syntax(Format::Jsonl, &["id"]), ""),
        (syntax(Format::Csv, &["id"]), "id,x\n"),
        (syntax(Format::Deb, &["Package"]), ""),
        (syntax(Format::Tsv, &["1"]), ""),
        (syntax(Format::JsonRows, &[]), ""),
        (syntax(Format::TsvRows, &[]), "#terrane-rows\n"),
        (syntax(Format::CsvRows, &[]), "key,value,hex\n"),
    ])
}

proptest! {
    /// Any bytes: no panic, positions go forward and end at the end, the chunks of the input do not matter,
    /// and from every position the rest comes out the same.
    #[test]
    fn any_input_is_read_to_its_end_and_from_every_position(
        (syntax, head) in any_syntax(),
        pieces in prop::collection::vec(piece(), 0..24),
        chunk in 1usize..16,
    ) {
        let text = [head.as_bytes(), &pieces.concat()].concat();
        let whole = steps_from(&syntax, &text, Position::default(), 4096).unwrap();
        prop_assert_eq!(&whole, &steps_from(&syntax, &text, Position::default(), chunk).unwrap());
        for pair in whole.windows(2) {
            prop_assert!(pair[0].2 < pair[1].2);
        }
        for (index, (_, _, position)) in whole.iter().enumerate() {
            let rest = steps_from(&syntax, &text, *position, chunk).unwrap();
            prop_assert_eq!(&whole[index + 1..], &rest[..]);
        }
    }

    /// Rows written as CSV, however quoted, are read back.
    #[test]
    fn csv_is_read_back(rows in prop::collection::vec(("[a-z\",\n\r ]{0,8}", "[a-z0-9]{1,8}"), 0..12), crlf: bool) {
        let end = if crlf { "\r\n" } else { "\n" };
        let mut text = format!("text,id{end}");
        for (value, id) in &rows {
            text += &format!("\"{}\",{id}{end}", value.replace('"', "\"\""));
        }
        let found = steps_from(&syntax(Format::Csv, &["id"]), text.as_bytes(), Position::default(), 7).unwrap();
        prop_assert_eq!(found.len(), rows.len());
        for ((step, row, _), (value, id)) in found.iter().zip(&rows) {
            prop_assert_eq!(step, &Step::Row);
            prop_assert_eq!(&row.key, id.as_bytes());
            let object: serde_json::Value = serde_json::from_slice(&row.value).unwrap();
            prop_assert_eq!(object["text"].as_str(), Some(value.as_str()));
        }
    }

    /// Rows written as JSON Lines are read back, the key decoded.
    #[test]
    fn json_lines_are_read_back(ids in prop::collection::vec(".{0,12}", 0..12)) {
        let lines: Vec<String> = ids.iter().map(|id| serde_json::json!({"v": [1, {}], "id": id}).to_string()).collect();
        let found = steps_from(&syntax(Format::Jsonl, &["id"]), lines.join("\n").as_bytes(), Position::default(), 5).unwrap();
        prop_assert_eq!(found.len(), ids.len());
        for ((step, row, _), (id, line)) in found.iter().zip(ids.iter().zip(&lines)) {
            prop_assert_eq!(step, &Step::Row);
            prop_assert_eq!(&row.key, id.as_bytes());
            prop_assert_eq!(&row.value, line.as_bytes());
        }
    }
}
