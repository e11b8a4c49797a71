//! Every rule of tidy about documents on small made-up trees: a page that keeps it, and one that breaks it.

use xtask::tidy::{Finding, pages};
use xtask::tree::Tree;

fn messages(found: Vec<Finding>) -> Vec<String> {
    found.iter().map(Finding::to_string).collect()
}

#[test]
fn generated_reports_are_refused_under_docs() {
    let tree = Tree::of([("docs/benchmarks/run.html", "<p>\n"), ("crates/low/tests/page.html", "<p>\n")]);
    let found = messages(pages::check(&tree));
    assert_eq!(found.len(), 1, "{found:#?}");
    assert!(found[0].starts_with("docs/benchmarks/run.html: generated report"), "{found:#?}");
}

#[test]
fn links_to_files_of_every_kind_must_lead_somewhere() {
    let page = "[a](run.html), [b](../bench/plan.toml), [c](#part), [d](https://far.test/x.html)\n";
    let found = messages(pages::check(&Tree::of([("docs/a.md", page), ("bench/plan.toml", "")])));
    assert_eq!(found, ["docs/a.md:1: the link to run.html leads nowhere"]);
}
