//! Patches against the examples of the RFC, and folded in parts against folded at once.
#![allow(clippy::unwrap_used, reason = "a test says by panicking that it failed")]

use proptest::prelude::*;

use super::*;

fn merged(base: Option<&[u8]>, operands: &[&[u8]]) -> Vec<u8> {
    let mut out = Vec::new();
    JsonMergePatch.full(b"k", base, operands, &mut out).unwrap();
    out
}

/// Folding some neighbours first changes nothing.
fn check_partial(base: Option<&[u8]>, operands: &[&[u8]], cut: (usize, usize)) {
    let (from, to) = (cut.0 % operands.len(), cut.1 % operands.len() + 1);
    let whole = merged(base, operands);
    let mut folded = Vec::new();
    if from + 2 > to || !JsonMergePatch.partial(b"k", &operands[from..to], &mut folded).unwrap() {
        return;
    }
    let parts = [&operands[..from], &[&folded[..]][..], &operands[to..]].concat();
    assert_eq!(merged(base, &parts), whole, "{from}..{to}");
}

fn document() -> impl Strategy<Value = serde_json::Value> {
    let leaf = prop_oneof![
        Just(serde_json::Value::Null),
        any::<bool>().prop_map(Into::into),
        (0..3u8).prop_map(Into::into),
    ];
    leaf.prop_recursive(3, 12, 3, |inner| {
        prop::collection::btree_map("[abc]", inner, 0..3)
            .prop_map(|members| members.into_iter().collect::<serde_json::Map<_, _>>().into())
    })
}

proptest! {
    #[test]
    fn patches_fold_to_the_same(base in prop::option::of(document()), patches in prop::collection::vec(document(), 1..6), cut: (usize, usize)) {
        let base = base.map(|base| base.to_string().into_bytes());
        let patches: Vec<Vec<u8>> = patches.iter().map(|patch| patch.to_string().into_bytes()).collect();
        let operands: Vec<&[u8]> = patches.iter().map(Vec::as_slice).collect();
        check_partial(base.as_deref(), &operands, cut);
    }
}

/// The examples of RFC 7396, appendix A.
#[test]
fn the_examples_of_the_rfc() {
    for (original, patch, result) in [
        (r#"{"a":"b"}"#, r#"{"a":"c"}"#, r#"{"a":"c"}"#),
        (r#"{"a":"b"}"#, r#"{"b":"c"}"#, r#"{"a":"b","b":"c"}"#),
        (r#"{"a":"b"}"#, r#"{"a":null}"#, r#"{}"#),
        (r#"{"a":"b","b":"c"}"#, r#"{"a":null}"#, r#"{"b":"c"}"#),
        (r#"{"a":["b"]}"#, r#"{"a":"c"}"#, r#"{"a":"c"}"#),
        (r#"{"a":"c"}"#, r#"{"a":["b"]}"#, r#"{"a":["b"]}"#),
        (r#"{"a":{"b":"c"}}"#, r#"{"a":{"b":"d","c":null}}"#, r#"{"a":{"b":"d"}}"#),
        (r#"{"a":[{"b":"c"}]}"#, r#"{"a":[1]}"#, r#"{"a":[1]}"#),
        (r#"["a","b"]"#, r#"["c","d"]"#, r#"["c","d"]"#),
        (r#"{"a":"b"}"#, r#"["c"]"#, r#"["c"]"#),
        (r#"{"a":"foo"}"#, r#"null"#, r#"null"#),
        (r#"{"a":"foo"}"#, r#""bar""#, r#""bar""#),
        (r#"{"e":null}"#, r#"{"a":1}"#, r#"{"a":1,"e":null}"#),
        (r#"[1,2]"#, r#"{"a":"b","c":null}"#, r#"{"a":"b"}"#),
        (r#"{}"#, r#"{"a":{"bb":{"ccc":null}}}"#, r#"{"a":{"bb":{}}}"#),
    ] {
        let found = merged(Some(original.as_bytes()), &[patch.as_bytes()]);
        assert_eq!(String::from_utf8(found).unwrap(), result, "{original} with {patch}");
    }
    let mut out = Vec::new();
    assert!(JsonMergePatch.full(b"k", None, &[b"{"], &mut out).is_err());
}
