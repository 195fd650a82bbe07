//! The terminal while an answer comes: Esc stops it as Ctrl-C does, and what else is typed is kept for the next line.

const ESC: u8 = 0x1b;
/// What is typed ahead; more than anybody types while an answer comes.
const TYPED_BYTES_MAX: usize = 4096;

/// Listens to the keys until it goes; then the terminal is as it was before.
pub(super) struct Keys {
    before: Terminal,
    typed: Vec<u8>,
}

impl Keys {
    pub(super) fn listen() -> Keys {
        let before = Terminal::as_it_is();
        before.listen();
        Keys {
            before,
            typed: Vec::new(),
        }
    }

    /// Whether Esc was pressed since the last look.
    pub(super) fn is_esc_pressed(&mut self) -> bool {
        let mut piece = [0; 256];
        let count = self.before.read(&mut piece);
        self.take(&piece[..count])
    }

    /// What was typed ahead.
    pub(super) fn typed(&self) -> String {
        String::from_utf8_lossy(&self.typed).trim().to_owned()
    }

    /// Arrows and the like begin with Esc, too: they go on with a bracket or an O and end with a letter.
    fn take(&mut self, mut keys: &[u8]) -> bool {
        let mut is_pressed = false;
        while let Some((key, rest)) = keys.split_first() {
            keys = rest;
            match (*key, rest.first()) {
                (ESC, Some(b'[' | b'O')) => {
                    let end = rest
                        .iter()
                        .skip(1)
                        .position(|key| (b'@'..=b'~').contains(key));
                    keys = end.map_or(&[], |end| &rest[end + 2..]);
                }
                (ESC, _) => is_pressed = true,
                (b'\r' | b'\n', _) => self.keep(b' '),
                (key, _) if key < b' ' => {}
                (key, _) => self.keep(key),
            }
        }
        is_pressed
    }

    fn keep(&mut self, key: u8) {
        if self.typed.len() < TYPED_BYTES_MAX {
            self.typed.push(key);
        }
    }
}

impl Drop for Keys {
    fn drop(&mut self) {
        self.before.restore();
    }
}

/// The terminal's settings, to put them back.
pub(super) struct Terminal {
    #[cfg(unix)]
    settings: Option<rustix::termios::Termios>,
}

#[cfg(unix)]
impl Terminal {
    pub(super) fn as_it_is() -> Terminal {
        Terminal {
            settings: rustix::termios::tcgetattr(std::io::stdin()).ok(),
        }
    }

    pub(super) fn restore(&self) {
        if let Some(settings) = &self.settings {
            set(settings);
        }
    }

    /// From here on keys come one by one, are not shown, and nobody waits for them. Ctrl-C stays a signal.
    fn listen(&self) {
        use rustix::termios::{LocalModes, SpecialCodeIndex};
        let Some(mut settings) = self.settings.clone() else {
            return;
        };
        settings
            .local_modes
            .remove(LocalModes::ICANON | LocalModes::ECHO);
        settings.special_codes[SpecialCodeIndex::VMIN] = 0;
        settings.special_codes[SpecialCodeIndex::VTIME] = 0;
        set(&settings);
    }

    /// From here on lines come whole, and are shown as they are typed. What was typed before is forgotten: a key that
    /// was pressed for something else is no answer.
    pub(super) fn take_lines(&self) {
        use rustix::termios::{LocalModes, QueueSelector, tcflush};
        if let Some(mut settings) = self.settings.clone() {
            settings
                .local_modes
                .insert(LocalModes::ICANON | LocalModes::ECHO);
            set(&settings);
        }
        let _ = tcflush(std::io::stdin(), QueueSelector::IFlush);
    }

    fn read(&self, piece: &mut [u8]) -> usize {
        // Without settings it would wait for a line.
        match self.settings {
            Some(_) => rustix::io::read(std::io::stdin(), piece).unwrap_or(0),
            None => 0,
        }
    }
}

#[cfg(unix)]
fn set(settings: &rustix::termios::Termios) {
    let now = rustix::termios::OptionalActions::Now;
    let _ = rustix::termios::tcsetattr(std::io::stdin(), now, settings);
}

#[cfg(not(unix))]
impl Terminal {
    pub(super) fn as_it_is() -> Terminal {
        Terminal {}
    }

    pub(super) fn restore(&self) {}

    fn listen(&self) {}

    pub(super) fn take_lines(&self) {}

    fn read(&self, _: &mut [u8]) -> usize {
        0
    }
}
