//! The command as a process: what it prints, what it returns.
#![allow(clippy::disallowed_methods, clippy::unwrap_used, reason = "runs processes on files of its own")]

use crate::common;

use std::path::Path;
use std::process::Stdio;

use common::{Shell, people};

#[test]
fn put_get_delete() {
    let shell = Shell::new();
    shell.ok("put db k value");
    assert_eq!(shell.ok("get db k"), "value");
    shell.ok(r"put db 0x00ff \tline\n --sync");
    assert_eq!(shell.ok(r"get db \0\xff"), "\tline\n");
    assert_eq!(shell.ok(r"get db \0\xff --format tsv"), "\\tline\\n\n");
    assert_eq!(shell.ok("get db 0x00ff --format hex"), "096c696e650a\n");
    let output = shell.with_input("put db big -", &vec![0xfe; 100_000]);
    assert!(output.status.success());
    assert_eq!(shell.run("get db big").stdout, vec![0xfe; 100_000]);
    shell.ok("delete db k");
    shell.fails("get db k", 1, &["no key \"k\"", "default"]);
    shell.ok("delete db k");
}

#[test]
fn merges_and_times_to_live() {
    let shell = Shell::new();
    shell.ok("put db k v --ttl 30d");
    assert_eq!(shell.ok("get db k"), "v");
    shell.ok("put db k v --ttl 1ms");
    std::thread::sleep(std::time::Duration::from_millis(20));
    shell.fails("get db k", 1, &["no key \"k\""]);
    shell.fails("put db k v --ttl soon", 2, &["soon"]);
    shell.fails("merge db k 1", 2, &["merge_operator"]);
    shell.ok("tables db --create visits --set merge_operator=counter");
    shell.fails("tables db --create other --set nonsense", 2, &["NAME=VALUE"]);
    shell.ok("merge db page 40 --number --table visits");
    shell.ok("merge db page -2 --number --table visits");
    assert_eq!(shell.run("get db page --table visits").stdout, 38i64.to_le_bytes());
    shell.fails("merge db page x --number --table visits", 2, &["whole number"]);
    // What no value can be made of is refused, or every later read of the key would fail.
    shell.fails("merge db page 7 --table visits", 2, &["expected 8", "--number"]);
    assert_eq!(shell.ok("get db page --number --table visits"), "38\n");
    assert_eq!(shell.ok("scan db --number --table visits"), "page\t38\n");
    shell.ok("put db text 12");
    let output = shell.run("scan db --number");
    assert_eq!((output.status.code(), &*output.stdout), (Some(2), &b"text\t12\n"[..]), "12 is text");
    shell.ok("delete db text");
    shell.ok("tables db --create people --set merge_operator=json_merge_patch");
    shell.ok("merge db ada {\"a\":1,\"b\":2} --table people");
    shell.ok("merge db ada {\"a\":null} --table people");
    shell.fails("merge db ada {\"a\": --table people", 2, &["not JSON"]);
    assert_eq!(shell.ok("get db ada --table people"), "{\"b\":2}");
}

#[test]
fn scans() {
    let shell = Shell::new();
    shell.file("t.tsv", "b\t2\na\t1\nba\t3\nc\tx\\y\tz\n");
    assert!(shell.ok("import db t.tsv").starts_with("imported 4 records"));
    assert_eq!(shell.ok("scan db"), "a\t1\nb\t2\nba\t3\nc\tx\\\\y\\tz\n");
    assert_eq!(shell.ok("scan db --reverse --limit 2 --keys"), "c\nba\n");
    shell.ok(r"put typed c 0x52\n --text");
    assert_eq!(shell.ok("get typed c"), r"0x52\n");
    assert_eq!(shell.ok("scan db --reverse --limit 1 --keys --format json"), "{\"key\":\"c\"}\n");
    let got: serde_json::Value = serde_json::from_str(&shell.ok("get db c --format json")).unwrap();
    assert_eq!(got["key"], "c", "{got}");
    assert_eq!(
        shell.ok("scan db --from b --to c --format json"),
        "{\"key\":\"b\",\"value\":\"2\"}\n{\"key\":\"ba\",\"value\":\"3\"}\n"
    );
    assert_eq!(shell.ok("scan db --prefix b --format hex"), "62 32\n6261 33\n");
    assert_eq!(shell.ok("scan db --from c --format raw"), "c\tx\\y\tz\n");
    assert_eq!(shell.ok("count db"), "4\n");
    assert_eq!(shell.ok("count db --prefix b"), "2\n");
    assert_eq!(shell.run("scan db --prefix b --from c").status.code(), Some(2));
    let estimate = shell.ok("estimate db --from b --to c");
    // The import has flushed: within one block of an extent the two of four rows are an estimate.
    assert!(estimate.starts_with("versions 2 +- 2\nbytes "), "{estimate}");
}

