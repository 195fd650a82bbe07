//! What a program prints, within bounds: its first bytes and its last ones, the rest is only counted.

use tokio::io::{AsyncRead, AsyncReadExt};

const CHUNK_BYTES: usize = 64 * 1024;

/// The first and the last bytes of a stream that may be endless.
#[derive(Debug)]
pub(super) struct Captured {
    first: Vec<u8>,
    first_max: usize,
    last: Vec<u8>,
    last_max: usize,
    bytes: u64,
}

/// A stream's beginning as text.
pub(super) struct Text {
    pub(super) text: String,
    /// How much of how much it is, when it is not all.
    pub(super) cut: Option<(usize, u64)>,
    /// It was not UTF-8; what could not be read is `�`.
    pub(super) mended: bool,
}

impl Captured {
    /// Keeps so many bytes of the beginning and of the end.
    pub(super) fn new(first_max: usize, last_max: usize) -> Captured {
        Captured {
            first: Vec::new(),
            first_max,
            last: Vec::new(),
            last_max,
            bytes: 0,
        }
    }

    /// Reads to the end, whatever it takes: a program whose pipe is full stands still.
    pub(super) async fn read(&mut self, pipe: Option<impl AsyncRead + Unpin>) {
        let Some(mut pipe) = pipe else {
            return;
        };
        let mut chunk = vec![0; CHUNK_BYTES];
        // A pipe that cannot be read any more has no more to say.
        while let Ok(count @ 1..) = pipe.read(&mut chunk).await {
            self.take(&chunk[..count]);
        }
    }

    fn take(&mut self, chunk: &[u8]) {
        self.bytes += chunk.len() as u64;
        let room = self.first_max - self.first.len();
        self.first
            .extend_from_slice(&chunk[..room.min(chunk.len())]);
        let new = &chunk[chunk.len().saturating_sub(self.last_max)..];
        let surplus = (self.last.len() + new.len()).saturating_sub(self.last_max);
        self.last.drain(..surplus);
        self.last.extend_from_slice(new);
    }

    /// The beginning.
    pub(super) fn text(&self) -> Text {
        let cut = self.bytes > self.first.len() as u64;
        let kept = match cut {
            true => without_half_character(&self.first),
            false => &self.first,
        };
        let text = String::from_utf8_lossy(kept);
        Text {
            cut: cut.then_some((kept.len(), self.bytes)),
            mended: matches!(text, std::borrow::Cow::Owned(_)),
            text: text.into_owned(),
        }
    }

    /// The last lines that fit, without the blank around them.
    pub(super) fn last_lines(&self) -> String {
        let text = String::from_utf8_lossy(&self.last);
        let whole = self.bytes == self.last.len() as u64;
        let lines = match text.split_once('\n') {
            Some((_, complete)) if !whole && !complete.trim().is_empty() => complete,
            _ => &text,
        };
        match whole {
            true => lines.trim().to_owned(),
            false => format!("… {}", lines.trim()),
        }
    }
}

/// A character that the cut went through is not invalid, only incomplete.
fn without_half_character(bytes: &[u8]) -> &[u8] {
    match std::str::from_utf8(bytes) {
        Err(error) if error.error_len().is_none() => &bytes[..error.valid_up_to()],
        _ => bytes,
    }
}
