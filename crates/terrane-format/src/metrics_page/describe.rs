//! Pages for people: the header field by field, the body in one line.

use crate::dump::{Field, broken};
use crate::metrics_page::{HEADER_BYTES, MetricsPage};

/// The fields of a page.
#[must_use]
pub fn describe(bytes: &[u8]) -> Vec<Field> {
    let page = match MetricsPage::decode(bytes) {
        Ok(page) => page,
        Err(error) => return vec![broken(0, bytes.len(), error)],
    };
    let body = u32::from_le_bytes([bytes[12], bytes[13], bytes[14], bytes[15]]) as usize;
    let mut fields = vec![
        Field::new(0, 8, "magic", "terrpage"),
        Field::new(8, 4, "version", "1"),
        Field::new(12, 4, "length", format!("{body} bytes behind the header")),
        Field::new(16, 4, "checksum", "right"),
        Field::new(20, 4, "process", page.process),
        Field::new(24, 16, "database", page.database),
        Field::new(40, 8, "number", page.number),
        Field::new(48, 8, "open", format!("{} us", page.open_micros)),
        Field::new(56, 8, "written", format!("{} us since the beginning of 1970", page.written_micros)),
        Field::new(64, 4, "interval", format!("{} ms", page.interval_ms)),
        Field::new(68, 4, "tables", page.table_count),
        Field::new(72, 4, "readers", page.reader_count),
        Field::new(76, 4, "reserved", "0"),
    ];
    let lists = format!(
        "{} metrics, {} histograms, {} tables of {} numbers, {} jobs, {} readers",
        page.metrics.len(),
        page.histograms.len(),
        page.tables.len(),
        page.table_metrics.len(),
        page.jobs.len(),
        page.readers.len()
    );
    fields.push(Field::new(HEADER_BYTES, body, "lists", lists));
    let end = HEADER_BYTES + body;
    if bytes.len() > end {
        fields.push(Field::new(end, bytes.len() - end, "rest", "what a longer page left"));
    }
    fields
}
