//! Statistics of a database, and their text for Prometheus.

use terrane::{Db, MetricValue, Result, metrics};

pub(crate) fn main() -> Result<()> {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let db = Db::open(dir.path().join("data"))?;
    let orders = db.table_or_create("orders")?;
    for number in 0..1000u32 {
        orders.put(number.to_be_bytes(), "..")?;
    }
    db.flush()?;

    // By name, of the database and of one table.
    let statistics = db.statistics();
    let written = statistics.get("records_written").map_or(0, |value| value.number());
    let stored = statistics.table("orders").and_then(|table| table.get("table_stored_bytes"));
    println!("{written} records, {} bytes of orders", stored.map_or(0, |value| value.number()));

    // All there are. A table of metrics says what each one means.
    for (table, sample) in statistics.iter() {
        if let MetricValue::Histogram(histogram) = &sample.value {
            let (name, unit) = (sample.metric.name, sample.metric.unit);
            println!("{name} of {table:?}: {} values up to {} {unit}", histogram.count(), histogram.max);
        }
    }
    assert!(metrics().any(|metric| metric.name == "records_written" && metric.unit == "records"));

    // What the server answers at `/metrics`.
    let page = statistics.to_prometheus();
    assert!(page.contains("terrane_table_entries{table=\"orders\"} 1000\n"));
    print!("{page}");
    db.close()
}
