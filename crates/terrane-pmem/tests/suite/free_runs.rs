//! Runs of free chunks: those that touch are one, and no chunk becomes free twice.

use terrane_pmem::FreeRuns;

#[test]
fn runs_that_touch_become_one() {
    let mut free = FreeRuns::default();
    free.insert(0, 10);
    let taken: Vec<_> = (0..10).map(|_| free.take(1)).collect();
    assert_eq!(taken, (0..10).map(Some).collect::<Vec<_>>());
    assert_eq!((free.take(1), free.count()), (None, 0));
    for chunk in [3, 5, 4, 9, 0] {
        free.insert(chunk, 1);
    }
    assert_eq!(free.count(), 5);
    assert_eq!(free.take(2), Some(3), "of 3 to 5");
    assert_eq!(free.take(1), Some(0), "the shortest run with the smallest place");
    assert_eq!(free.take(2), None, "5 and 9 are not adjacent");
}

#[test]
#[should_panic(expected = "became free twice")]
fn a_chunk_cannot_become_free_twice() {
    let mut free = FreeRuns::default();
    free.insert(2, 4);
    free.insert(1, 2);
}
