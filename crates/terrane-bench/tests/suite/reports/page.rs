//! The HTML page.

use std::path::Path;

use terrane_bench::report::html::render;
use terrane_bench::report::model::RunReport;

use crate::reports::fixture::large;
use crate::reports::table::{HOSTILE, put_everywhere};

/// Writes the page where a person can look at it: `tmp` of the target directory.
fn page(name: &str, report: &RunReport) -> String {
    let page = render(report);
    std::fs::write(Path::new(env!("CARGO_TARGET_TMPDIR")).join(name), &page).unwrap();
    page
}

fn parse(page: &str) -> roxmltree::Document<'_> {
    let options = roxmltree::ParsingOptions { allow_dtd: true, ..roxmltree::ParsingOptions::default() };
    roxmltree::Document::parse_with_options(page, options)
        .unwrap_or_else(|why| panic!("not well-formed: {why}"))
}

/// All text of the page but for style and script.
fn visible(document: &roxmltree::Document<'_>) -> String {
    let silent = |node: &roxmltree::Node<'_, '_>| {
        node.ancestors().any(|at| ["style", "script"].contains(&at.tag_name().name()))
    };
    let texts = document.descendants().filter(|node| node.is_text() && !silent(node));
    texts.filter_map(|node| node.text()).collect::<Vec<_>>().join(" ")
}

#[test]
fn the_page_is_well_formed_loads_nothing_and_has_every_cell() {
    let report = large(2, 3);
    let page = page("bench-report.html", &report);
    let document = parse(&page);
    for node in document.descendants().filter(|node| node.is_element()) {
        let name = node.tag_name().name();
        assert!(
            !["link", "img", "iframe", "object", "embed", "base", "use", "image", "foreignObject"]
                .contains(&name),
            "{name}"
        );
        for attribute in node.attributes() {
            let value = attribute.value();
            assert!(
                !["src", "srcset", "action", "data", "poster"].contains(&attribute.name()),
                "{attribute:?}"
            );
            assert!(attribute.name() != "href" || value.starts_with('#'), "{attribute:?}");
            assert!(!value.contains("url("), "{attribute:?}");
        }
    }
    for word in ["http:", "https:", "@import", "url(", "fetch(", "XMLHttpRequest", "import("] {
        assert!(!page.contains(word), "{word}");
    }
    let text = visible(&document);
    for cell in &report.cells {
        assert!(text.contains(&cell.scenario) && text.contains(&cell.step) && text.contains(&cell.engine));
    }
    // A rate per step and engine that is not timed, in the matrix.
    let matrix = document.descendants().find(|node| node.attribute("class") == Some("matrix")).unwrap();
    let rates = matrix.descendants().filter(|node| node.has_tag_name("small")).count();
    assert_eq!(rates, 2 * 6 * 6 + 6, "6 steps of 2 scenarios for 6 engines, and the means");
    for word in [
        "Geometric mean",
        "Throughput over time",
        "Space over time",
        "Latency",
        "Write amplification",
        "Peak memory",
        "Shape of the trees",
        "Not measured",
        "device is full",
        "terrane bench --config bench/quick.toml",
        "Some Processor 3000",
        "384 MiB",
    ] {
        assert!(text.contains(word), "{word}");
    }
    assert!(!text.contains("PARTIAL"));
}

#[test]
fn every_chart_has_a_text_and_its_numbers() {
    let report = large(1, 3);
    let page = render(&report);
    let document = parse(&page);
    let charts: Vec<_> = document.descendants().filter(|node| node.has_tag_name("svg")).collect();
    assert_eq!(
        charts.len(),
        6 + 6 + 6 + 1,
        "throughput, space and latency of each step with operations, and all steps together"
    );
    for chart in charts {
        assert!(chart.attribute("aria-label").is_some_and(|label| !label.is_empty()));
        let figure = chart.parent().unwrap();
        assert_eq!(figure.tag_name().name(), "figure");
        assert!(figure.descendants().any(|node| node.has_tag_name("td")), "its numbers");
        let over_time = chart.attribute("class") == Some("over-time");
        let is_space = chart.attribute("aria-label").is_some_and(|label| label.starts_with("Space"));
        let lines = chart.descendants().filter(|node| node.has_tag_name("polyline")).count();
        assert_eq!(
            lines,
            if over_time && !is_space { 5 } else { 6 },
            "the null engine would flatten the throughput of the others"
        );
    }
    assert!(
        document
            .descendants()
            .any(|node| node.attribute("class").is_some_and(|class| class.starts_with("stall")))
    );
}

#[test]
fn hostile_texts_are_only_text() {
    let run = |label: &str| {
        let mut report = large(2, 2);
        put_everywhere(label, &mut report);
        report.end = None;
        report
    };
    let page = page("bench-hostile.html", &run(HOSTILE));
    let document = parse(&page);
    assert_eq!(document.descendants().filter(|node| node.has_tag_name("script")).count(), 1);
    assert_eq!(page.matches("<script").count(), 1);
    assert!(!page.contains('\u{202e}') && !page.contains('\u{1b}') && !page.contains('\u{0}'));
    // The label is all there as text, with what may not be in a page replaced.
    let text = visible(&document);
    assert!(text.contains("alert('&')") && text.contains("PARTIAL"), "{HOSTILE}");
    let elements =
        |document: &roxmltree::Document<'_>| document.descendants().filter(|node| node.is_element()).count();
    let plain = render(&run("a plain label"));
    assert_eq!(elements(&document), elements(&parse(&plain)), "a label makes no element");
}

#[test]
fn five_hundred_cells_stay_below_two_megabytes() {
    let report = large(4, 3);
    assert!(report.cells.len() > 500);
    let bytes = render(&report).len();
    assert!(bytes < 2 << 20, "{bytes} bytes for {} cells", report.cells.len());
}

#[test]
fn a_run_without_a_cell_is_a_page_too() {
    let mut report = large(1, 1);
    report.cells.clear();
    report.end = None;
    assert!(visible(&parse(&render(&report))).contains("PARTIAL"));
}
