//! A worker that scans whole tables.

use std::sync::atomic::Ordering;

use super::{Pace, Worker, touch};
use crate::engine::Direction;
use crate::error::Result;
use crate::generate::operation::OperationKind;

/// Rows of a whole scan between two readings of the clock.
const SCAN_CHUNK: u64 = 256;

impl Worker<'_> {
    /// Scans whole tables, again and again, until the rows are counted or the run is stopped; a row is an
    /// operation. The clock is read every [`SCAN_CHUNK`] rows: the latency is the mean of a row in its chunk.
    /// With a `rate`, in rows per second, chunks arrive on schedule.
    pub(in crate::drive) fn run_whole_scan(
        &mut self,
        tables: u32,
        direction: Direction,
        rate: Option<f64>,
    ) -> Result<()> {
        let Worker { shared, session, recorder, manner, .. } = self;
        let is_stopped = || shared.stop.load(Ordering::Relaxed);
        let mut last = shared.env.clock.now();
        let mut pace = Pace::new(rate.map(|rate| rate / SCAN_CHUNK as f64), 0, 1, last);
        let (mut rows, mut bytes, mut pending) = (0u64, 0u64, 0u64);
        let limit = manner.operations;
        'passes: loop {
            let before = rows;
            for table in 0..tables {
                session.scan_all(table, direction, &mut |key, value| {
                    bytes += touch(value) + key.len() as u64;
                    rows += 1;
                    pending += 1;
                    if pending < SCAN_CHUNK {
                        return rows < limit;
                    }
                    let now = shared.env.clock.now();
                    recorder.record(OperationKind::Scan, (now - last).as_nanos() as u64 / pending);
                    shared.tally.add(std::mem::take(&mut pending));
                    let arrival = pace.arrival(shared.env, now, &is_stopped);
                    last = arrival.unwrap_or(now);
                    rows < limit && arrival.is_some() && !is_stopped()
                })?;
                if rows >= limit || is_stopped() {
                    break 'passes;
                }
            }
            if rows == before {
                break;
            }
        }
        shared.tally.add(pending);
        recorder.operations += rows;
        recorder.found += rows;
        recorder.bytes_read += bytes;
        Ok(())
    }
}