#[test]
fn tables() {
    let shell = Shell::new();
    shell.ok("tables db --create users");
    shell.ok("put db k v --table users");
    assert_eq!(shell.ok("tables db"), "default\nusers\n");
    shell.fails("get db k --table others", 1, &["others", "default, users"]);
    shell.fails("tables db --drop users", 2, &["drop table \"users\"", "--yes", "--dry-run"]);
    assert!(
        shell.ok("tables db --drop users --dry-run").starts_with("would drop table \"users\": 1 versions")
    );
    shell.fails("tables db --drop nothing --yes", 1, &["nothing"]);
    assert_eq!(shell.ok("tables db"), "default\nusers\n");
    shell.ok("tables db --drop users --yes");
    assert_eq!(shell.ok("tables db"), "default\n");
}

#[test]
fn shape_stats_check_compact() {
    let shell = Shell::new();
    shell.fill("db", 2000);
    assert!(shell.ok("compact db").contains("compacted db"));
    let shape = shell.ok("shape db");
    assert!(shape.contains("table default: 2 sorted runs"), "{shape}");
    assert!(
        shape.lines().any(|line| line.contains("level") && line.contains("2,000") && line.contains('#')),
        "{shape}"
    );
    let stats: serde_json::Value = serde_json::from_str(&shell.ok("stats db --json")).unwrap();
    assert!(stats["open_micros"].as_u64().unwrap() > 0, "{stats}");
    let check = shell.ok("check db");
    assert!(check.contains("2,00") && check.contains(" 0 findings"), "{check}");
}

#[test]
fn stats_counts_the_sizes_of_keys_and_values() {
    let shell = Shell::new();
    let row = |n: usize| format!("{{\"key\":\"k{n:06}\",\"value\":\"{}\"}}\n", "v".repeat(n % 4 * 100));
    shell.file("rows.jsonl", (0..12_000).map(row).collect::<String>());
    shell.ok("import db rows.jsonl");
    let sizes = |flags: &str| -> serde_json::Value {
        serde_json::from_str(&shell.ok(&format!("stats db --table default --sizes --json {flags}"))).unwrap()
    };
    let all = sizes("--all");
    assert_eq!((all["rows"].as_u64(), all["exact"].as_bool()), (Some(12_000), Some(true)), "{all}");
    let buckets = |of: &str| all[of]["buckets"].as_array().unwrap().clone();
    assert_eq!(buckets("keys"), [serde_json::json!({ "from": 4, "to": 7, "rows": 12_000 })], "{all}");
    let counted: Vec<_> = buckets("values")
        .iter()
        .map(|bucket| (bucket["from"].as_u64().unwrap(), bucket["rows"].as_u64().unwrap()))
        .filter(|(_, rows)| *rows > 0)
        .collect();
    assert_eq!(counted, [(0, 3_000), (64, 3_000), (128, 3_000), (256, 3_000)], "{all}");
    assert_eq!((all["values"]["min"].as_u64(), all["values"]["max"].as_u64()), (Some(0), Some(300)));
    let sample = sizes("");
    let rows = sample["rows"].as_u64().unwrap();
    assert!((9_000..11_000).contains(&rows) && sample["exact"] == false, "{sample}");
    let shown = shell.ok("stats db --table default --sizes --all");
    assert!(shown.starts_with("table default: 12,000 rows, all of them\nkeys of 7 to 7 bytes"), "{shown}");
    shell.fails("stats db --table none --sizes", 1, &["none"]);
    assert_eq!(shell.ok("stats db --sizes --all"), shown, "the table that commands have without --table");
}

