//! A repair of a database in which a part of an extent is damaged that can be set right.
#![allow(clippy::disallowed_methods, clippy::unwrap_used, reason = "runs processes on files of its own")]

use terrane_format::extent;

use crate::common::Shell;

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
