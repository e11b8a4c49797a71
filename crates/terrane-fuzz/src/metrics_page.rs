//! Target: a page of metrics, with its checksum as it is and set right.

use terrane_base::Kind;
use terrane_format::metrics_page::{
    HEADER_BYTES, MetricsPage, PageHistogram, PageJob, PageLevel, PageMetric, PageReader, PageTable,
    describe, seal,
};

use crate::Seed;

/// Decodes a page; an accepted page is written again as the same bytes.
///
/// # Panics
/// If there are two encodings of a page, or an error is not one of damage or of a later version.
pub fn run(bytes: &[u8]) {
    let _ = describe(bytes);
    decode(bytes);
    if bytes.len() >= HEADER_BYTES {
        let mut sealed = bytes.to_vec();
        let len = u32::from_le_bytes([bytes[12], bytes[13], bytes[14], bytes[15]]) as usize;
        let end = HEADER_BYTES.saturating_add(len).min(sealed.len());
        seal(&mut sealed[..end]);
        decode(&sealed);
    }
}

fn decode(bytes: &[u8]) {
    match MetricsPage::decode(bytes) {
        Ok(page) => assert!(bytes.starts_with(&page.encode()), "there is one encoding of each page"),
        Err(error) => assert!(matches!(error.kind(), Kind::Corrupt | Kind::Invalid), "{error}"),
    }
}

/// Corpus of [`run`].
#[must_use]
pub fn seeds() -> Vec<Seed> {
    let level = PageLevel { extents: 2, bytes: 4 << 20, entries: 9000 };
    let table = PageTable {
        name: "default".into(),
        values: vec![1, 2],
        runs: vec![level],
        levels: vec![level, level],
    };
    let metric = PageMetric { name: "stalls".into(), is_counter: true, value: 3 };
    let times = PageHistogram { name: "flush_micros".into(), sum: 8, max: 7, buckets: vec![0, 1, 1] };
    let job = PageJob { kind: "flush".into(), table: "default".into(), age_micros: 1, ..PageJob::default() };
    let reader = PageReader { kind: "scan".into(), place: "a.rs:1:1".into(), ..PageReader::default() };
    let whole = MetricsPage {
        process: 1,
        number: 2,
        interval_ms: 1000,
        metrics: vec![metric],
        histograms: vec![times],
        table_metrics: vec!["a".into(), "b".into()],
        tables: vec![table],
        jobs: vec![job],
        readers: vec![reader],
        ..MetricsPage::default()
    };
    let longer = [&whole.encode()[..], &[7; 40]].concat();
    vec![
        ("empty".to_owned(), MetricsPage::default().encode()),
        ("whole".to_owned(), whole.encode()),
        ("longer".to_owned(), longer),
    ]
}
