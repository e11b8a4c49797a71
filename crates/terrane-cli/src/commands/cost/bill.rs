//! A measured load, and its price.

use terrane::MetricsPage;
use terrane_remote::Deployment;

use super::prices::Prices;

/// The parts whose requests a page has, as its metrics name them.
pub(super) const PARTS: [&str; 5] = ["journal", "manifest", "data", "jobs", "other"];

/// For each of [`PARTS`], whether its requests are billed.
pub(super) type Billed = [bool; PARTS.len()];

/// Returns which parts are billed: those of a deployment that a service of its own keeps are not, because a
/// service costs its machine.
pub(super) fn billed(deployment: &Deployment) -> Billed {
    let is_store = |url: &str| !url.starts_with("grpc");
    let storage = is_store(&deployment.url);
    let own = deployment.bucket_journal.as_ref().and_then(|journal| journal.url.as_deref());
    [own.map_or(storage, is_store), storage, storage, storage, storage]
}

/// Bytes of which traffic and storage have a price.
const GB: f64 = 1e9;
const HOURS_OF_A_MONTH: f64 = 730.0;
const SECONDS_OF_AN_HOUR: f64 = 3600.0;

/// Requests for one part in the measured time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct PartLoad {
    pub(super) creates: u64,
    pub(super) reads: u64,
    pub(super) lists: u64,
    pub(super) deletes: u64,
    pub(super) bytes_sent: u64,
    pub(super) bytes_received: u64,
}

/// The work of a writer in the measured time.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Load {
    pub(super) seconds: f64,
    pub(super) records: u64,
    /// In the order of [`PARTS`].
    pub(super) parts: [PartLoad; PARTS.len()],
    /// Reads that were requested a second time.
    pub(super) hedged: u64,
    pub(super) stored_bytes: u64,
    pub(super) processor_seconds: f64,
}

impl Load {
    /// The load between two pages of one opening, or since the opening; `None` if the page does not have the
    /// numbers.
    pub(super) fn between(before: Option<&MetricsPage>, now: &MetricsPage) -> Option<Load> {
        let grown = |name: &str| {
            let earlier = before.and_then(|before| before.metric(name)).unwrap_or(0);
            Some(now.metric(name)?.saturating_sub(earlier))
        };
        let mut load = Load {
            seconds: now.open_micros.saturating_sub(before.map_or(0, |before| before.open_micros)) as f64
                / 1e6,
            records: grown("records_written")?,
            hedged: grown("reads_hedged")?,
            stored_bytes: now.metric("object_bytes")?,
            processor_seconds: grown("process_cpu_micros")? as f64 / 1e6,
            ..Load::default()
        };
        for (part, name) in load.parts.iter_mut().zip(PARTS) {
            let of = |what: &str| grown(&format!("bucket_{name}_{what}"));
            *part = PartLoad {
                creates: of("creates")?,
                reads: of("reads")?,
                lists: of("lists")?,
                deletes: of("deletes")?,
                bytes_sent: of("bytes_sent")?,
                bytes_received: of("bytes_received")?,
            };
        }
        Some(load)
    }
}

/// The price of a load for an hour of the same.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Bill {
    /// Requests and traffic, in the order of [`PARTS`].
    pub(super) parts: [f64; PARTS.len()],
    /// Reads that were requested a second time.
    pub(super) hedged: f64,
    pub(super) storage: f64,
    pub(super) processor: f64,
}

