//! Adding listeners, and waiting for them.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use terrane_base::env::Step;
use terrane_base::{Error, Result};

use super::Listener;
use crate::engine::Engine;

impl Engine {
    /// Tells `listener` what happens from now on.
    ///
    /// # Errors
    /// `Cancelled` after a close, `Io` if no thread can be started.
    pub fn add_listener(&self, listener: Arc<dyn Listener>) -> Result<()> {
        let mut thread = self.events.thread.lock();
        if self.is_closing() {
            return Err(Error::new(terrane_base::Kind::Cancelled, "the database is closing"));
        }
        if !self.events.is_heard.load(Ordering::Relaxed) {
            let (events, instance) = (self.events.clone(), self.instance);
            match self.env.spawn.stepper() {
                Some(stepper) => stepper.add("terrane-events", Box::new(move || events.step(instance))),
                None => {
                    let body = Box::new(move || events.run(instance));
                    *thread = Some(self.env.spawn.spawn("terrane-events", body)?);
                }
            }
        }
        self.events.queue.lock().listeners.push(listener);
        self.events.is_heard.store(true, Ordering::Relaxed);
        Ok(())
    }

    /// Waits until listeners were told what has happened so far. What is left out because too much waits is not waited for.
    ///
    /// # Errors
    /// `Invalid` on a thread of the background, such as that of the listeners.
    pub fn wait_for_listeners(&self) -> Result<()> {
        self.refuse_on_own_thread()?;
        match self.env.spawn.stepper() {
            // Nobody else would tell them.
            Some(_) => while self.events.step(self.instance) == Step::Worked {},
            None => self.events.wait_until_told(),
        }
        Ok(())
    }
}
