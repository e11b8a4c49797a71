//! History: its rule, its end, and damage in it. Segments become history, and are freed, after the flush has
//! returned: a test that looks for that waits until nothing is left to do.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use terrane::{Db, Env, JournalMode, Kind, Options, SeqNo};
use terrane_base::env::Clock;

use crate::changes::{batches_of, fill, options};

#[test]
fn history_is_bounded_and_survives_reopening() {
    let dir = tempfile::tempdir().unwrap();
    let db = Db::open_with(dir.path(), &options(Some("512KiB"))).unwrap();
    fill(&db, 3000);
    db.flush().unwrap();
    db.wait_until_quiescent().unwrap();
    let oldest = db.changes(SeqNo(1)).unwrap_err().oldest().unwrap();
    let stats = db.stats();
    assert!(stats.history_bytes <= 512 << 10 && stats.history_segments >= 6, "{stats:?}");
    assert_eq!(db.shape().history_bytes, stats.history_bytes);
    assert!(stats.segments_kept >= stats.history_segments);
    db.close().unwrap();
    let recovered = {
        let db = Db::open_with(dir.path(), &options(None)).unwrap();
        // The segment that was active before is history as well now, and may push out the oldest.
        db.wait_until_quiescent().unwrap();
        let before = oldest;
        let oldest = db.changes(SeqNo(1)).unwrap_err().oldest().unwrap();
        assert!(before <= oldest && oldest < SeqNo(3000), "{before} {oldest}");
        assert!(db.stats().history_bytes <= 512 << 10 && db.stats().history_segments >= 6);
        let all = batches_of(&mut db.changes(oldest).unwrap());
        assert_eq!(all.last().unwrap().last_seq(), SeqNo(3000));
        assert_eq!(all.len() as u64, 3001 - oldest.0);
        db.stats().segment_bytes_recovered
    };
    // Segments of history are not replayed.
    assert!(recovered < stats.history_bytes / 2, "{recovered}");
    // Less is kept, then nothing.
    let db = Db::open_with(dir.path(), &options(Some("128KiB"))).unwrap();
    assert!(db.stats().history_bytes <= 128 << 10);
    db.close().unwrap();
    let db = Db::open_with(dir.path(), &options(Some("0"))).unwrap();
    assert_eq!(db.stats().history_segments, 0);
    assert_eq!(db.check(&mut |_, _| {}).unwrap().findings.len(), 0);
}

/// A wall clock that is set.
#[derive(Debug)]
struct Set(Arc<dyn Clock>, AtomicU64);

impl Clock for Set {
    fn now(&self) -> Duration {
        self.0.now()
    }

    fn wall(&self) -> Duration {
        Duration::from_secs(self.1.load(Ordering::Relaxed))
    }

    fn sleep(&self, duration: Duration) {
        self.0.sleep(duration);
    }
}

#[test]
fn history_that_is_too_old_goes() {
    let dir = tempfile::tempdir().unwrap();
    let real = Env::real();
    let clock = Arc::new(Set(real.clock.clone(), AtomicU64::new(1_700_000_000)));
    let env = Env { clock: clock.clone(), ..real };
    let mut options = options(Some("16MiB"));
    options.set("history_age", "1h").unwrap();
    let db = Db::open_in(dir.path(), &options, env).unwrap();
    fill(&db, 300);
    db.flush().unwrap();
    db.wait_until_quiescent().unwrap();
    assert!(db.stats().history_segments > 0);
    clock.1.fetch_add(1800, Ordering::Relaxed);
    db.wait_until_quiescent().unwrap();
    assert!(db.changes(SeqNo(1)).is_ok());
    clock.1.fetch_add(1800, Ordering::Relaxed);
    // More looks, at least a millisecond apart, than the clean-up can need.
    for _ in 0..200_000 {
        if db.stats().history_segments == 0 {
            break;
        }
        Env::real().clock.sleep(Duration::from_millis(1));
    }
    assert_eq!(db.stats().history_segments, 0, "segments that are too old are never given up");
    assert_eq!(db.changes(SeqNo(1)).unwrap_err().kind(), Kind::Gone);
}

