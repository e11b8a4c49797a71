//! Programs in C against the library's own header: one for each subject, in `tests/c`. They are compiled with
//! `cc` and run with a directory of their own; where there is no `cc` they are left out, with a word. With
//! `TERRANE_VALGRIND=1` they run under valgrind, and errors and leaks fail.

use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use tempfile::TempDir;

const SONAME: &str = "librocksdb.so.11";

/// Where cargo puts the library beside its tests.
fn library() -> PathBuf {
    let test = std::env::current_exe().expect("the path of this test");
    let directory = test.parent().expect("a directory");
    let library = directory.join("librocksdb.so");
    assert!(library.exists(), "{} is not there", library.display());
    library
}

fn has_compiler() -> bool {
    let is_there = Command::new("cc").arg("--version").output().is_ok_and(|output| output.status.success());
    if !is_there {
        println!("not run: there is no `cc`");
    }
    is_there
}

fn run(name: &str) {
    let directory = tempfile::tempdir().expect("temporary directory");
    run_in(name, &directory);
}

/// Runs a program on the directory `data` in a directory; says whether it could.
fn run_in(name: &str, directory: &TempDir) -> bool {
    let Some(mut command) = compiled(name, directory) else { return false };
    let output = command.output().expect("the program runs");
    check_end(name, &output);
    true
}

fn check_end(name: &str, output: &Output) {
    assert!(
        output.status.success(),
        "{name}: {}\n{}",
        output.status,
        String::from_utf8_lossy(&output.stderr)
    );
}

/// Compiles a program, and says how it is run on the directory `data` in a directory; `None` where it cannot.
fn compiled(name: &str, directory: &TempDir) -> Option<Command> {
    if !has_compiler() {
        return None;
    }
    let sources = Path::new(env!("CARGO_MANIFEST_DIR"));
    let program = directory.path().join("program");
    let library = library();
    std::os::unix::fs::symlink(&library, directory.path().join(SONAME)).expect("a link to the library");
    let mut compiler = Command::new("cc");
    compiler.args(["-std=c11", "-Wall", "-Wextra", "-Werror", "-pthread", "-g", "-o"]).arg(&program);
    compiler
        .arg("-I")
        .arg(sources.join("include"))
        .arg(sources.join(format!("tests/c/{name}.c")))
        .arg(&library);
    let compiled = compiler.output().expect("cc can be run");
    assert!(compiled.status.success(), "{name}: {}", String::from_utf8_lossy(&compiled.stderr));

    let data = directory.path().join("data");
    if !data.exists() {
        std::fs::create_dir(&data).expect("a directory for databases");
    }
    let mut command = match std::env::var_os("TERRANE_VALGRIND") {
        None => Command::new(&program),
        Some(_) => {
            let mut valgrind = Command::new("valgrind");
            valgrind.args(["--quiet", "--error-exitcode=9", "--leak-check=full"]);
            valgrind.arg("--errors-for-leak-kinds=definite").arg(&program);
            valgrind
        }
    };
    command.arg(&data).env("LD_LIBRARY_PATH", directory.path());
    Some(command)
}

/// A program that was linked with another release looks for that one's name: a link of it will do.
#[test]
#[expect(clippy::disallowed_methods, reason = "sources for the compiler, in a directory of the test")]
fn a_program_that_was_linked_with_another_release_runs() {
    const OTHER: &str = "librocksdb.so.9.10";
    if !has_compiler() {
        return;
    }
    let directory = tempfile::tempdir().expect("temporary directory");
    let file = |name: &str| directory.path().join(name);
    // What it is linked with makes no options.
    let other = "void* rocksdb_options_create(void) { return 0; }\nvoid rocksdb_options_destroy(void* options) { (void)options; }\n";
    let program = "#include \"rocksdb/c.h\"\nint main(void) {\n  rocksdb_options_t* options = rocksdb_options_create();\n  \
                   int is_made = options != 0;\n  rocksdb_options_destroy(options);\n  return is_made ? 0 : 1;\n}\n";
    std::fs::write(file("other.c"), other).expect("written");
    std::fs::write(file("program.c"), program).expect("written");
    let compile = |arguments: &[&std::ffi::OsStr]| {
        let compiled = Command::new("cc").args(arguments).output().expect("cc can be run");
        assert!(compiled.status.success(), "{}", String::from_utf8_lossy(&compiled.stderr));
    };
    let soname = format!("-Wl,-soname,{OTHER}");
    let include = Path::new(env!("CARGO_MANIFEST_DIR")).join("include");
    let word = std::ffi::OsStr::new;
    compile(&[
        word("-shared"),
        word(&soname),
        word("-o"),
        file("other.so").as_ref(),
        file("other.c").as_ref(),
    ]);
    let (out, source, linked) = (file("program"), file("program.c"), file("other.so"));
    compile(&[word("-I"), include.as_ref(), word("-o"), out.as_ref(), source.as_ref(), linked.as_ref()]);
    let run = || {
        let mut program = Command::new(file("program"));
        program.env("LD_LIBRARY_PATH", directory.path()).output().expect("the program runs").status
    };
    assert!(!run().success(), "there is no library of that name");
    std::os::unix::fs::symlink(library(), file(OTHER)).expect("a link to the library");
    assert!(run().success(), "it finds the library by the name that it was linked with");
}

/// Tests that run the program of their name.
macro_rules! programs {
    ($($name:ident)*) => {$(
        #[test]
        fn $name() {
            run(stringify!($name));
        }
    )*};
}

