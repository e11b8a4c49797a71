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
//!
//! With `--soname VERSION` also `lib/librocksdb.so.VERSION`, a link: a program that was linked with that
//! release of RocksDB looks for it. The loader compares only the name of the file.

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

/// The files to install, and how.
#[derive(Clone, Debug)]
pub struct Request<'a> {
    /// Where to.
    pub prefix: &'a Path,
    /// The library.
    pub library: Library<'a>,
    /// Versions of other sonames under which it is found, too.
    pub sonames: Vec<&'a str>,
}

impl<'a> Request<'a> {
    /// A library without other sonames.
    #[must_use]
    pub fn new(prefix: &'a Path, library: Library<'a>) -> Request<'a> {
        Request { prefix, library, sonames: Vec::new() }
    }

    /// Reads the words behind the command; `None` if they are not its arguments.
    #[must_use]
    pub fn of(words: &[&'a str]) -> Option<Request<'a>> {
        let (prefix, mut rest) = words.split_first()?;
        let mut request = Request::new(Path::new(*prefix), Library::Features(""));
        let mut has_library = false;
        while let [word, value, behind @ ..] = rest {
            let (word, value) = (*word, *value);
            match word {
                "--soname" => request.sonames.push(value),
                "--from" | "--features" if has_library => return None,
                "--from" => request.library = Library::Built(Path::new(value)),
                "--features" => request.library = Library::Features(value),
                _ => return None,
            }
            has_library |= word != "--soname";
            rest = behind;
        }
        rest.is_empty().then_some(request)
    }
}

/// Refuses a version of a soname that names no other file than those that are installed.
fn check_soname(soname: &str, version: &str) -> Result<(), String> {
    let is_number = |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
    if !soname.split('.').all(is_number) {
        return Err(format!(
            "--soname {soname}: a version is numbers with points between them, such as 9.10"
        ));
    }
    let major = version.split('.').next().unwrap_or_default();
    if [major, version].contains(&soname) {
        return Err(format!("--soname {soname}: the library has that name already"));
    }
    Ok(())
}

/// Installs a library.
///
/// # Errors
/// Names the file that cannot be made or the soname that cannot be had, or says that the build failed.
pub fn run(root: &Path, request: &Request<'_>) -> Result<(), String> {
    let Request { prefix, library, sonames } = request;
    let text = fs::read_to_string(root.join(TABLE)).map_err(|why| format!("cannot read {TABLE}: {why}"))?;
    let abi = Abi::parse(&text)?;
    sonames.iter().try_for_each(|soname| check_soname(soname, &abi.version))?;
    let built = match *library {
        Library::Built(built) => built.to_owned(),
        Library::Features(features) => build(root, features)?,
    };
    let major = abi.version.split('.').next().unwrap_or_default();
    let (libraries, headers) = (prefix.join("lib"), prefix.join("include/rocksdb"));
    let described = libraries.join("pkgconfig");
    for directory in [&described, &headers] {
        fs::create_dir_all(directory).map_err(|why| failed("make", directory, &why))?;
    }
    let full = format!("{LIBRARY}.{}", abi.version);
    copy(&built, &libraries.join(&full))?;
    let others = sonames.iter().map(|soname| format!("{LIBRARY}.{soname}"));
    for name in [format!("{LIBRARY}.{major}"), LIBRARY.to_owned()].into_iter().chain(others) {
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
    fn arguments_are_a_library_at_most_and_any_number_of_sonames() {
        let request = Request::of(&["/p", "--soname", "7.8", "--from", "a.so", "--soname", "9.10"]);
        let request = request.expect("arguments of the command");
        assert_eq!((request.prefix, &request.sonames[..]), (Path::new("/p"), &["7.8", "9.10"][..]));
        assert!(matches!(request.library, Library::Built(built) if built == Path::new("a.so")));
        let built = Request::of(&["/p"]).expect("a prefix is enough");
        assert!(matches!(built.library, Library::Features("")) && built.sonames.is_empty());
        let refused: [&[&str]; 4] =
            [&[], &["/p", "--soname"], &["/p", "--from", "a", "--features", "zstd"], &["/p", "--to", "a"]];
        assert!(refused.iter().all(|words| Request::of(words).is_none()));
    }

    #[test]
    fn a_soname_is_another_version() {
        for soname in ["7.8", "9.10", "6"] {
            check_soname(soname, "11.9").expect("another release");
        }
        for soname in ["", "11", "11.9", "9.", "9.1x", "../9", "so.9"] {
            check_soname(soname, "11.9").expect_err("no other release");
        }
    }

    #[test]
    fn a_library_is_laid_out_under_all_its_names() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("xtask lies in the workspace");
        let prefix = std::env::temp_dir().join(format!("terrane-install-{}", std::process::id()));
        let built = prefix.join("built/librocksdb.so");
        fs::create_dir_all(prefix.join("built")).expect("made");
        for text in ["first", "second"] {
            fs::write(&built, text).expect("written");
            let sonames = vec!["7.8", "9.10"];
            let request = Request { prefix: &prefix, library: Library::Built(&built), sonames };
            run(root, &request).expect("installed, also over another");
            for name in ["librocksdb.so", "librocksdb.so.11", "librocksdb.so.7.8", "librocksdb.so.9.10"] {
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
        let missing = Request::new(&prefix, Library::Built(Path::new("no/such.so")));
        let missing = run(root, &missing).expect_err("nothing to install");
        assert!(missing.contains("cannot copy"), "{missing}");
        fs::remove_dir_all(&prefix).expect("removed");
    }
}
