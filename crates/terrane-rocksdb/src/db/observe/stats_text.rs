//! `rocksdb.stats` and its parts, in RocksDB's words: what a line says is measured, and lines of which
//! nothing is known are left out.

use std::fmt::Write as _;
use std::time::Duration;

use terrane::TableShape;

use crate::db::observe::properties::rows_of_levels;
use crate::db::{Database, Family};
use crate::extents::levels::deepest_in;
use crate::options::objects::statistics::moment;

const GIB: f64 = (1 << 30) as f64;
const MIB: f64 = (1 << 20) as f64;

/// Hours, minutes and seconds.
fn clock(time: Duration) -> String {
    let seconds = time.as_secs();
    let (hours, minutes) = (seconds / 3600, seconds / 60 % 60);
    format!("{hours:02}:{minutes:02}:{:02}.{:03}", seconds % 60, time.subsec_millis())
}

/// A rate per second; 0 for a time of 0.
fn per_second(amount: f64, seconds: f64) -> f64 {
    if seconds > 0.0 { amount / seconds } else { 0.0 }
}

fn quotient(of: u64, by: u64) -> f64 {
    if by > 0 { of as f64 / by as f64 } else { 0.0 }
}

impl Database {
    /// Seconds since it was opened.
    fn uptime(&self) -> f64 {
        moment().saturating_sub(self.attached.opened).as_secs_f64()
    }

    /// The levels of a column family, and what was written into them.
    pub(crate) fn family_stats(&self, family: &Family, shape: &TableShape) -> String {
        let mut text = format!("\n** Compaction Stats [{}] **\n", family.table.name());
        text.push_str("Level    Files      Size(MB)      KeyIn    KeyDel\n");
        text.push_str("-------------------------------------------------\n");
        let mut sum = [0; 4];
        for (number, level) in rows_of_levels(shape, family.levels(deepest_in(shape))) {
            let row = [level.extents, level.bytes, level.entries, level.deletes];
            sum.iter_mut().zip(row).for_each(|(sum, more)| *sum += more);
            line(&mut text, &format!("L{number}"), row);
        }
        line(&mut text, "Sum", sum);
        let seconds = self.uptime();
        let _ = writeln!(text, "\nUptime(secs): {seconds:.1} total");
        let flushed = self.metric("flush_bytes_written") as f64;
        let _ = writeln!(text, "Flush(GB): cumulative {:.3}", flushed / GIB);
        let (read, written) =
            (self.metric("compaction_bytes_read") as f64, self.metric("compaction_bytes_written") as f64);
        let _ = writeln!(
            text,
            "Cumulative compaction: {:.2} GB write, {:.2} MB/s write, {:.2} GB read, {:.2} MB/s read",
            written / GIB,
            per_second(written / MIB, seconds),
            read / GIB,
            per_second(read / MIB, seconds)
        );
        text
    }

    /// Statistics of writes into the database.
    pub(crate) fn database_stats(&self) -> String {
        let seconds = self.uptime();
        let (writes, keys) = (self.metric("batches_written"), self.metric("records_written"));
        let (bytes, syncs) = (self.metric("bytes_written") as f64, self.metric("device_journal_syncs"));
        let journal = self.metric("device_journal_bytes_written") as f64;
        let stalled = Duration::from_micros(self.metric("writes_paused_micros"));
        let mut text = format!("\n** DB Stats **\nUptime(secs): {seconds:.1} total\n");
        let _ = writeln!(
            text,
            "Cumulative writes: {writes} writes, {keys} keys, ingest: {:.2} GB, {:.2} MB/s",
            bytes / GIB,
            per_second(bytes / MIB, seconds)
        );
        let _ = writeln!(
            text,
            "Cumulative WAL: {writes} writes, {syncs} syncs, {:.2} writes per sync, written: {:.2} GB, {:.2} MB/s",
            quotient(writes, syncs.max(1)),
            journal / GIB,
            per_second(journal / MIB, seconds)
        );
        let percent = per_second(stalled.as_secs_f64() * 100.0, seconds);
        let _ = writeln!(text, "Cumulative stall: {} H:M:S, {percent:.1} percent", clock(stalled));
        text
    }
}

fn line(text: &mut String, level: &str, [extents, bytes, entries, deletes]: [u64; 4]) {
    let _ = writeln!(text, "{level:>5} {extents:>8} {:>13.2} {entries:>10} {deletes:>9}", bytes as f64 / MIB);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_and_rates_are_shown_as_rocksdb_does() {
        assert_eq!(clock(Duration::from_millis(3_725_042)), "01:02:05.042");
        assert_eq!((per_second(1.0, 0.0), quotient(3, 0), quotient(3, 2)), (0.0, 0.0, 1.5));
    }
}
