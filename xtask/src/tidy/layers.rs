//! The house: every crate has a layer, a dependency goes only to a smaller number, and ARCHITECTURE.md shows
//! the crates as they are.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use super::Finding;
use crate::manifest::{Package, packages};
use crate::tree::Tree;

const MAP: &str = "ARCHITECTURE.md";
const MAP_BEGIN: &str = "<!-- crate map: written by `cargo xtask tidy --write` -->\n";
const MAP_END: &str = "<!-- end of crate map -->";

/// Checks layers, edges and the crate map.
#[must_use]
pub fn check(tree: &Tree) -> Vec<Finding> {
    let packages = match packages(tree) {
        Ok(packages) => packages,
        Err(why) => return vec![Finding::new("Cargo.toml", 0, why)],
    };
    let mut findings = Vec::new();
    for package in packages.values().filter(|package| package.name != "xtask") {
        match package.layer {
            Some(layer) => check_edges(package, layer, &packages, &mut findings),
            None => findings.push(Finding::new(
                &package.path,
                0,
                "has no layer: add `[package.metadata]` with `layer = N` (DESIGN, section 3)",
            )),
        }
    }
    check_map(tree, &packages, &mut findings);
    findings
}

fn check_edges(from: &Package, layer: i64, all: &BTreeMap<String, Package>, findings: &mut Vec<Finding>) {
    for to in from.dependencies.iter().filter_map(|name| all.get(name)) {
        let direction = match to.layer {
            Some(below) if below < layer => continue,
            Some(same) if same == layer => "sideways",
            Some(_) => "upward",
            None => "to a crate without a layer",
        };
        let (from_name, to_name) = (&from.name, &to.name);
        let to_layer = to.layer.map_or("none".to_owned(), |layer| layer.to_string());
        findings.push(Finding::new(
            &from.path,
            0,
            format!(
                "edge {direction}: {from_name} (layer {layer}) depends on {to_name} (layer {to_layer}); move what \
                 both need to a crate below {from_name}, or let {to_name} implement a trait that {from_name} owns"
            ),
        ));
    }
}

fn check_map(tree: &Tree, packages: &BTreeMap<String, Package>, findings: &mut Vec<Finding>) {
    let Some(text) = tree.get(MAP) else {
        findings.push(Finding::new(MAP, 0, "is missing"));
        return;
    };
    let Some((before, rest)) = text.split_once(MAP_BEGIN) else {
        findings.push(Finding::new(MAP, 0, format!("has no line {:?}", MAP_BEGIN.trim())));
        return;
    };
    let found = rest.split_once(MAP_END).map_or("", |(map, _)| map);
    if found != map_table(packages) {
        let line = 1 + before.lines().count();
        let why = "the crate map is not what the manifests say: run `cargo xtask tidy --write`";
        findings.push(Finding::new(MAP, line, why));
    }
}

/// The crate map: layer, name and description of every manifest, by layer.
fn map_table(packages: &BTreeMap<String, Package>) -> String {
    let mut rows: Vec<_> =
        packages.values().filter_map(|p| Some((p.layer?, &p.name, &p.description))).collect();
    rows.sort();
    let mut table = "| layer | crate | purpose |\n|---|---|---|\n".to_owned();
    for (layer, name, description) in rows {
        let _ = writeln!(table, "| {layer} | `{name}` | {description} |");
    }
    table
}

/// ARCHITECTURE.md with a true crate map, if it differs.
#[must_use]
pub fn renewed(tree: &Tree) -> Option<(&'static str, String)> {
    let text = tree.get(MAP)?;
    let (before, rest) = text.split_once(MAP_BEGIN)?;
    let (_, after) = rest.split_once(MAP_END)?;
    let new = format!("{before}{MAP_BEGIN}{}{MAP_END}{after}", map_table(&packages(tree).ok()?));
    (new != text).then_some((MAP, new))
}
