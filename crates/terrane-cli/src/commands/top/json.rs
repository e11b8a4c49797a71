//! A sample as one JSON object: the whole page, the rates of all counters, and quantiles of the times.

use serde_json::{Map, Value, json};
use terrane::{PageLevel, PageTable, PageWriterState};

use super::sample::Sample;
use super::screen::throttle_state;

pub(super) fn of(sample: &Sample<'_>) -> Value {
    let page = sample.page();
    let numbers: Map<_, _> =
        page.metrics.iter().map(|metric| (metric.name.clone(), metric.value.into())).collect();
    let rates: Map<_, _> = page
        .metrics
        .iter()
        .filter(|metric| metric.is_counter)
        .filter_map(|metric| Some((metric.name.clone(), sample.rate(&metric.name)?.into())))
        .collect();
    let latencies = sample.latencies().into_iter().map(|latency| {
        let value = json!({
            "count": latency.count, "since_open": latency.is_total, "p50": latency.p50, "p99": latency.p99,
            "p99_9": latency.p999, "max": latency.max, "one_in": latency.one_in,
        });
        (latency.name, value)
    });
    json!({
        "database": page.database.to_string(),
        "process": page.process,
        "page": page.number,
        "writer": writer(sample.now.writer),
        "age_seconds": sample.now.age.as_secs_f64(),
        "open_seconds": page.open_micros as f64 / 1e6,
        "interval_seconds": sample.seconds(),
        "throttle": throttle_state(sample),
        "metrics": numbers,
        "per_second": rates,
        "latencies": latencies.collect::<Map<_, _>>(),
        "jobs": page.jobs.iter().map(|job| json!({
            "kind": job.kind, "table": job.table, "age_seconds": job.age_micros as f64 / 1e6,
            "bytes_read": job.bytes_read, "bytes_written": job.bytes_written,
        })).collect::<Vec<_>>(),
        "readers": page.reader_count,
        "oldest_readers": page.readers.iter().map(|reader| json!({
            "kind": reader.kind, "label": reader.label, "place": reader.place,
            "age_seconds": reader.age_micros as f64 / 1e6, "seq": reader.seq,
            "records_since": reader.records_since, "extent_bytes": reader.extent_bytes,
            "memory_bytes": reader.memory_bytes, "is_expired": reader.is_expired,
        })).collect::<Vec<_>>(),
        "tables": page.table_count,
        "largest_tables": page.tables.iter().map(|table| table_of(sample, table)).collect::<Vec<_>>(),
    })
}

fn writer(state: PageWriterState) -> &'static str {
    match state {
        PageWriterState::Writing => "writing",
        PageWriterState::Gone => "gone",
        _ => "silent",
    }
}

fn table_of(sample: &Sample<'_>, table: &PageTable) -> Value {
    let names = &sample.page().table_metrics;
    let numbers: Map<_, _> =
        names.iter().cloned().zip(table.values.iter().map(|value| Value::from(*value))).collect();
    let rate = |name| sample.table_rate(table, name);
    json!({
        "name": table.name,
        "metrics": numbers,
        "per_second": { "reads": rate("reads"), "seeks": rate("seeks") },
        "runs": table.runs.iter().map(level).collect::<Vec<_>>(),
        "levels": table.levels.iter().map(level).collect::<Vec<_>>(),
    })
}

fn level(level: &PageLevel) -> Value {
    json!({ "extents": level.extents, "bytes": level.bytes, "entries": level.entries })
}
