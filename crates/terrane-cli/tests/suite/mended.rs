//! A repair of a database in which a part of an extent is damaged that can be set right.
#![allow(clippy::disallowed_methods, clippy::unwrap_used, reason = "runs processes on files of its own")]

use std::path::Path;
use std::process::Command;

use terrane_format::extent;

use crate::common::{Shell, people};

#[test]
fn repair_sets_an_index_block_right_and_says_so() {
    let shell = Shell::new();
    shell.fill("db", 3000);
    shell.ok("compact db");
    let path = shell.path("db/data/000001.ext");
    let mut bytes = std::fs::read(&path).unwrap();
    // In every slot: the extents before the compaction lie there as well.
    for slot in bytes.chunks_mut(2 << 20) {
        if let Some(len) = extent::locate(slot) {
            let index = extent::Footer::decode(&slot[..len]).unwrap().index;
            slot[index.offset as usize + 50] ^= 16;
        }
    }
    std::fs::write(&path, bytes).unwrap();
    shell.fails("check db", 3, &["run `terrane repair`"]);
    let said = shell.ok("repair db mended");
    assert!(said.contains("mended: ") && said.contains("its index block is damaged and set right"), "{said}");
    assert!(said.contains("salvaged: 3,001 versions") && said.contains("0 losses"), "{said}");
    assert_eq!(shell.ok("count mended").trim(), "3000");
}

/// Whatever is damaged, the error names the command that keeps the sound rows, and no command sends to one
/// that fails in the same way.
#[test]
fn damage_names_the_repair() {
    type Damage = (&'static str, fn(&Path));
    let shell = Shell::new();
    shell.file("people.jsonl", people(300));
    shell.ok("import db people.jsonl --key id");
    shell.ok("compact db");
    let empty: Damage = ("is cut before its first slot", |db| {
        let file = std::fs::OpenOptions::new().write(true).open(db.join("data/000001.ext"));
        file.and_then(|file| file.set_len(0)).unwrap();
    });
    let removed: Damage = ("is missing", |db| std::fs::remove_file(db.join("data/000001.ext")).unwrap());
    let unnamed: Damage = ("CURRENT is missing", |db| std::fs::remove_file(db.join("CURRENT")).unwrap());
    let unlisted: Damage = ("MANIFEST-", |db| {
        for entry in std::fs::read_dir(db).unwrap().map(Result::unwrap) {
            if entry.file_name().to_string_lossy().starts_with("MANIFEST-") {
                std::fs::remove_file(entry.path()).unwrap();
            }
        }
    });
    for (number, (part, damage)) in [empty, removed, unnamed, unlisted].into_iter().enumerate() {
        let name = format!("damaged{number}");
        let copied = Command::new("cp").args(["-r", "db", &name]).current_dir(shell.path("")).status();
        assert!(copied.unwrap().success());
        damage(&shell.path(&name));
        for command in ["get", "check", "put", "scan", "tables"] {
            let rest = match command {
                "get" => "p000001",
                "put" => "k v",
                _ => "",
            };
            let output = shell.run(&format!("{command} {name} {rest}"));
            let error = String::from_utf8(output.stderr).unwrap();
            assert_eq!(output.status.code(), Some(3), "{command} {part}: {error}");
            let named = ["`terrane repair DB NEW` keeps all sound rows", "restore", part];
            assert!(named.iter().all(|named| error.contains(named)), "{command}: {error}");
            assert!(!error.contains("terrane check"), "{command}: {error}");
        }
        shell.run(&format!("repair {name} repaired{number}"));
        shell.ok(&format!("check repaired{number}"));
    }
}
