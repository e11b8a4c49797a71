//! Statistics as text for Prometheus, exposition format 0.0.4.
//!
//! Names begin with `terrane_`; counters end with `_total`. Times are in seconds, as is the custom there:
//! `_micros` and `_nanos` become `_seconds`. Metrics of a table have a label `table`. A metric's lines follow
//! each other, whatever table they are of.

use std::fmt::Write as _;

use terrane_base::metrics::{BUCKETS, HistogramSnapshot, Metric, MetricKind};

use crate::observe::stats::{MetricValue, Sample, Statistics};

/// Units of time: the end of the name, the unit, and how many are a second.
const TIMES: [(&str, &str, f64); 2] = [("_micros", "microseconds", 1e6), ("_nanos", "nanoseconds", 1e9)];

impl Statistics {
    /// The statistics in the text format of Prometheus, version 0.0.4: what a server answers at `/metrics`
    /// with the type `text/plain; version=0.0.4`.
    #[must_use]
    pub fn to_prometheus(&self) -> String {
        let mut text = String::new();
        for sample in &self.samples {
            write_head(&mut text, sample.metric);
            write_sample(&mut text, sample, None);
        }
        let Some(first) = self.tables.first() else { return text };
        debug_assert!(
            self.tables.iter().all(|table| table.samples.len() == first.samples.len()),
            "a sample would be shown below the head of another metric"
        );
        for (at, sample) in first.samples.iter().enumerate() {
            write_head(&mut text, sample.metric);
            for table in &self.tables {
                write_sample(&mut text, &table.samples[at], Some(&table.name));
            }
        }
        text
    }
}

/// The name without what Prometheus adds for parts of a histogram.
fn name_of(metric: &Metric) -> String {
    let name = match time_of(metric) {
        Some((end, _)) => metric.name.replace(end, "_seconds"),
        None => metric.name.to_owned(),
    };
    let suffix = if metric.kind == MetricKind::Counter { "_total" } else { "" };
    format!("terrane_{name}{suffix}")
}

/// Of a time: the end of its name, and how many of its unit are a second.
fn time_of(metric: &Metric) -> Option<(&'static str, f64)> {
    TIMES.iter().find(|(_, unit, _)| *unit == metric.unit).map(|(end, _, in_a_second)| (*end, *in_a_second))
}

fn shown(metric: &Metric, value: u64) -> String {
    match time_of(metric) {
        Some((_, in_a_second)) => format!("{}", value as f64 / in_a_second),
        None => value.to_string(),
    }
}

// Writing to a string cannot fail.
fn write_head(text: &mut String, metric: &Metric) {
    debug_assert!(text.is_empty() || text.ends_with('\n'), "the line before goes on");
    let name = name_of(metric);
    // A unit says more than a name, and has no line of its own in this version of the format.
    let unit = if time_of(metric).is_some() { "seconds" } else { metric.unit };
    let help = metric.about.replace('\\', "\\\\").replace('\n', "\\n");
    let _ = writeln!(text, "# HELP {name} {help} Unit: {unit}.");
    let _ = writeln!(text, "# TYPE {name} {}", metric.kind.as_str());
}

fn write_sample(text: &mut String, sample: &Sample, table: Option<&str>) {
    debug_assert!(text.ends_with('\n'), "a sample stands on a line behind its head");
    let (metric, name) = (sample.metric, name_of(sample.metric));
    let label = table.map(|table| format!("table=\"{}\"", escaped(table)));
    match &sample.value {
        MetricValue::Number(value) => {
            let labels = label.map_or_else(String::new, |label| format!("{{{label}}}"));
            let _ = writeln!(text, "{name}{labels} {}", shown(metric, *value));
        }
        MetricValue::Histogram(histogram) => write_histogram(text, metric, &name, histogram),
    }
}

fn write_histogram(text: &mut String, metric: &Metric, name: &str, histogram: &HistogramSnapshot) {
    let mut sum = 0;
    for at in 0..BUCKETS {
        sum += histogram.buckets[at];
        let bound =
            HistogramSnapshot::bound(at).map_or_else(|| "+Inf".to_owned(), |bound| shown(metric, bound));
        let _ = writeln!(text, "{name}_bucket{{le=\"{bound}\"}} {sum}");
    }
    debug_assert!(text.ends_with('\n'), "a sample stands on a line behind its head");
    let _ = writeln!(text, "{name}_sum {}", shown(metric, histogram.sum));
    let _ = writeln!(text, "{name}_count {sum}");
}

/// A value of a label as it stands between quotes.
fn escaped(value: &str) -> String {
    value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}

#[cfg(test)]
mod tests {
    use terrane_base::metrics::{Histogram, MetricScope};

    use super::*;
    use crate::observe::stats::TableStatistics;

    const ROWS: Metric = Metric::new("rows", MetricScope::Table, MetricKind::Gauge, "rows", "Rows of it.");
    const WAITS: Metric =
        Metric::new("wait_micros", MetricScope::Database, MetricKind::Histogram, "microseconds", "Waits.");
    const SPENT: Metric =
        Metric::new("spent_micros", MetricScope::Database, MetricKind::Counter, "microseconds", "A \\ b.");

    fn table(name: &str, rows: u64) -> TableStatistics {
        let samples = vec![Sample { metric: &ROWS, value: MetricValue::Number(rows) }];
        TableStatistics { name: name.to_owned(), samples }
    }

    #[test]
    fn the_text_is_of_the_format() {
        let waits = Histogram::default();
        [1, 3, 1 << 40].into_iter().for_each(|value| waits.observe(value));
        let statistics = Statistics {
            samples: vec![
                Sample { metric: &SPENT, value: MetricValue::Number(1_500_000) },
                Sample { metric: &WAITS, value: MetricValue::Histogram(Box::new(waits.snapshot())) },
            ],
            tables: vec![table("a\"b\\c\nd", 3), table("ü", 4)],
        };
        let text = statistics.to_prometheus();
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(
            lines[..3],
            [
                "# HELP terrane_spent_seconds_total A \\\\ b. Unit: seconds.",
                "# TYPE terrane_spent_seconds_total counter",
                "terrane_spent_seconds_total 1.5",
            ]
        );
        assert_eq!(
            lines[4..8],
            [
                "# TYPE terrane_wait_seconds histogram",
                "terrane_wait_seconds_bucket{le=\"0.000001\"} 1",
                "terrane_wait_seconds_bucket{le=\"0.000002\"} 1",
                "terrane_wait_seconds_bucket{le=\"0.000004\"} 2",
            ]
        );
        assert!(text.contains("terrane_wait_seconds_bucket{le=\"+Inf\"} 3\n"), "{text}");
        assert!(text.contains("terrane_wait_seconds_count 3\n"), "{text}");
        assert_eq!(
            lines[lines.len() - 3..],
            [
                "# TYPE terrane_rows gauge",
                "terrane_rows{table=\"a\\\"b\\\\c\\nd\"} 3",
                "terrane_rows{table=\"ü\"} 4",
            ]
        );
    }
}
