//! The queue of events, and its listeners.

use super::*;

#[derive(Default)]
struct Names(Mutex<Vec<String>>);

impl Listener for Names {
    fn table_created(&self, name: &str) {
        self.0.lock().push(name.to_owned());
    }
}

#[test]
fn waiting_events_are_bounded_and_dropped_ones_are_counted() {
    let (events, names) = (Events::default(), Arc::new(Names::default()));
    events.enqueue(|| panic!("there is no listener"));
    events.queue.lock().listeners.push(names.clone());
    events.is_heard.store(true, Ordering::Relaxed);
    for number in 0..QUEUE_MAX + 3 {
        events.enqueue(|| Event::TableCreated(number.to_string()));
    }
    assert_eq!(events.counts(), (3, 0));
    while events.step(u64::MAX) == Step::Worked {}
    let heard: Vec<_> = (0..QUEUE_MAX).map(|number| number.to_string()).collect();
    assert_eq!(*names.0.lock(), heard, "in order");
    assert_eq!(events.step(u64::MAX), Step::Idle);
    events.enqueue(|| Event::TableCreated("last".to_owned()));
    events.close(u64::MAX);
    assert_eq!(
        (events.step(u64::MAX), events.step(u64::MAX)),
        (Step::Worked, Step::Ended),
        "listeners get what waits"
    );
}
