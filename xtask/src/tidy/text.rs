//! Characters and lines that no text file may hold: control characters, conflict marks, lines that end in
//! blanks, paths of one person's machine.

use super::Finding;
use crate::tree::Tree;

/// Where people and tools keep their own files; nothing in the tree may depend on such a place.
const LOCAL: &[&str] = &[
    concat!("/ho", "me/"),
    concat!("/Us", "ers/"),
    concat!("/ro", "ot/"),
    concat!("/wo", "rk/"),
    concat!("/tmp", "/t/"),
];
const CONFLICTS: &[&str] = &[concat!("<<<<", "<<< "), concat!(">>>>", ">>> ")];

/// Checks every line of every text file.
#[must_use]
pub fn check(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (path, text) in tree.files() {
        for (index, line) in text.split('\n').enumerate() {
            for why in line_findings(path, line) {
                findings.push(Finding::new(path, index + 1, why));
            }
        }
        if !text.is_empty() && !text.ends_with('\n') {
            findings.push(Finding::new(path, 0, "does not end with a line break"));
        }
    }
    findings
}

fn line_findings(path: &str, line: &str) -> Vec<String> {
    let mut found = Vec::new();
    if let Some(c) = line.chars().find(|&c| is_hidden(c)) {
        found.push(format!("control character U+{:04X}: write it as an escape", u32::from(c)));
    }
    // Expected output of text scripts may end in blanks.
    if line.ends_with([' ', '\t', '\r']) && !path.ends_with(".test") {
        found.push("ends in blanks".to_owned());
    }
    if let Some(place) = LOCAL.iter().find(|place| names_place(line, place)) {
        found.push(format!("path of one machine ({place}...): name it relative to the repository"));
    }
    if CONFLICTS.iter().any(|mark| line.starts_with(mark)) {
        found.push("mark of an unfinished merge".to_owned());
    }
    found
}

/// Controls but tab, and the invisible characters that make text read otherwise than it runs.
fn is_hidden(c: char) -> bool {
    let invisible =
        matches!(c, '\u{200B}'..='\u{200F}' | '\u{202A}'..='\u{202E}' | '\u{2060}'..='\u{2069}' | '\u{FEFF}');
    (c.is_control() && c != '\t' && c != '\r') || invisible
}

fn names_place(line: &str, place: &str) -> bool {
    line.match_indices(place).any(|(at, _)| {
        // A path starts here only if nothing that belongs to a path stands before it.
        !line[..at].chars().next_back().is_some_and(|c| c.is_alphanumeric() || "._-/~}".contains(c))
    })
}
