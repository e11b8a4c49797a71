//! The keyboard of a terminal, key by key: while this value lives, the terminal neither shows typed keys nor
//! waits for the end of a line.

use std::io::{self, IsTerminal};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::termios::{LocalModes, OptionalActions, Termios, tcgetattr, tcsetattr};

/// See the head of the file.
pub(super) struct Keys {
    before: Termios,
}

impl Keys {
    /// `None` if standard input is not a terminal.
    pub(super) fn open() -> Option<Keys> {
        let input = io::stdin();
        if !input.is_terminal() {
            return None;
        }
        let before = tcgetattr(&input).ok()?;
        let mut now = before.clone();
        now.local_modes -= LocalModes::ICANON | LocalModes::ECHO;
        tcsetattr(&input, OptionalActions::Now, &now).ok()?;
        Some(Keys { before })
    }

    /// Returns true if `q` was typed, or the input ended.
    pub(super) fn is_end_asked(&mut self) -> bool {
        let input = io::stdin();
        loop {
            let mut polled = [PollFd::new(&input, PollFlags::IN)];
            let at_once = Timespec { tv_sec: 0, tv_nsec: 0 };
            match poll(&mut polled, Some(&at_once)) {
                Ok(1..) => {}
                _ => return false,
            }
            let mut typed = [0; 16];
            match rustix::io::read(&input, &mut typed) {
                Ok(0) => return true,
                Ok(len) if typed[..len].contains(&b'q') => return true,
                Ok(_) => {}
                Err(_) => return false,
            }
        }
    }
}

impl Drop for Keys {
    fn drop(&mut self) {
        // A terminal that is gone needs no modes.
        let _ = tcsetattr(io::stdin(), OptionalActions::Now, &self.before);
    }
}
