//! Options of engines by name, and versions of crates.

use std::collections::BTreeMap;

use terrane_bench::engine::options::{Named, locked_version};

#[test]
fn versions_come_from_the_lock_file() {
    assert_eq!(locked_version("terrane-bench"), env!("CARGO_PKG_VERSION"));
    assert_eq!(locked_version("no-such-crate"), "unknown");
}

#[test]
fn values_are_checked() {
    let given =
        BTreeMap::from([("n", "1_000"), ("f", "yes"), ("c", "b")].map(|(k, v)| (k.to_owned(), v.to_owned())));
    let named = Named::new("e", &given, &["n", "f", "c"]).expect("known");
    assert_eq!((named.number("n", 0), named.number("other", 7)), (Ok(1000), Ok(7)));
    assert!(named.number("c", 0).is_err() && named.flag("f", true).is_err());
    assert_eq!((named.one_of("c", &["a", "b"]), named.one_of("other", &["a", "b"])), (Ok("b"), Ok("a")));
    assert!(named.one_of("f", &["a", "b"]).is_err());
    assert!(Named::new("e", &given, &["n", "f"]).is_err());
}
