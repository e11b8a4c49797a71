//! Result files.

use std::io::Write as _;

use terrane_bench::report::jsonl::{Sink, parse, read};
use terrane_bench::report::model::{FORMAT, Line, RunReport};

use crate::reports::fixture::large;

fn lines(report: &RunReport) -> Vec<Line> {
    let header = [Line::Header(Box::new(report.header.clone()))];
    let cells = report.cells.iter().map(|cell| Line::Cell(Box::new(cell.clone())));
    let failed = report.failed.iter().map(|failed| Line::Failed(failed.clone()));
    header.into_iter().chain(cells).chain(failed).chain(report.end.map(Line::End)).collect()
}

fn text(report: &RunReport) -> Vec<u8> {
    let lines = lines(report);
    lines.iter().flat_map(|line| serde_json::to_vec(line).unwrap().into_iter().chain([b'\n'])).collect()
}

#[test]
fn written_lines_are_read_back() {
    let report = large(1, 2);
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("result.jsonl");
    let mut sink = Sink::create(&path).unwrap();
    for (at, line) in lines(&report).iter().enumerate() {
        sink.append(line).unwrap();
        // Each line is there at once, not when the sink is closed.
        assert_eq!(std::fs::read_to_string(&path).unwrap().lines().count(), at + 1);
    }
    assert_eq!(read(&path).unwrap(), report);
    assert!(!report.is_partial());
}

#[test]
fn a_file_cut_anywhere_is_an_error_in_its_first_line_and_partial_after_it() {
    let mut report = large(1, 1);
    report.cells.truncate(2);
    report.failed.truncate(1);
    let whole = text(&report);
    let header = whole.iter().position(|byte| *byte == b'\n').unwrap();
    for length in 0..whole.len() {
        let cut = parse(&whole[..length]);
        if length < header {
            assert!(cut.is_err(), "cut at {length}");
            continue;
        }
        let cut = cut.unwrap_or_else(|why| panic!("cut at {length}: {why}"));
        // The end's line feed may be missing: everything was said by then.
        assert_eq!(cut.is_partial(), length + 1 < whole.len(), "cut at {length}");
        assert!(
            report.cells.starts_with(&cut.cells) && report.failed.starts_with(&cut.failed),
            "cut at {length}"
        );
        let feeds = whole[..length].iter().filter(|byte| **byte == b'\n').count();
        assert!(
            cut.cells.len() + cut.failed.len() + usize::from(cut.end.is_some()) + 1 >= feeds,
            "cut at {length}"
        );
    }
    assert!(parse(b"").unwrap_err().contains("empty"));
}

#[test]
fn damage_is_named_with_its_line() {
    let report = large(1, 1);
    let mut damaged = text(&report);
    let third = damaged.iter().enumerate().filter(|(_, byte)| **byte == b'\n').nth(1).unwrap().0 + 1;
    damaged[third + 5] = b'{';
    let why = parse(&damaged).unwrap_err();
    assert!(why.contains("line 3 is damaged"), "{why}");

    let twice = [text(&report), text(&report)].concat();
    let why = parse(&twice).unwrap_err();
    assert!(why.contains("stands after the end"), "{why}");

    let mut headless = text(&report);
    let first = headless.iter().position(|byte| *byte == b'\n').unwrap();
    headless.drain(..=first);
    let why = parse(&headless).unwrap_err();
    assert!(why.contains("line 1 should be the header"), "{why}");

    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("words.jsonl");
    std::fs::File::create(&path).unwrap().write_all(b"no result\nat all\n").unwrap();
    let why = read(&path).unwrap_err().to_string();
    assert!(why.contains("words.jsonl") && why.contains("line 1"), "{why}");
    let why = read(&directory.path().join("absent")).unwrap_err().to_string();
    assert!(why.contains("absent"), "{why}");
}

#[test]
fn a_newer_format_is_refused_even_if_its_header_is_unknown() {
    let newer = format!("{{\"line\":\"header\",\"format\":{},\"new\":[1]}}\n", FORMAT + 1);
    let why = parse(newer.as_bytes()).unwrap_err();
    assert!(why.contains(&format!("format {}", FORMAT + 1)), "{why}");
}
