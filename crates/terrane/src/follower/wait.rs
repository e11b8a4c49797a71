//! How far a follower is behind its writer, and waiting until it has a commit.

use std::sync::atomic::Ordering;
use std::time::Duration;

use terrane_base::{Error, Kind, Result, SeqNo};
use terrane_engine::Lag;

use super::Follower;
use crate::Db;

/// Time between two looks of a caller that waits for a commit: the first one, and the longest.
const LOOK_AGAIN: (Duration, Duration) = (Duration::from_millis(2), Duration::from_millis(250));

impl Follower {
    /// [`Follower::lag`], with the time by which the present view is behind, and whether all commits of the
    /// writer can be seen from here.
    ///
    /// ```
    /// # let dir = tempfile::tempdir().expect("temporary directory");
    /// let path = dir.path().join("data");
    /// let primary = terrane::Db::open(&path)?;
    /// primary.put("k", "v")?;
    /// let follower = terrane::Db::open_follower(&path)?;
    /// primary.put("k", "new")?;
    /// let lag = follower.measure_lag()?;
    /// assert!(lag.commits == 1 && !lag.is_least);
    /// # Ok::<(), terrane::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Db::open_follower`].
    pub fn measure_lag(&self) -> Result<Lag> {
        let turn = self.turn.lock().clone();
        self.viewing.lag(turn.moment.as_ref(), turn.stats.seq)
    }

    /// A view that has the commit `seq`: the present one, or a newer one that is made as soon as the commit
    /// can be seen. Waits up to `deadline` for it. A writer learns the number of a commit from
    /// [`Db::write`](crate::Db::write), or from [`Snapshot::seq`](crate::Snapshot::seq) behind it.
    ///
    /// ```
    /// use std::time::Duration;
    /// use terrane::{Batch, Durability, Kind, SeqNo};
    /// # let dir = tempfile::tempdir().expect("temporary directory");
    /// let path = dir.path().join("data");
    /// let primary = terrane::Db::open(&path)?;
    /// let follower = terrane::Db::open_follower(&path)?;
    /// let mut batch = Batch::new();
    /// batch.put(primary.default_table(), "k", "v")?;
    /// let seq = primary.write(&batch, Durability::Synced)?;
    /// let view = follower.read_at_least(seq, Duration::from_secs(5))?;
    /// assert_eq!(view.get("k")?.expect("its own write"), "v");
    /// let later = follower.read_at_least(SeqNo(seq.0 + 1), Duration::ZERO);
    /// assert_eq!(later.expect_err("no such commit yet").kind(), Kind::TimedOut);
    /// # Ok::<(), terrane::Error>(())
    /// ```
    ///
    /// Callers that wait at the same time share their looks; with a deadline of 0 a call takes what another
    /// one makes only once it is made. A look that this call began is ended, so the call may return later
    /// than `deadline` by the time of one [`Follower::catch_up`].
    ///
    /// # Errors
    /// `TimedOut`, with the last commit that the follower has, if it did not get to this one in time. As
    /// [`Follower::catch_up`], but for `Busy`, which is tried again.
    pub fn read_at_least(&self, seq: SeqNo, deadline: Duration) -> Result<Db> {
        let clock = &self.viewing.env.clock;
        let end = clock.now().saturating_add(deadline);
        let (mut pause, mut busy) = (LOOK_AGAIN.0, None);
        let mut is_first = true;
        loop {
            if let Some(view) = self.view_with(seq) {
                return Ok(view);
            }
            match self.look_for(seq, is_first, end.saturating_sub(clock.now())) {
                Err(error) if error.kind() == Kind::Busy => busy = Some(error),
                looked => looked?,
            }
            if let Some(view) = self.view_with(seq) {
                return Ok(view);
            }
            let left = end.saturating_sub(clock.now());
            if left.is_zero() {
                return Err(self.late(seq, deadline, busy));
            }
            clock.sleep(pause.min(left));
            pause = (2 * pause).min(LOOK_AGAIN.1);
            is_first = false;
        }
    }

    fn view_with(&self, seq: SeqNo) -> Option<Db> {
        Some(self.view.lock().clone()).filter(|(_, has)| *has >= seq).map(|(view, _)| view)
    }

    /// Makes a newer view, if none has the commit yet and no other caller began to make one since this call.
    /// Waits for another caller's view for `longest`.
    fn look_for(&self, seq: SeqNo, is_first: bool, longest: Duration) -> Result<()> {
        let begun = self.looks.load(Ordering::Relaxed);
        let Some(mut turn) = self.turn.try_lock_for(longest) else { return Ok(()) };
        let is_shared = self.looks.load(Ordering::Relaxed) > begun;
        if is_shared || self.view_with(seq).is_some() {
            return Ok(());
        }
        // A caller asks for what was written before as a rule, so the first look makes the view at once.
        if !is_first && !self.viewing.may_have(seq)? {
            return Ok(());
        }
        self.catch_up_in(&mut turn).map(drop)
    }

    #[cold]
    fn late(&self, seq: SeqNo, deadline: Duration, busy: Option<Error>) -> Error {
        let (place, has) = (self.viewing.source.place(), self.view.lock().1);
        let message = format!(
            "the follower of {place} has commit {has}, and not {seq} after {} ms: wait longer, or read what it \
             has; what its writer did not sync may not be there yet, and a journal that is on another machine \
             is not read{}",
            deadline.as_millis(),
            busy.map(|error| format!(" (its last refused look: {error})")).unwrap_or_default()
        );
        Error::new(Kind::TimedOut, message)
    }
}
