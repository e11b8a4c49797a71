//! The built-in extractors, and those that a program passes.

use super::*;

fn find(name: &str) -> Arc<Extractor> {
    PrefixExtractors::new().find(name).expect("built in")
}

fn prefix(name: &str, key: &str) -> Option<String> {
    let extractor = find(name);
    let prefix = extractor.prefix_of(key.as_bytes()).expect("does not fail");
    prefix.map(|prefix| String::from_utf8_lossy(prefix).into_owned())
}

#[test]
fn built_in_extractors_take_what_their_names_say() {
    assert_eq!(prefix("fixed:3", "abcd").as_deref(), Some("abc"));
    assert_eq!(prefix("fixed:3", "ab"), None);
    assert_eq!(prefix("capped:3", "abcd").as_deref(), Some("abc"));
    assert_eq!(prefix("capped:3", "ab").as_deref(), Some("ab"));
    assert_eq!(prefix("until:/", "user/1/2").as_deref(), Some("user/"));
    assert_eq!(prefix("until:/", "user"), None);
    assert_eq!(prefix("until:::", "a:b::c").as_deref(), Some("a:b::"));
}

#[test]
fn unknown_names_are_refused() {
    for name in
        ["fixed:0", "fixed:", "fixed:04", "fixed:-1", "capped:1025", "until:", "until:aaaaaaaaaaaaaaaaa"]
    {
        assert!(built_in(name).is_none() && check_name(name).is_err(), "{name}");
    }
    assert!(check_name("").is_err() && check_name("a\nb").is_err());
    assert!(check_name(&"n".repeat(NAME_BYTES_MAX + 1)).is_err());
    assert!(check_name("mine").is_ok() && PrefixExtractors::new().find("mine").is_err());
}

/// Every key that begins with a closed prefix has it: contract 3, of the built-in extractors.
#[test]
fn closed_prefixes_are_those_of_all_keys_behind_them() {
    let letters = [b'a', b'/'];
    let mut keys: Vec<Vec<u8>> = vec![vec![]];
    for len in 0..5 {
        let longest: Vec<_> = keys.iter().filter(|key| key.len() == len).cloned().collect();
        keys.extend(
            longest.iter().flat_map(|key| letters.map(|letter| [key.as_slice(), &[letter]].concat())),
        );
    }
    for name in ["fixed:1", "fixed:3", "capped:2", "until:/", "until:a/"] {
        let extractor = find(name);
        for start in &keys {
            let Some(over) = extractor.prefix_over(start) else { continue };
            for key in keys.iter().filter(|key| key.starts_with(over)) {
                let prefix = extractor.prefix_of(key).expect("does not fail");
                assert_eq!(prefix, Some(over), "{name}: {start:?} {key:?}");
            }
        }
    }
}

#[derive(Debug)]
struct Bad;

impl PrefixExtractor for Bad {
    fn name(&self) -> &str {
        "bad"
    }

    fn prefix_len(&self, key: &[u8]) -> Option<usize> {
        assert!(!key.is_empty(), "no key");
        Some(key.len() + 1)
    }
}

#[test]
fn an_extractor_that_fails_is_named() {
    let extractors = PrefixExtractors::new().with(Arc::new(Bad)).expect("a good name");
    let bad = extractors.find("bad").expect("is there");
    for key in [b"".as_slice(), b"a"] {
        assert!(bad.prefix_of(key).expect_err("fails").to_string().contains("bad"));
        assert_eq!(bad.prefix_over(key), None);
    }
    assert!(extractors.with(Arc::new(Bad)).is_err(), "the name is taken");
}