impl Bill {
    /// The price of `load`, which lasted longer than no time.
    pub(super) fn of(load: &Load, prices: &Prices, billed: Billed) -> Bill {
        debug_assert!(load.seconds > 0.0, "rates are divided by the measured time");
        let per_hour = SECONDS_OF_AN_HOUR / load.seconds;
        let thousand = |number: u64, price: f64| number as f64 / 1000.0 * price;
        let part = |part: &PartLoad| {
            let (requests, traffic) = (&prices.requests, &prices.traffic);
            let asked = thousand(part.creates, requests.create)
                + thousand(part.reads, requests.read)
                + thousand(part.lists, requests.list)
                + thousand(part.deletes, requests.delete);
            let moved = part.bytes_sent as f64 / GB * traffic.sent
                + part.bytes_received as f64 / GB * traffic.received;
            (asked + moved) * per_hour
        };
        let mut parts = load.parts.each_ref().map(part);
        parts.iter_mut().zip(billed).filter(|(_, is_billed)| !is_billed).for_each(|(price, _)| *price = 0.0);
        // Extents lie with the manifest.
        let stored = if billed[1] { load.stored_bytes } else { 0 };
        Bill {
            parts,
            hedged: thousand(load.hedged, prices.requests.read) * per_hour,
            storage: stored as f64 / GB * prices.storage.gb_month / HOURS_OF_A_MONTH,
            processor: load.processor_seconds / load.seconds * prices.machine.processor_hour,
        }
    }

    /// The price of an hour.
    pub(super) fn hour(&self) -> f64 {
        self.parts.iter().sum::<f64>() + self.hedged + self.storage + self.processor
    }

    /// The price of a month.
    pub(super) fn month(&self) -> f64 {
        self.hour() * HOURS_OF_A_MONTH
    }

    /// The price of a million written records, without storage; `None` if none was written.
    pub(super) fn million_records(&self, load: &Load) -> Option<f64> {
        let hours = load.seconds / SECONDS_OF_AN_HOUR;
        let paid = (self.hour() - self.storage) * hours;
        (load.records > 0).then(|| paid / load.records as f64 * 1e6)
    }
}

#[cfg(test)]
mod tests {
    use terrane_remote::{BucketJournal, ObjectJournalSettings};

    use super::*;

    fn prices() -> Prices {
        let mut prices = Prices::read(None).expect("they are built in");
        prices.traffic.sent = 0.02;
        prices
    }

    #[test]
    fn parts_that_a_service_keeps_are_not_billed() {
        let mut deployment = Deployment::new("journal".into(), "s3://bucket".to_owned());
        assert_eq!(billed(&deployment), [true; PARTS.len()]);
        let url = Some("grpcs://host:1".to_owned());
        deployment.bucket_journal = Some(BucketJournal { url, settings: ObjectJournalSettings::default() });
        assert_eq!(billed(&deployment), [false, true, true, true, true]);
        deployment.url = "grpc://host:2".to_owned();
        deployment.bucket_journal = None;
        assert_eq!(billed(&deployment), [false; PARTS.len()]);
    }

    #[test]
    fn the_price_of_an_hour_is_that_of_each_part() {
        let mut load = Load {
            seconds: 1800.0,
            records: 2_000_000,
            hedged: 500,
            stored_bytes: 73_000_000_000,
            processor_seconds: 900.0,
            ..Load::default()
        };
        load.parts[0] = PartLoad { creates: 10_000, bytes_sent: 5_000_000_000, ..PartLoad::default() };
        load.parts[2] = PartLoad { reads: 100_000, lists: 1000, deletes: 7, ..PartLoad::default() };
        let bill = Bill::of(&load, &prices(), [true; PARTS.len()]);
        let is_about =
            |found: f64, expected: f64| assert!((found - expected).abs() < 1e-9, "{found}, {expected}");
        is_about(bill.parts[0], 2.0 * (10.0 * 0.005 + 5.0 * 0.02));
        is_about(bill.parts[1], 0.0);
        is_about(bill.parts[2], 2.0 * (100.0 * 0.0004 + 0.005));
        is_about(bill.hedged, 2.0 * 0.5 * 0.0004);
        is_about(bill.storage, 73.0 * 0.023 / 730.0);
        is_about(bill.processor, 0.5 * 0.04);
        is_about(bill.month(), bill.hour() * 730.0);
        is_about(bill.million_records(&load).expect("records"), (bill.hour() - bill.storage) / 4.0);
        assert_eq!(bill.million_records(&Load { records: 0, ..load.clone() }), None);
        let served = Bill::of(&load, &prices(), [false, true, true, true, true]);
        assert_eq!(
            (served.parts[0], served.parts[2]),
            (0.0, bill.parts[2]),
            "a journal service is not billed"
        );
    }
}
