//! Pages of metrics: a written page is read back, and any bytes give a page or an error.

use terrane_base::Kind;
use terrane_format::manifest::DatabaseId;
use terrane_format::metrics_page::{
    HEADER_BYTES, MetricsPage, PAGE_BYTES_MAX, PageHistogram, PageJob, PageLevel, PageMetric, PageReader,
    PageTable, describe, seal,
};

fn page() -> MetricsPage {
    let level = PageLevel { extents: 3, bytes: 6 << 20, entries: 70_000 };
    let table = |name: &str| PageTable {
        name: name.to_owned(),
        values: vec![7, u64::MAX],
        runs: vec![level],
        levels: vec![level, PageLevel::default()],
    };
    MetricsPage {
        database: DatabaseId(0x0011_2233_4455_6677_8899_aabb_ccdd_eeff),
        process: 4711,
        interval_ms: 1000,
        number: 12,
        open_micros: 12_000_345,
        written_micros: 1_795_000_000_000_000,
        table_count: 2,
        reader_count: 1,
        metrics: vec![
            PageMetric { name: "records_written".into(), is_counter: true, value: 90 },
            PageMetric { name: "memory_bytes".into(), is_counter: false, value: 1 << 29 },
        ],
        histograms: vec![PageHistogram {
            name: "flush_micros".into(),
            sum: 9,
            max: 5,
            buckets: vec![0, 1, 2],
        }],
        table_metrics: vec!["table_entries".into(), "table_extents".into()],
        tables: vec![table("default"), table("ü")],
        jobs: vec![PageJob {
            kind: "flush".into(),
            table: "default".into(),
            age_micros: 5,
            bytes_read: 6,
            bytes_written: 7,
        }],
        readers: vec![PageReader {
            kind: "snapshot".into(),
            label: "report".into(),
            place: "src/main.rs:1:2".into(),
            age_micros: 1,
            seq: 2,
            records_since: 3,
            extent_bytes: 4,
            memory_bytes: 5,
            is_expired: true,
        }],
    }
}

#[test]
fn a_page_is_read_as_it_was_written() {
    let bytes = page().encode();
    assert_eq!(MetricsPage::decode(&bytes).unwrap(), page());
    assert_eq!(page().metric("memory_bytes"), Some(1 << 29));
    assert_eq!(page().table_metric(&page().tables[1], "table_extents"), Some(u64::MAX));
    // What a longer page left does not count.
    let longer = [&bytes[..], &[0x55; 300]].concat();
    assert_eq!(MetricsPage::decode(&longer).unwrap(), page());
    let described = describe(&longer);
    let end: usize = described.iter().map(|field| field.len).sum();
    assert_eq!(end, longer.len(), "every byte has a field");
}

#[test]
fn the_page_of_the_example_is_as_documented() {
    let empty = MetricsPage::default().encode();
    let mut expected = vec![0; HEADER_BYTES + 12];
    expected[..8].copy_from_slice(b"terrpage");
    expected[8..16].copy_from_slice(&[1, 0, 0, 0, 12, 0, 0, 0]);
    expected[16..20].copy_from_slice(&[0x1c, 0x7e, 0x64, 0x08]);
    assert_eq!(empty, expected);
}

#[test]
fn long_strings_and_many_tables_are_cut() {
    let mut long = page();
    long.readers[0].label = "ü".repeat(200);
    let read = MetricsPage::decode(&long.encode()).unwrap();
    assert_eq!(read.readers[0].label, "ü".repeat(127));
    let mut many = page();
    many.tables = vec![many.tables[0].clone(); 10_000];
    let bytes = many.encode();
    assert!(bytes.len() <= PAGE_BYTES_MAX);
    let read = MetricsPage::decode(&bytes).unwrap();
    assert!(read.tables.len() > 100 && read.tables.len() < 10_000, "{}", read.tables.len());
}

#[test]
fn a_changed_or_cut_page_is_refused() {
    let bytes = page().encode();
    for at in 0..bytes.len() {
        let mut changed = bytes.clone();
        changed[at] ^= 1;
        let kind = MetricsPage::decode(&changed).unwrap_err().kind();
        // The version is looked at before the checksum: a later one may have another.
        let is_version = (8..12).contains(&at);
        assert!(kind == Kind::Corrupt || is_version && kind == Kind::Invalid, "byte {at}: {kind:?}");
        assert_eq!(MetricsPage::decode(&bytes[..at]).unwrap_err().kind(), Kind::Corrupt, "cut at {at}");
    }
}

#[test]
fn bytes_with_the_right_checksum_give_a_page_or_an_error() {
    let bytes = page().encode();
    let mut accepted = 0;
    for at in HEADER_BYTES..bytes.len() {
        for byte in [0, 1, 0x7f, 0x80, 0xff] {
            let mut changed = bytes.clone();
            changed[at] = byte;
            seal(&mut changed);
            match MetricsPage::decode(&changed) {
                Ok(page) => {
                    accepted += 1;
                    assert_eq!(page.encode(), changed, "there is one encoding of each page");
                }
                Err(error) => assert_eq!(error.kind(), Kind::Corrupt, "{error}"),
            }
        }
    }
    assert!(accepted > 100, "changed numbers are accepted");
}
