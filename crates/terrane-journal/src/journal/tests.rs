//! Owners during a pause of the ring.

use super::*;
use crate::HeapMedium;

/// An owner that finds the ring paused continues without leading, and no other owner need come.
#[test]
fn a_ticket_that_comes_in_a_pause_is_led_behind_it() {
    let settings = JournalSettings::default();
    let medium = HeapMedium::new(settings.segment_bytes, SegmentId(1));
    let journal = RingJournal::new(medium, Arc::default(), &settings, &JournalStart::default());
    let journal = journal.expect("a journal");
    let ticket = journal.with_log(|_| {
        let ticket = journal.ring.submit(None, true);
        journal.lead(Some(ticket));
        assert!(journal.ring.is_head_filled(), "no thread leads during a pause");
        ticket
    });
    assert!(!journal.ring.is_head_filled(), "the ticket is still waiting");
    assert_eq!(journal.ring.wait_while(ticket, phase::FILLED), phase::PLACED);
    assert!(journal.publish(ticket, phase::PLACED, true, true));
}
