//! The licences of everything in `Cargo.lock`, against the list of `deny.toml`: what `cargo deny` checks too,
//! without a tool to install.

use std::path::Path;
use std::process::Command;

use crate::tree::Tree;

/// Checks every crate that comes from a registry.
///
/// # Errors
/// Names each crate whose licence is not in the list, or what could not be read.
pub fn check(root: &Path, tree: &Tree) -> Result<usize, String> {
    let allowed = allowed(tree)?;
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let metadata = Command::new(cargo)
        .args(["metadata", "--locked", "--format-version", "1", "--all-features"])
        .current_dir(root)
        .output()
        .map_err(|why| format!("cannot run cargo metadata: {why}"))?;
    if !metadata.status.success() {
        return Err(format!("cargo metadata: {}", String::from_utf8_lossy(&metadata.stderr)));
    }
    let metadata: serde_json::Value =
        serde_json::from_slice(&metadata.stdout).map_err(|why| format!("cargo metadata: {why}"))?;
    let packages = metadata["packages"].as_array().ok_or("cargo metadata names no packages")?;
    let mut refused = Vec::new();
    for package in packages {
        let licence = package["license"].as_str().unwrap_or_default();
        if !is_allowed(licence, &allowed) {
            refused.push(format!("{} {}: {licence:?}", package["name"], package["version"]));
        }
    }
    match refused.len() {
        0 => Ok(packages.len()),
        count => Err(format!(
            "{count} crates with a licence that deny.toml does not allow: {}",
            refused.join("; ")
        )),
    }
}

/// The list of `deny.toml`.
fn allowed(tree: &Tree) -> Result<Vec<String>, String> {
    let table: toml::Table =
        tree.get("deny.toml").unwrap_or_default().parse().map_err(|why| format!("deny.toml: {why}"))?;
    let list =
        table.get("licenses").and_then(|licenses| licenses.get("allow")).and_then(toml::Value::as_array);
    let list = list.ok_or("deny.toml has no list `allow` under [licenses]")?;
    Ok(list.iter().filter_map(|licence| licence.as_str().map(str::to_owned)).collect())
}

/// Returns true if an SPDX expression (or the older `A/B`) can be met by allowed licences alone.
#[must_use]
pub fn is_allowed(expression: &str, allowed: &[String]) -> bool {
    let spaced = expression.replace('(', " ( ").replace(')', " ) ").replace('/', " OR ");
    // `A WITH B` is one licence.
    let spaced = spaced.replace(" WITH ", "\u{1}");
    let words: Vec<String> = spaced.split_whitespace().map(|word| word.replace('\u{1}', " WITH ")).collect();
    let mut at = 0;
    let met = any(&words, &mut at, allowed);
    met == Some(true) && at == words.len()
}

/// `all OR all OR ..`; `None` if it is not an expression.
fn any(words: &[String], at: &mut usize, allowed: &[String]) -> Option<bool> {
    let mut met = all(words, at, allowed)?;
    while words.get(*at).is_some_and(|word| word == "OR") {
        *at += 1;
        met |= all(words, at, allowed)?;
    }
    Some(met)
}

/// `one AND one AND ..`.
fn all(words: &[String], at: &mut usize, allowed: &[String]) -> Option<bool> {
    let mut met = one(words, at, allowed)?;
    while words.get(*at).is_some_and(|word| word == "AND") {
        *at += 1;
        met &= one(words, at, allowed)?;
    }
    Some(met)
}

/// A licence, or an expression in parentheses.
fn one(words: &[String], at: &mut usize, allowed: &[String]) -> Option<bool> {
    let word = words.get(*at)?;
    *at += 1;
    if word != "(" {
        return (word != ")" && word != "OR" && word != "AND").then(|| allowed.contains(word));
    }
    let met = any(words, at, allowed)?;
    (words.get(*at)? == ")").then(|| *at += 1)?;
    Some(met)
}