#[test]
fn options_that_keep_nothing_are_refused() {
    let dir = tempfile::tempdir().unwrap();
    let refused = |name: &str, value: &str, change: &dyn Fn(&mut Options)| {
        let mut options = options(None);
        options.set(name, value).unwrap();
        change(&mut options);
        let error = Db::open_with(dir.path(), &options).unwrap_err();
        assert_eq!(error.kind(), Kind::Invalid);
        assert!(error.message().contains(name), "{error}");
    };
    refused("history_age", "1h", &|_| {});
    refused("history_bytes", "1MiB", &|options| options.journal = JournalMode::Off);
    refused("history_bytes", "64KiB", &|options| options.segment_bytes = 128 << 10);
    for (name, value) in [("history_bytes", "1KiB"), ("history_bytes", "-1"), ("history_age", "0s")] {
        assert!(Options::default().set(name, value).is_err(), "{name}={value}");
    }
}

/// Segments come and go while history grows: no file of history is used again.
#[test]
fn files_of_history_are_not_reused() {
    let dir = tempfile::tempdir().unwrap();
    let db = Db::open_with(dir.path(), &options(Some("8MiB"))).unwrap();
    for round in 0..8 {
        fill(&db, 300);
        db.flush().unwrap();
        db.wait_until_quiescent().unwrap();
        let all = batches_of(&mut db.changes(SeqNo(1)).unwrap());
        assert_eq!(all.len(), 300 * (round + 1), "from the first commit on");
    }
    assert!(db.stats().history_segments > 20, "{}", db.shape());
    assert_eq!(db.check(&mut |_, _| {}).unwrap().findings.len(), 0);
}

/// Changes that the journal did not record end history: a reader gets an error instead of a gap.
#[test]
fn a_journal_that_was_off_ends_history() {
    let dir = tempfile::tempdir().unwrap();
    let db = Db::open_with(dir.path(), &options(Some("4MiB"))).unwrap();
    fill(&db, 300);
    db.flush().unwrap();
    db.wait_until_quiescent().unwrap();
    assert!(db.stats().history_segments > 0);
    db.close().unwrap();
    let kept = segments(dir.path());
    let off = Options { journal: JournalMode::Off, ..options(None) };
    let db = Db::open_with(dir.path(), &off).unwrap();
    assert_eq!(db.changes(SeqNo(1)).unwrap_err().kind(), Kind::Invalid);
    assert_eq!(db.stats().history_segments, 0);
    let left = segments(dir.path()).into_iter().filter(|file| kept.contains(file)).count();
    assert_eq!(left, 0, "files of history stay though no reader needs them");
    db.put(b"unseen", b"v").unwrap();
    db.close().unwrap();
    let db = Db::open_with(dir.path(), &options(None)).unwrap();
    db.put(b"seen", b"v").unwrap();
    let gone = db.changes(SeqNo(1)).unwrap_err();
    assert_eq!((gone.kind(), gone.oldest()), (Kind::Gone, Some(SeqNo(302))));
    assert_eq!(batches_of(&mut db.changes(SeqNo(302)).unwrap()).len(), 1);
}

fn segments(dir: &Path) -> Vec<PathBuf> {
    let files = std::fs::read_dir(dir.join("journal")).unwrap();
    let mut files: Vec<_> = files.map(|entry| entry.unwrap().path()).collect();
    files.sort();
    files
}

/// Damage in history hinders no opening; readers and checks name it.
#[test]
fn damage_in_history_is_named() {
    let dir = tempfile::tempdir().unwrap();
    let db = Db::open_with(dir.path(), &options(Some("4MiB"))).unwrap();
    fill(&db, 300);
    db.flush().unwrap();
    db.wait_until_quiescent().unwrap();
    db.close().unwrap();
    let file = segments(dir.path()).remove(1);
    let mut bytes = std::fs::read(&file).unwrap();
    bytes[5000] ^= 1;
    std::fs::write(&file, bytes).unwrap();
    let db = Db::open_with(dir.path(), &options(None)).unwrap();
    let error = db.changes(SeqNo(1)).unwrap().find_map(Result::err).unwrap();
    assert_eq!(error.kind(), Kind::Corrupt);
    assert_eq!(error.place().unwrap().file, file.display().to_string());
    let findings = db.check(&mut |_, _| {}).unwrap().findings;
    assert_eq!(findings.len(), 1, "{findings:?}");
    drop(db);
    std::fs::remove_file(&file).unwrap();
    let db = Db::open_with(dir.path(), &options(None)).unwrap();
    assert_eq!(db.changes(SeqNo(1)).unwrap().find_map(Result::err).unwrap().kind(), Kind::Corrupt);
    assert_eq!(db.get(7u32.to_be_bytes()).unwrap().unwrap().len(), 1024);
}
