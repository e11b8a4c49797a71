//! How a client of a test waits: for the tests with threads and for those of the schedule explorer.

use super::{Bell, Client, Desk, Serve};

/// Waits as a session does: helps if it may, rings, sleeps.
pub(crate) fn wait<S: Serve>(desk: &Desk<S>, client: &mut Client<S::Slot>, bell: &Bell, helps: bool) {
    loop {
        client.look();
        if client.ready() > 0 {
            return;
        }
        if helps && desk.help() {
            continue;
        }
        desk.wake();
        bell.announce();
        client.look();
        if client.ready() > 0 { bell.cancel() } else { bell.sleep() }
    }
}