#[test]
fn check_names_a_changed_byte() {
    let shell = Shell::new();
    shell.fill("db", 2000);
    shell.ok("compact db");
    let data = only_file(&shell.path("db/data"));
    let mut bytes = std::fs::read(&data).unwrap();
    // Every extent in the file, since one that compaction gave back looks like one that counts.
    for line in shell.ok(&format!("dump {}", data.display())).lines() {
        if let Some((_, start)) = line.split_once(" bytes at ").filter(|_| line.starts_with("extent of")) {
            bytes[start.parse::<usize>().unwrap() + 100] ^= 0x20;
        }
    }
    std::fs::write(&data, bytes).unwrap();
    let output = shell.run("check db");
    let (said, error) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert_eq!(output.status.code(), Some(3), "{said}{error}");
    assert!(said.contains("corrupt: table \"default\"") && said.contains(".ext at offset"), "{said}");
    assert!(error.contains("restore from a backup"), "{error}");
}

fn only_file(directory: &Path) -> std::path::PathBuf {
    let mut files: Vec<_> =
        std::fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path()).collect();
    assert_eq!(files.len(), 1, "{files:?}");
    files.remove(0)
}

#[test]
fn dump_tells_every_kind_of_file() {
    let shell = Shell::new();
    shell.file("p.jsonl", people(2000));
    shell.ok("put db p000000 first");
    // Nothing is flushed yet, so the record is in the journal.
    let journal = std::fs::read_dir(shell.path("db/journal")).unwrap();
    let dumps: Vec<String> =
        journal.map(|entry| shell.ok(&format!("dump {}", entry.unwrap().path().display()))).collect();
    assert!(dumps.iter().any(|dump| dump.contains("Put t") && dump.contains("key p000000")), "{dumps:.200?}");
    shell.ok("import db p.jsonl --key id");
    shell.ok("compact db");
    let extents = shell.ok(&format!("dump {}", only_file(&shell.path("db/data")).display()));
    assert!(extents.contains("block[0] = checksum holds") && extents.contains("footer.entries = 2000"));
    let manifest = shell.ok("dump db/MANIFEST-000001 --limit 3");
    assert!(manifest.contains("magic = \"terrmani\"") && manifest.lines().count() == 4, "{manifest}");
    shell.fails("dump p.jsonl", 2, &["p.jsonl is not a manifest, segment or data file"]);
    shell.fails("dump gone", 1, &["gone"]);
}

#[test]
fn errors_name_the_thing_and_return_their_code() {
    let shell = Shell::new();
    shell.fails("get none k", 1, &["none"]);
    shell.file("p.jsonl", people(1));
    shell.fails("import db p.jsonl", 2, &["p.jsonl line 1", "--key"]);
    shell.fails("import db none.jsonl --key id", 1, &["none.jsonl"]);
    shell.fails("import db - --key id", 2, &["--format"]);
    shell.fails("import db p.jsonl --key id --table terrane.import", 2, &["terrane.import"]);
    shell.fails("put db 0x123 v", 2, &["even number"]);
    shell.fails(r"put db a\q v", 2, &["unknown escape"]);
    shell.fails("put db k v -o nonsense=1", 2, &["nonsense"]);
    shell.fails("put db k v -o memory_bytes", 2, &["NAME=VALUE"]);
    shell.fails("put db k v --memory 1KiB", 2, &["memory_bytes", "16 MiB"]);
    std::fs::create_dir(shell.path("foreign")).unwrap();
    shell.file("foreign/letter", "dear");
    shell.fails("put foreign k v", 2, &["foreign", "letter"]);
    assert_eq!(shell.run("no-such-command").status.code(), Some(2));
}

