//! Lines and columns.

/// Line and column, counted from 1, columns in characters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Place {
    /// The line.
    pub line: usize,
    /// The column.
    pub column: usize,
}

/// Finds lines and columns without walking a line of megabytes for each.
pub(super) struct Places<'t> {
    text: &'t str,
    lines: Vec<usize>,
    /// Characters before each block of bytes.
    characters: Vec<usize>,
}

const BLOCK: usize = 4096;

impl<'t> Places<'t> {
    pub(super) fn of(text: &'t str) -> Places<'t> {
        let starts = text.bytes().enumerate().filter(|(_, byte)| *byte == b'\n');
        let mut characters = Vec::with_capacity(text.len() / BLOCK + 1);
        let mut before = 0;
        for block in text.as_bytes().chunks(BLOCK) {
            characters.push(before);
            before += count_characters(block);
        }
        characters.push(before);
        Places {
            text,
            lines: [0]
                .into_iter()
                .chain(starts.map(|(at, _)| at + 1))
                .collect(),
            characters,
        }
    }

    pub(super) fn find(&self, at: usize) -> Place {
        let at = at.min(self.text.len());
        let line = self.lines.partition_point(|start| *start <= at);
        let start = self.lines[line - 1];
        Place {
            line,
            column: self.characters_before(at) - self.characters_before(start) + 1,
        }
    }

    fn characters_before(&self, at: usize) -> usize {
        let block = at / BLOCK;
        self.characters[block] + count_characters(&self.text.as_bytes()[block * BLOCK..at])
    }
}

fn count_characters(bytes: &[u8]) -> usize {
    // Every character has exactly one byte that does not continue another.
    bytes.iter().filter(|byte| (**byte & 0xC0) != 0x80).count()
}
