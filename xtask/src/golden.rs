//! `golden`: makes the golden stores of a new format version. The stores of an older version are never made
//! again: that version wrote them.

use std::path::Path;
use std::process::Command;

/// Where golden stores lie, below the root.
const GOLDEN: &str = "tests/golden";

/// Makes the golden stores `version`, such as `v2`.
///
/// # Errors
/// Says that the name is not a version, that the stores exist, or that the tool failed.
pub fn run(root: &Path, version: &str) -> Result<(), String> {
    let number = version.strip_prefix('v').and_then(|number| number.parse::<u32>().ok());
    if number.is_none_or(|number| number == 0) {
        return Err(format!("{version} is not a version: write v1, v2, .."));
    }
    let target = root.join(GOLDEN).join(version);
    if target.exists() {
        return Err(format!(
            "{} exists: golden stores are what a version wrote and are never made again; choose the next version",
            target.display()
        ));
    }
    std::fs::create_dir_all(root.join(GOLDEN)).map_err(|why| why.to_string())?;
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let arguments = ["run", "-p", "terrane", "--features", "zstd", "--example", "golden", "--"];
    let status = Command::new(cargo).args(arguments).arg(&target).current_dir(root).status();
    match status {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => Err(format!("making {} failed ({status})", target.display())),
        Err(why) => Err(format!("cannot run cargo: {why}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn existing_stores_are_not_overwritten() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("xtask lies in the workspace");
        let refusal = run(root, "v1").expect_err("v1 exists");
        assert!(refusal.contains("exists"), "{refusal}");
        for name in ["1", "v0", "vx", "../v9"] {
            assert!(run(root, name).is_err_and(|why| why.contains("not a version")), "{name}");
        }
    }
}
