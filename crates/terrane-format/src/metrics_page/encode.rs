//! Pages to bytes.

use crate::metrics_page::{
    HEADER_BYTES, MAGIC, MetricsPage, PAGE_BYTES_MAX, PageLevel, PageTable, STRING_BYTES_MAX, VERSION, seal,
};

/// Most entries of a list.
const LIST_MAX: usize = u16::MAX as usize;

impl MetricsPage {
    /// The bytes of the page. Strings are cut after [`STRING_BYTES_MAX`] bytes. Tables beyond the room that
    /// jobs and readers leave are left out, the last first, and then readers.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let mut page = self.clone();
        loop {
            let bytes = page.encode_whole();
            if bytes.len() <= PAGE_BYTES_MAX || !page.shorten() {
                debug_assert!(bytes.len() <= PAGE_BYTES_MAX, "the lists of metrics are short");
                return bytes;
            }
        }
    }

    /// Leaves out half of the tables or, without any, of the readers or jobs. False if none is left.
    fn shorten(&mut self) -> bool {
        if !self.tables.is_empty() {
            self.tables.truncate(self.tables.len() / 2);
        } else if !self.readers.is_empty() {
            self.readers.truncate(self.readers.len() / 2);
        } else if !self.jobs.is_empty() {
            self.jobs.truncate(self.jobs.len() / 2);
        } else {
            return false;
        }
        true
    }

    fn encode_whole(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(8 << 10);
        out.extend_from_slice(&MAGIC);
        out.extend_from_slice(&VERSION.to_le_bytes());
        // The length of the body and the checksum come at the end.
        out.extend_from_slice(&[0; 8]);
        out.extend_from_slice(&self.process.to_le_bytes());
        out.extend_from_slice(&self.database.0.to_le_bytes());
        for value in [self.number, self.open_micros, self.written_micros] {
            out.extend_from_slice(&value.to_le_bytes());
        }
        for value in [self.interval_ms, self.table_count, self.reader_count, 0] {
            out.extend_from_slice(&value.to_le_bytes());
        }
        debug_assert_eq!(out.len(), HEADER_BYTES);
        self.encode_body(&mut out);
        let body = (out.len() - HEADER_BYTES) as u32;
        out[12..16].copy_from_slice(&body.to_le_bytes());
        seal(&mut out);
        out
    }

    fn encode_body(&self, out: &mut Vec<u8>) {
        list(out, &self.metrics, |out, metric| {
            string(out, &metric.name);
            out.push(u8::from(metric.is_counter));
            numbers(out, &[metric.value]);
        });
        list(out, &self.histograms, |out, histogram| {
            string(out, &histogram.name);
            numbers(out, &[histogram.sum, histogram.max]);
            list(out, &histogram.buckets, |out, count| numbers(out, &[*count]));
        });
        list(out, &self.table_metrics, |out, name| string(out, name));
        list(out, &self.tables, |out, table| self.encode_table(out, table));
        list(out, &self.jobs, |out, job| {
            string(out, &job.kind);
            string(out, &job.table);
            numbers(out, &[job.age_micros, job.bytes_read, job.bytes_written]);
        });
        list(out, &self.readers, |out, reader| {
            string(out, &reader.kind);
            string(out, &reader.label);
            string(out, &reader.place);
            numbers(out, &[reader.age_micros, reader.seq, reader.records_since]);
            numbers(out, &[reader.extent_bytes, reader.memory_bytes]);
            out.push(u8::from(reader.is_expired));
        });
    }

    fn encode_table(&self, out: &mut Vec<u8>, table: &PageTable) {
        string(out, &table.name);
        debug_assert_eq!(table.values.len(), self.table_metrics.len(), "a number for each name");
        numbers(out, &table.values);
        for runs in [&table.runs, &table.levels] {
            list(out, runs, |out, level| {
                let PageLevel { extents, bytes, entries } = *level;
                numbers(out, &[extents, bytes, entries]);
            });
        }
    }
}

fn list<T>(out: &mut Vec<u8>, items: &[T], mut encode: impl FnMut(&mut Vec<u8>, &T)) {
    let items = &items[..items.len().min(LIST_MAX)];
    out.extend_from_slice(&(items.len() as u16).to_le_bytes());
    items.iter().for_each(|item| encode(out, item));
}

fn string(out: &mut Vec<u8>, text: &str) {
    let mut len = text.len().min(STRING_BYTES_MAX);
    while !text.is_char_boundary(len) {
        len -= 1;
    }
    out.push(len as u8);
    out.extend_from_slice(&text.as_bytes()[..len]);
}

fn numbers(out: &mut Vec<u8>, values: &[u64]) {
    values.iter().for_each(|value| out.extend_from_slice(&value.to_le_bytes()));
}