programs! {
    open
    data
    families
    batch
    records
    failed
    indexed
    transactions
    optimistic
    prepared
    runs
    walfilter
    iterator
    callbacks
    info
    comparator
    ordered
    timestamps
    files
    log
    maintain
    objects
    threads
    backup
    secondary
    metadata
    statistics
    ignored
    strict
    listener
    blobs
}

/// An operator of a Rust program: the value is the last operand.
#[derive(Debug)]
struct Joined;

impl terrane::MergeOperator for Joined {
    fn name(&self) -> &str {
        "test.joined"
    }

    fn full(
        &self,
        _key: &[u8],
        _base: Option<&[u8]>,
        operands: &[&[u8]],
        out: &mut Vec<u8>,
    ) -> terrane::Result<()> {
        out.extend_from_slice(operands.last().expect("there is an operand"));
        Ok(())
    }
}

fn joined() -> terrane::Result<terrane::MergeOperators> {
    terrane::MergeOperators::new().with(std::sync::Arc::new(Joined))
}

/// The library opens databases of C programs, though it lacks their merge operators.
#[test]
fn left() -> terrane::Result<()> {
    let directory = tempfile::tempdir().expect("temporary directory");
    if !run_in("left", &directory) {
        return Ok(());
    }
    let (data, repaired) = (directory.path().join("data/left"), directory.path().join("repaired"));
    let db = terrane::Db::open(&data)?;
    assert_eq!(db.get(b"k")?.as_deref(), Some(&b"from C"[..]));
    let sums = db.table("sums")?;
    assert_eq!(sums.get(b"plain")?.as_deref(), Some(&b"value"[..]));
    let refused = sums.get(b"n").expect_err("its operator is not known");
    assert!(refused.to_string().contains("rocksdb:sums"), "{refused}");
    db.close()?;
    let report = terrane::repair(&data, &repaired, &terrane::Options::default())?;
    assert!(report.is_whole(), "{:?}", report.losses);
    Ok(())
}

/// C programs open databases of the library, and the library opens theirs.
#[test]
fn native() -> terrane::Result<()> {
    let directory = tempfile::tempdir().expect("temporary directory");
    let data = directory.path().join("data");
    let db = terrane::Db::open(&data)?;
    db.put(b"k", b"from the library")?;
    let counting = terrane::TableOptions::new().set("merge_operator", "counter")?;
    let counters = db.create_table("counters", &counting)?;
    counters.merge(b"n", terrane::counter::encode(2))?;
    db.close()?;
    // A flush at the close would make a value of the operand.
    let apart = terrane::Options { close_flush: false, ..terrane::Options::default() };
    let db = terrane::Db::open_with_functions(&data, &apart, joined()?)?;
    let joining = terrane::TableOptions::new().set("merge_operator", "test.joined")?;
    let joined = db.create_table("joined", &joining)?;
    joined.put(b"k", b"from the library")?;
    joined.merge(b"n", b"operand")?;
    drop(joined);
    for (name, key) in [("hex:AB", b"committed"), ("hex:6162", b"taken bck")] {
        let mut transaction = db.transaction(&terrane::TransactionOptions::default())?;
        transaction.put(db.default_table(), key, b"prepared")?;
        transaction.prepare(name)?;
    }
    db.close()?;
    if run_in("native", &directory) {
        let db = terrane::Db::open_with_functions(&data, &terrane::Options::default(), self::joined()?)?;
        assert_eq!(db.get(b"k")?.as_deref(), Some(&b"from C"[..]));
        assert_eq!(db.table("joined")?.get(b"n")?.as_deref(), Some(&b"operand"[..]));
        let counters = db.table("counters")?;
        assert!(counters.contains(b"n")? && counters.contains(b"also")?);
        assert!(db.prepared().is_empty(), "{:?}", db.prepared());
        assert_eq!(db.get(b"committed")?.as_deref(), Some(&b"prepared"[..]));
        assert_eq!(db.get(b"taken bck")?, None);
    }
    Ok(())
}

/// Batch `number` of the writer beside the readers of `beside.c`.
fn write_numbered(db: &terrane::Db, tables: &[terrane::Table; 2], number: u64) -> terrane::Result<()> {
    let mut batch = terrane::Batch::new();
    let value = format!("{number:010}").repeat(20);
    for table in tables {
        for row in 0..32 {
            batch.put(table, format!("row{row:04}"), &value)?;
        }
        if number % 2 == 1 {
            batch.put(table, "odd", "")?;
        } else {
            batch.delete(table, "odd")?;
        }
    }
    db.write(&batch, terrane::Durability::Buffered)?;
    Ok(())
}

/// A C program reads a database that this process writes, flushes and compacts until the program has ended.
#[test]
fn beside() -> terrane::Result<()> {
    let directory = tempfile::tempdir().expect("temporary directory");
    let db = terrane::Db::open(directory.path().join("data"))?;
    let tables = [db.default_table().clone(), db.create_table("other", &terrane::TableOptions::new())?];
    write_numbered(&db, &tables, 1)?;
    let Some(mut command) = compiled("beside", &directory) else { return Ok(()) };
    let mut program =
        command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("the program runs");
    for number in 2.. {
        if program.try_wait().expect("a child can be asked").is_some() {
            break;
        }
        write_numbered(&db, &tables, number)?;
        if number % 16 == 0 {
            db.flush()?;
        }
        if number % 64 == 0 {
            for table in &tables {
                db.compact_range(table, ..)?;
            }
        }
    }
    check_end("beside", &program.wait_with_output().expect("its output is there"));
    db.close()
}
