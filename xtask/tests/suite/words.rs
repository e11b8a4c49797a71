//! The rule of tidy about words that a reader must read twice.

use crate::tidy::{messages, refused, with};

#[test]
fn words_that_are_read_twice_only_become_fewer() {
    let mut tree = with("crates/low/src/lib.rs", "//! Who asks and who_asks, but not whole; Nobody.\n");
    tree.insert("xtask/words.txt", "2 who\n");
    refused(&tree, &["`nobody` stands 1 times in the tree, 0 are allowed", "name the agent"]);
    tree.insert("xtask/words.txt", "1 who # a remark\n1 nobody\n");
    refused(&tree, &["`who` stands 2 times in the tree, 1 are allowed"]);
    tree.insert("xtask/words.txt", "5 who\n1 nobody\n3 someone\n");
    refused(&tree, &["xtask/words.txt:3", "expected `COUNT WORDS`"]);
    tree.insert("xtask/words.txt", "5 who\n");
    let (path, text) = xtask::tidy::words::renewed(&tree).expect("counts fall");
    assert_eq!(path, "xtask/words.txt");
    let counts: Vec<&str> =
        text.lines().filter(|line| line.ends_with("who") || line.ends_with("nobody")).collect();
    assert_eq!(counts, ["0 nobody", "2 who"], "lowered, and never raised");
}

#[test]
fn phrases_count_in_names_of_functions() {
    // Put together here, so that this file has none of them.
    let (told, what) = ("told", "what");
    let code = format!(
        "//! Low.\nfn a_caller_is_{told}() {{ option.is_none(); let {told}_none = 1; }}\n\
         fn {what}_is_lost() {{}}\n"
    );
    let found = messages(&with("crates/low/src/lib.rs", &code));
    let counted = [
        (format!("is {told}"), 1, "say what happens"),
        (told.to_owned(), 2, "say what happens"),
        (format!("fn {what}"), 1, "begin the name of a test with its subject"),
        (format!("{what} is"), 1, "name the thing"),
    ];
    for (words, count, instead) in &counted {
        let why = format!("`{words}` stands {count} times in the tree, 0 are allowed");
        assert!(
            found.iter().any(|finding| finding.contains(&why) && finding.contains(instead)),
            "{found:#?}"
        );
    }
    assert_eq!(found.len(), counted.len(), "a method is not a phrase: {found:#?}");
}

#[test]
fn denied_nouns_count() {
    // Put together here, so that this file has none of them.
    let (is, are) = ("is no", "are no");
    let code = format!(
        "//! It {is} file, they {are}\n//! files, and `{is} {{what}}`. There {is} file, and there\n//! {are} files.\n\
         /// It {is} longer there, they {are} older.\nfn a_note_{}_option() {{}}\n",
        is.replace(' ', "_")
    );
    let found = messages(&with("crates/low/src/lib.rs", &code));
    let has = |why: &str| found.iter().any(|finding| finding.contains(why));
    assert!(has(&format!("`{is}` stands 2 times")) && has(&format!("`{are}` stands 1 times")), "{found:#?}");
    assert_eq!(found.len(), 2, "{found:#?}");
}
