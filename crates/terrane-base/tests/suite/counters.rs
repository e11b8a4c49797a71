//! The counters of reads: a thread's own, summed and subtracted by name.

use terrane_base::counters::{ReadCounters, add, count, read_counters};

#[test]
fn a_thread_sees_what_it_counted_and_nothing_else() {
    let before = read_counters();
    count(|cells| {
        add(&cells.reads, 2);
        add(&cells.filter_probes, 5);
    });
    let elsewhere = std::thread::scope(|scope| {
        let other = scope.spawn(|| {
            count(|cells| add(&cells.reads, 100));
            read_counters()
        });
        other.join().expect("the thread ends")
    });
    let here = read_counters() - before;
    assert_eq!((here.reads, here.filter_probes, here.seeks), (2, 5, 0));
    assert_eq!((elsewhere.reads, elsewhere.filter_probes), (100, 0));
    let mut sum = here;
    sum += elsewhere;
    assert_eq!((sum.reads, sum.filter_probes), (102, 5));
}

#[test]
fn rows_show_every_counter_by_its_name() {
    let mut counters = ReadCounters::default();
    counters.device_bytes_read = 7;
    let rows = counters.rows();
    assert_eq!(rows.iter().map(|(_, _, value, _)| value).sum::<u64>(), 7);
    let row = rows.iter().find(|(name, ..)| *name == "device_bytes_read").expect("it has a row");
    assert_eq!((row.1, row.2), ("bytes", 7));
    assert!(
        rows.iter()
            .all(|(name, unit, _, about)| !name.is_empty() && !unit.is_empty() && about.ends_with('.'))
    );
}
