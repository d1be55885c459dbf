//! Bytes of others on their way to a terminal: each hidden character is written as an escape.

use std::io::{self, Write};

use farescan_contract::visible_text::escape_hidden;

/// Writes text to `out`, in pieces that may end within a character.
pub struct ForTerminal<W> {
    out: W,
    /// The beginning of a character, or a return whose line feed may follow.
    rest: Vec<u8>,
}

impl<W: Write> ForTerminal<W> {
    pub fn new(out: W) -> Self {
        Self {
            out,
            rest: Vec::new(),
        }
    }

    fn write_rest(&mut self, end: usize) -> io::Result<()> {
        let text = String::from_utf8_lossy(&self.rest[..end]);
        self.out.write_all(escape_hidden(&text).as_bytes())?;
        self.rest.drain(..end);
        Ok(())
    }
}

impl<W: Write> Write for ForTerminal<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.rest.extend_from_slice(bytes);
        let last = self.rest.utf8_chunks().last();
        let unfinished = last.map_or(0, |chunk| match chunk.invalid().len() {
            0 => usize::from(chunk.valid().ends_with('\r')),
            invalid => invalid,
        });
        self.write_rest(self.rest.len() - unfinished)?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.write_rest(self.rest.len())?;
        self.out.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_of_any_length_give_the_same_text() {
        let text = "a\u{202e}é\r\n\u{9b}\u{1b}]0;x\u{7}\rz😀";
        for length in 1..=text.len() {
            let mut out = ForTerminal::new(Vec::new());
            for piece in [text.as_bytes(), &[0xff]].concat().chunks(length) {
                out.write_all(piece).unwrap();
            }
            out.flush().unwrap();
            assert_eq!(
                String::from_utf8(out.out).unwrap(),
                "a\\u202eé\r\n\\u009b\\u001b]0;x\\u0007\\u000dz😀\u{fffd}",
                "{length}"
            );
        }
    }
}
