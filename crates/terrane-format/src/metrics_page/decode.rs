//! Bytes to pages.

use terrane_base::{Error, Result};

use crate::manifest::DatabaseId;
use crate::metrics_page::{
    CHECKSUM_AT, HEADER_BYTES, MAGIC, MetricsPage, PAGE_BYTES_MAX, PageHistogram, PageJob, PageLevel,
    PageMetric, PageReader, PageTable, VERSION, checksum,
};
use crate::wire::{Fields, u32_at};

const WHAT: &str = "page of metrics";

impl MetricsPage {
    /// Reads a page from the front of `bytes`; what follows it is what a longer page left.
    ///
    /// # Errors
    /// `Corrupt` if the bytes are not a page, or the page is being written over just now; `Invalid` if a
    /// later version wrote it.
    pub fn decode(bytes: &[u8]) -> Result<MetricsPage> {
        let page = checked(bytes)?;
        let (head, body) = page.split_at(HEADER_BYTES);
        let mut decoded = decode_head(head)?;
        let mut fields = Fields::new(WHAT, body);
        decoded.metrics = list(&mut fields, |fields| {
            Ok(PageMetric { name: string(fields)?, is_counter: flag(fields)?, value: fields.u64()? })
        })?;
        decoded.histograms = list(&mut fields, |fields| {
            let (name, sum, max) = (string(fields)?, fields.u64()?, fields.u64()?);
            Ok(PageHistogram { name, sum, max, buckets: list(fields, |fields| fields.u64())? })
        })?;
        decoded.table_metrics = list(&mut fields, string)?;
        let values = decoded.table_metrics.len();
        decoded.tables = list(&mut fields, |fields| table(fields, values))?;
        decoded.jobs = list(&mut fields, job)?;
        decoded.readers = list(&mut fields, reader)?;
        match fields.rest().len() {
            0 => Ok(decoded),
            rest => Err(Error::corrupt(format!("{WHAT} has {rest} bytes behind its last list"))),
        }
    }
}

/// The bytes of the page, header included, if they are those that were written.
fn checked(bytes: &[u8]) -> Result<&[u8]> {
    if bytes.len() < HEADER_BYTES {
        return Err(Error::corrupt(format!("{WHAT} of {} bytes is cut", bytes.len())));
    }
    if bytes[..8] != MAGIC {
        return Err(Error::corrupt(format!("not a {WHAT}: its first bytes are not \"terrpage\"")));
    }
    let field = |at| u32_at(bytes, at).expect("the header is whole");
    match field(8) {
        VERSION => {}
        0 => return Err(Error::corrupt(format!("{WHAT}: format version 0 does not exist"))),
        newer => {
            return Err(Error::invalid(format!(
                "{WHAT} of version {newer}: this program reads up to {VERSION}, use a later one"
            )));
        }
    }
    let len = HEADER_BYTES.saturating_add(field(12) as usize);
    let page = bytes.get(..len).filter(|_| len <= PAGE_BYTES_MAX).ok_or_else(|| {
        Error::corrupt(format!("{WHAT} of {len} bytes: {} are there, {PAGE_BYTES_MAX} allowed", bytes.len()))
    })?;
    let (found, expected) = (checksum(page), field(CHECKSUM_AT));
    if found != expected {
        let why = format!("{WHAT} fails its checksum: expected {expected:08x}, found {found:08x}");
        return Err(Error::corrupt(why));
    }
    Ok(page)
}

fn decode_head(head: &[u8]) -> Result<MetricsPage> {
    let mut fields = Fields::new(WHAT, &head[CHECKSUM_AT + 4..]);
    let process = fields.u32()?;
    let (low, high) = (fields.u64()?, fields.u64()?);
    let page = MetricsPage {
        process,
        database: DatabaseId(u128::from(high) << 64 | u128::from(low)),
        number: fields.u64()?,
        open_micros: fields.u64()?,
        written_micros: fields.u64()?,
        interval_ms: fields.u32()?,
        table_count: fields.u32()?,
        reader_count: fields.u32()?,
        ..MetricsPage::default()
    };
    if fields.u32()? != 0 {
        return Err(Error::corrupt(format!("{WHAT}: reserved bytes are not zero")));
    }
    Ok(page)
}

fn table(fields: &mut Fields<'_>, values: usize) -> Result<PageTable> {
    let name = string(fields)?;
    let values = (0..values).map(|_| fields.u64()).collect::<Result<_>>()?;
    Ok(PageTable { name, values, runs: list(fields, level)?, levels: list(fields, level)? })
}

fn level(fields: &mut Fields<'_>) -> Result<PageLevel> {
    Ok(PageLevel { extents: fields.u64()?, bytes: fields.u64()?, entries: fields.u64()? })
}

fn job(fields: &mut Fields<'_>) -> Result<PageJob> {
    Ok(PageJob {
        kind: string(fields)?,
        table: string(fields)?,
        age_micros: fields.u64()?,
        bytes_read: fields.u64()?,
        bytes_written: fields.u64()?,
    })
}

fn reader(fields: &mut Fields<'_>) -> Result<PageReader> {
    Ok(PageReader {
        kind: string(fields)?,
        label: string(fields)?,
        place: string(fields)?,
        age_micros: fields.u64()?,
        seq: fields.u64()?,
        records_since: fields.u64()?,
        extent_bytes: fields.u64()?,
        memory_bytes: fields.u64()?,
        is_expired: flag(fields)?,
    })
}

/// A list grows as its entries are read: a count alone takes no memory.
fn list<T>(fields: &mut Fields<'_>, mut decode: impl FnMut(&mut Fields<'_>) -> Result<T>) -> Result<Vec<T>> {
    let mut items = Vec::new();
    for _ in 0..fields.u16()? {
        items.push(decode(fields)?);
    }
    Ok(items)
}

fn string(fields: &mut Fields<'_>) -> Result<String> {
    let len = usize::from(fields.u8()?);
    let bytes = fields.take(len)?;
    let text = std::str::from_utf8(bytes)
        .map_err(|_| Error::corrupt(format!("{WHAT}: a name is not UTF-8 at byte {}", fields.at())))?;
    Ok(text.to_owned())
}

fn flag(fields: &mut Fields<'_>) -> Result<bool> {
    match fields.u8()? {
        0 => Ok(false),
        1 => Ok(true),
        other => Err(Error::corrupt(format!("{WHAT}: a flag is {other}, expected 0 or 1"))),
    }
}
