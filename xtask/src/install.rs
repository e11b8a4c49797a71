//! Installs RocksDB's C interface like a system library: the built libraries under their names, the header
//! and the pkg-config file.
//!
//! ```text
//! lib/librocksdb.so.11.9       the library
//! lib/librocksdb.so.11         its soname, a link; lib/librocksdb.so, for linkers, another
//! lib/librocksdb.a             where it was built, too
//! lib/pkgconfig/rocksdb.pc     finds both from its own place, so the whole may be moved
//! include/rocksdb/c.h
//! ```

use std::ffi::OsString;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::abi::header;
use crate::abi::table::Abi;

const TABLE: &str = "crates/terrane-rocksdb/abi.toml";
const LIBRARY: &str = "librocksdb.so";

/// The library that is installed.
#[derive(Clone, Copy, Debug)]
pub enum Library<'a> {
    /// This file.
    Built(&'a Path),
    /// Built first, with optimizations and these features of `terrane-rocksdb`, as cargo takes them.
    Features(&'a str),
}

/// Installs a library into `prefix`.
///
/// # Errors
/// Names the file that cannot be made, or says that the build failed.
pub fn run(root: &Path, prefix: &Path, library: Library<'_>) -> Result<(), String> {
    let built = match library {
        Library::Built(built) => built.to_owned(),
        Library::Features(features) => build(root, features)?,
    };
    let text = fs::read_to_string(root.join(TABLE)).map_err(|why| format!("cannot read {TABLE}: {why}"))?;
    let abi = Abi::parse(&text)?;
    let major = abi.version.split('.').next().unwrap_or_default();
    let (libraries, headers) = (prefix.join("lib"), prefix.join("include/rocksdb"));
    let described = libraries.join("pkgconfig");
    for directory in [&described, &headers] {
        fs::create_dir_all(directory).map_err(|why| failed("make", directory, &why))?;
    }
    let full = format!("{LIBRARY}.{}", abi.version);
    copy(&built, &libraries.join(&full))?;
    for name in [format!("{LIBRARY}.{major}"), LIBRARY.to_owned()] {
        let link = libraries.join(name);
        // Of an installation before.
        let _ = fs::remove_file(&link);
        symlink(&full, &link).map_err(|why| failed("make", &link, &why))?;
    }
    let archive = built.with_extension("a");
    if archive.is_file() {
        copy(&archive, &libraries.join("librocksdb.a"))?;
    }
    write(&headers.join("c.h"), &header::text(&abi))?;
    write(&described.join("rocksdb.pc"), &description(&abi.version))?;
    println!("{} has {full}, include/rocksdb/c.h and lib/pkgconfig/rocksdb.pc", prefix.display());
    Ok(())
}

/// Builds the library; where it is.
fn build(root: &Path, features: &str) -> Result<PathBuf, String> {
    let cargo = std::env::var("CARGO").unwrap_or_else(|_| "cargo".to_owned());
    let mut command = Command::new(cargo);
    command.args(["build", "--release", "-p", "terrane-rocksdb", "--features", features]).current_dir(root);
    let status = command.status().map_err(|why| format!("cannot run cargo: {why}"))?;
    if !status.success() {
        return Err("terrane-rocksdb cannot be built".to_owned());
    }
    Ok(built_in(root, std::env::var_os("CARGO_TARGET_DIR")))
}

/// Where cargo, which is run in `root`, puts the library if `CARGO_TARGET_DIR` is this.
fn built_in(root: &Path, target: Option<OsString>) -> PathBuf {
    let target = target.filter(|target| !target.is_empty()).unwrap_or_else(|| "target".into());
    root.join(target).join("release").join(LIBRARY)
}

/// The pkg-config file.
fn description(version: &str) -> String {
    format!(
        "prefix=${{pcfiledir}}/../..\nlibdir=${{prefix}}/lib\nincludedir=${{prefix}}/include\n\nName: rocksdb\n\
         Description: RocksDB's C interface on Terrane\nVersion: {version}\nLibs: -L${{libdir}} -lrocksdb\n\
         Libs.private: -lpthread -ldl -lm\nCflags: -I${{includedir}}\n"
    )
}

fn copy(from: &Path, to: &Path) -> Result<(), String> {
    // A program that runs may have the old one mapped.
    let _ = fs::remove_file(to);
    fs::copy(from, to).map(|_| ()).map_err(|why| failed("copy to", to, &why))
}

fn write(path: &Path, text: &str) -> Result<(), String> {
    fs::write(path, text).map_err(|why| failed("write", path, &why))
}

fn failed(what: &str, path: &Path, why: &std::io::Error) -> String {
    format!("cannot {what} {}: {why}", path.display())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_library_lies_where_cargo_puts_it_from_any_directory() {
        let built = |target: Option<&str>| built_in(Path::new("/source"), target.map(OsString::from));
        assert_eq!(built(None), Path::new("/source/target/release/librocksdb.so"));
        assert_eq!(built(Some("")), Path::new("/source/target/release/librocksdb.so"));
        assert_eq!(built(Some("elsewhere")), Path::new("/source/elsewhere/release/librocksdb.so"));
        assert_eq!(built(Some("/elsewhere")), Path::new("/elsewhere/release/librocksdb.so"));
    }

    #[test]
    fn a_library_is_laid_out_under_all_its_names() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("xtask lies in the workspace");
        let prefix = std::env::temp_dir().join(format!("terrane-install-{}", std::process::id()));
        let built = prefix.join("built/librocksdb.so");
        fs::create_dir_all(prefix.join("built")).expect("made");
        for text in ["first", "second"] {
            fs::write(&built, text).expect("written");
            run(root, &prefix, Library::Built(&built)).expect("installed, also over another");
            for name in ["librocksdb.so", "librocksdb.so.11"] {
                assert_eq!(fs::read_to_string(prefix.join("lib").join(name)).expect(name), text);
            }
        }
        let described = fs::read_to_string(prefix.join("lib/pkgconfig/rocksdb.pc")).expect("there");
        assert!(
            described.contains("Libs: -L${libdir} -lrocksdb\n") && described.contains("\nVersion: 11."),
            "{described}"
        );
        let header = fs::read_to_string(prefix.join("include/rocksdb/c.h")).expect("there");
        assert!(header.contains("rocksdb_open("));
        assert!(!prefix.join("lib/librocksdb.a").exists(), "none was built");
        let missing =
            run(root, &prefix, Library::Built(Path::new("no/such.so"))).expect_err("nothing to install");
        assert!(missing.contains("cannot copy"), "{missing}");
        fs::remove_dir_all(&prefix).expect("removed");
    }
}
