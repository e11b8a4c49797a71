//! The rule of tidy about generators of pseudo-random numbers.

use xtask::tidy::{Finding, generators};
use xtask::tree::Tree;

fn messages(path: &str, text: &str) -> Vec<String> {
    generators::check(&Tree::of([(path, text)])).iter().map(Finding::to_string).collect()
}

#[test]
fn a_generator_beside_the_one_is_refused() {
    let path = "crates/low/tests/suite/any.rs";
    for line in [
        "x = x.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);",
        "z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);",
        "    state ^= state << 13;",
        "const STEP: u64 = 0xa0761d6478bd642f;",
        "at = at.wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(23) ^ round;",
    ] {
        let found = messages(path, &format!("fn f() {{}}\n{line}\n"));
        assert_eq!(found.len(), 1, "{line}: {found:?}");
        assert!(
            found[0].starts_with(&format!("{path}:2: ")) && found[0].contains("terrane_base::Rng"),
            "{found:?}"
        );
    }
    for fine in [
        "let hash = key.wrapping_mul(0x9e37_79b9_7f4a_7c15);",
        "let bytes = 1 << 13;",
        "// z ^= z << 13 of an xorshift",
        "let text = \"6364136223846793005\";",
    ] {
        assert_eq!(messages(path, &format!("{fine}\n")), [""; 0], "{fine}");
    }
}

#[test]
fn a_named_file_has_a_generator() {
    let path = "crates/terrane-base/src/rng.rs";
    assert_eq!(messages(path, "z.wrapping_mul(0x94d0_49bb_1331_11eb);\n"), [""; 0]);
    let found = messages(path, "fn f() {}\n");
    assert!(found.len() == 1 && found[0].contains("has no generator"), "{found:?}");
}