#[test]
fn a_closed_pipe_ends_quietly() {
    let shell = Shell::new();
    shell.fill("db", 20_000);
    let mut child = shell.command("scan db").stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    drop(child.stdout.take());
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success());
    assert!(output.stderr.is_empty(), "{}", String::from_utf8_lossy(&output.stderr));
}

#[test]
fn help_options_completions_manual() {
    let shell = Shell::new();
    let help = shell.ok("--help");
    for part in ["Examples:", "Exit codes:", "  3  stored bytes", "import"] {
        assert!(help.contains(part), "{part}: {help}");
    }
    let (_, commands) = help.split_once("Commands:").unwrap();
    let names = commands.lines().skip(1).take_while(|line| !line.is_empty());
    for name in names.filter_map(|line| line.strip_prefix("  ")?.split(' ').next()) {
        if !name.is_empty() && name != "help" {
            let help = shell.ok(&format!("{name} --help"));
            assert!(help.contains("Example") && help.contains(&format!("terrane {name}")), "{name}: {help}");
        }
    }
    assert!(shell.ok("options").contains("memory_bytes = 536870912"));
    assert!(!shell.ok("options").contains("hot_cold"));
    assert!(shell.ok("options --experiments").contains("experiments.hot_cold = false"));
    assert!(shell.ok("completions bash").contains("_terrane"));
    assert!(shell.ok("man").contains(".TH terrane 1"));
    assert!(shell.ok("man pages").contains("terrane-import.1"));
    assert!(shell.path("pages/terrane-import.1").exists());
}

#[test]
fn the_tour_runs_twice() {
    let shell = Shell::new();
    for _ in 0..2 {
        let said = shell.ok("tour");
        for part in [
            "$ terrane import tour.terrane",
            "imported ",
            "$ terrane get",
            "$ terrane scan",
            "table default:",
        ] {
            assert!(said.contains(part), "{part}: {said}");
        }
    }
}

#[test]
fn repair_writes_a_new_database_and_names_lost_rows() {
    let shell = Shell::new();
    shell.fill("db", 3000);
    shell.ok("compact db");
    let said = shell.ok("repair db whole");
    assert!(said.contains("0 losses"), "{said}");
    assert_eq!(shell.ok("count whole"), shell.ok("count db"));
    shell.fails("repair db whole", 2, &["whole"]);
    shell.fails("repair nothing new", 1, &["nothing"]);
    let path = shell.path("db/data/000001.ext");
    let mut bytes = std::fs::read(&path).unwrap();
    // In every slot: the extents before the compaction lie there as well.
    bytes.chunks_mut(2 << 20).for_each(|slot| slot[600] ^= 16);
    std::fs::write(&path, bytes).unwrap();
    let output = shell.run("repair db mended");
    assert_eq!(output.status.code(), Some(3), "{}", String::from_utf8_lossy(&output.stderr));
    let said = String::from_utf8(output.stdout).unwrap();
    assert!(said.contains("lost: table \"default\": keys \"p") && said.contains("000001.ext"), "{said}");
    shell.ok("check mended");
    let left: u64 = shell.ok("count mended").trim().parse().unwrap();
    assert!((2000..3000).contains(&left), "{left}");
}

#[test]
fn repair_counts_what_no_manifest_names() {
    let shell = Shell::new();
    shell.fill("db", 30);
    let said = shell.ok("repair db whole");
    assert!(said.contains(", 0 of them in no readable part of the manifest"), "{said}");
    for entry in std::fs::read_dir(shell.path("db")).unwrap() {
        let path = entry.unwrap().path();
        if path.file_name().unwrap().to_string_lossy().starts_with("MANIFEST-") {
            std::fs::remove_file(path).unwrap();
        }
    }
    let output = shell.run("repair db mended");
    let said = String::from_utf8(output.stdout).unwrap();
    assert_eq!(output.status.code(), Some(3), "{said}");
    // Those of the rows and of the table of positions.
    assert!(said.contains(" from 2 extents, 2 of them in no readable part of the manifest"), "{said}");
    assert!(said.contains("in doubt: "), "{said}");
}

