//! The parts of the workspace's manifests that tidy reads.

use std::collections::BTreeMap;

use crate::tree::Tree;

/// One crate of the workspace.
#[derive(Clone, Debug)]
pub struct Package {
    /// Path of its manifest.
    pub path: String,
    /// Its name.
    pub name: String,
    /// `[package.metadata] layer`.
    pub layer: Option<i64>,
    /// `description`.
    pub description: String,
    /// Names of normal and build dependencies.
    pub dependencies: Vec<String>,
    /// Those of them that are not optional.
    pub needed: Vec<String>,
    /// Names of dev-dependencies.
    pub dev_dependencies: Vec<String>,
    /// False if `[lib]` says `test = false`: the library has no test program of its own.
    pub tests_library: bool,
}

impl Package {
    /// Directory of the crate, without a slash at the end.
    #[must_use]
    pub fn directory(&self) -> &str {
        self.path.strip_suffix("/Cargo.toml").unwrap_or("")
    }
}

/// Every crate under `crates/`, and `xtask`, by name.
///
/// # Errors
/// Names the manifest that is not TOML or has no name.
pub fn packages(tree: &Tree) -> Result<BTreeMap<String, Package>, String> {
    let is_member = |path: &str| {
        let parts: Vec<&str> = path.split('/').collect();
        matches!(parts.as_slice(), ["crates", _, "Cargo.toml"] | ["xtask", "Cargo.toml"])
    };
    let manifests = tree.files().filter(|(path, _)| is_member(path));
    manifests.map(|(path, text)| parse(path, text).map(|package| (package.name.clone(), package))).collect()
}

fn parse(path: &str, text: &str) -> Result<Package, String> {
    let root: toml::Table = text.parse().map_err(|why| format!("{path}: {why}"))?;
    let package = root.get("package").and_then(|value| value.as_table());
    let package = package.ok_or_else(|| format!("{path}: has no [package]"))?;
    let string =
        |name: &str| package.get(name).and_then(|value| value.as_str()).unwrap_or_default().to_owned();
    if string("name").is_empty() {
        return Err(format!("{path}: has no package name"));
    }
    let layer =
        package.get("metadata").and_then(|value| value.get("layer")).and_then(toml::Value::as_integer);
    let mut dependencies = Vec::new();
    let mut needed = Vec::new();
    let mut dev_dependencies = Vec::new();
    let targets = root.get("target").and_then(|value| value.as_table()).into_iter().flat_map(|t| t.values());
    for table in targets.filter_map(|target| target.as_table()).chain([&root]) {
        for section in ["dependencies", "build-dependencies"] {
            dependencies.extend(names(table, section, |_| true));
            needed.extend(names(table, section, |value| !is_optional(value)));
        }
        dev_dependencies.extend(names(table, "dev-dependencies", |_| true));
    }
    let description = string("description");
    let tests_library = root.get("lib").and_then(|library| library.get("test")?.as_bool()).unwrap_or(true);
    Ok(Package {
        path: path.to_owned(),
        name: string("name"),
        layer,
        description,
        dependencies,
        needed,
        dev_dependencies,
        tests_library,
    })
}

/// Returns true if a dependency is there only with a feature.
fn is_optional(dependency: &toml::Value) -> bool {
    dependency.get("optional").and_then(toml::Value::as_bool).unwrap_or(false)
}

/// The crates that a section names and `takes` accepts; a renamed one (`package = "..."`) by its real name.
fn names(table: &toml::Table, section: &str, takes: impl Fn(&toml::Value) -> bool) -> Vec<String> {
    let section = table.get(section).and_then(|value| value.as_table());
    let real = |(name, value): (&String, &toml::Value)| {
        value.get("package").and_then(|value| value.as_str()).unwrap_or(name).to_owned()
    };
    section.into_iter().flatten().filter(|(_, value)| takes(value)).map(real).collect()
}