#[test]
fn a_checkpoint_is_a_second_database() {
    let shell = Shell::new();
    shell.ok("put db k before");
    assert!(shell.ok("checkpoint db second").contains("second has every commit up to #1"));
    shell.ok("put db k after");
    assert_eq!(shell.ok("get second k"), "before");
    shell.ok("put second k elsewhere");
    assert_eq!(shell.ok("get db k"), "after");
    shell.ok("check second");
    shell.fails("checkpoint db second", 2, &["second", "exists"]);
    shell.fails("checkpoint nowhere third", 1, &["nowhere"]);
}

#[test]
fn backups_are_made_verified_restored_and_purged() {
    let shell = Shell::new();
    shell.ok("put db k monday");
    assert!(shell.ok("backup create db place --rate 100MiB").contains("backup 1 has every commit up to #1"));
    shell.ok("put db k tuesday");
    shell.ok("backup create db place --flush --recheck");
    let list = shell.ok("backup list place");
    assert_eq!(list.lines().count(), 2, "{list}");
    assert!(shell.ok("backup list place --json").contains("\"last_seq\":2"));
    let verified = shell.ok("backup verify place --all");
    assert!(
        verified.lines().count() == 2 && verified.lines().all(|line| line.ends_with(": 0 findings")),
        "{verified}"
    );
    assert!(shell.ok("backup restore place monday --id 1").contains("backup 1"));
    shell.ok("backup restore place newest");
    assert_eq!(shell.ok("get monday k"), "monday");
    assert_eq!(shell.ok("get newest k"), "tuesday");
    shell.ok("check newest");
    shell.fails("backup restore place db", 2, &["db", "exists"]);
    shell.fails("backup restore place other --id 9", 1, &["no backup 9", "[1, 2]"]);
    shell.fails("backup create db place --rate fast", 2, &["--rate fast"]);
    shell.fails("backup create place db", 2, &["db is a database", "create DATABASE PLACE"]);
    shell.fails("backup list nowhere", 1, &["nowhere"]);
    shell.fails("backup purge place --keep 1", 2, &["remove 1 backups of place: 1", "--yes"]);
    assert_eq!(shell.ok("backup purge place --keep 1 --dry-run"), "would remove 1 backups of place: 1\n");
    assert!(shell.ok("backup purge place --keep 1 --yes").contains("removed backups: 1"));
    assert!(shell.ok("backup purge place --keep 1").contains("removed backups: none"));
    shell.ok("backup verify place");
    shell.fails("backup delete place 2", 2, &["remove backup 2 of place", "--yes"]);
    shell.ok("backup delete place 2 --yes");
    shell.fails("backup verify place", 1, &["no whole backup"]);
}

#[test]
fn simulated_operations_are_counted_by_kind() {
    let shell = Shell::new();
    let said = shell.ok("sim --until 300 --operations 100 --threads 1 --kinds");
    let is_checked = cfg!(any(debug_assertions, feature = "verify"));
    assert_eq!(said.contains(", structures checked: "), is_checked, "{said}");
    let rows: Vec<_> = said.lines().filter(|line| line.starts_with("| ")).collect();
    let count = |what: &str| -> u64 {
        let row = rows.iter().find_map(|row| row.strip_prefix(&format!("| {what} | ")));
        row.unwrap_or_else(|| panic!("no row of {what:?}: {said}")).trim_end_matches(" |").parse().unwrap()
    };
    assert!(count("put") > 0 && count("scan") > 0 && count("reopen") > 0, "{said}");
    assert!(rows.iter().any(|row| row.starts_with("| transaction: ")), "{said}");
    assert_eq!(shell.run("sim --until 300 --seeds 3").status.code(), Some(2));
}
