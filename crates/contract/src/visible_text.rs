//! Text of others as a person may see it: without characters that command a terminal, hide
//! themselves or turn the direction of writing (security.md, rule 32).
//!
//! Tables, errors and pages take [`VisibleText`]. Data keeps every character: JSON writes the same
//! ones as escapes ([`escape_hidden`]), and what is read from it to be shown has none
//! ([`visible_json`]).

use std::borrow::Cow;
use std::fmt::{self, Write as _};
use std::ops::Deref;

/// A text in which no character is hidden.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct VisibleText(String);

impl VisibleText {
    /// On one line: line ends and tabs become blanks, and every other hidden character U+FFFD.
    pub fn one_line(text: impl Into<String>) -> Self {
        Self::replacing(text.into(), |c| {
            matches!(c, '\n' | '\r' | '\t').then_some(' ')
        })
    }

    /// With the line ends and tabs of the text: a page, or an error of several lines.
    pub fn lines(text: impl Into<String>) -> Self {
        Self::replacing(text.into(), |c| match c {
            '\n' | '\t' => Some(c),
            '\r' => Some(' '),
            _ => None,
        })
    }

    fn replacing(text: String, kept: impl Fn(char) -> Option<char>) -> Self {
        if !text.chars().any(is_hidden) {
            return Self(text);
        }
        let visible = |c| {
            if is_hidden(c) {
                kept(c).unwrap_or(char::REPLACEMENT_CHARACTER)
            } else {
                c
            }
        };
        Self(text.chars().map(visible).collect())
    }

    /// The text.
    pub fn into_string(self) -> String {
        self.0
    }
}

impl Deref for VisibleText {
    type Target = str;

    fn deref(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for VisibleText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl From<String> for VisibleText {
    fn from(text: String) -> Self {
        Self::one_line(text)
    }
}

impl From<&str> for VisibleText {
    fn from(text: &str) -> Self {
        Self::one_line(text)
    }
}

/// Controls, characters without a width, and those that turn the direction of writing.
fn is_hidden(c: char) -> bool {
    c.is_control()
        || matches!(c,
            '\u{61c}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}')
}

/// The text with each hidden character as `\u202e`, except the line ends of JSON lines and CSV. In
/// JSON this is the same value.
pub fn escape_hidden(text: &str) -> Cow<'_, str> {
    if !text.chars().any(|c| is_hidden(c) && c != '\n') {
        return text.into();
    }
    let mut escaped = String::with_capacity(text.len() + 64);
    let mut rest = text.chars().peekable();
    while let Some(c) = rest.next() {
        let is_line_end = c == '\n' || c == '\r' && rest.peek() == Some(&'\n');
        if is_hidden(c) && !is_line_end && c != '\t' {
            // Every hidden character has four digits. Writing to a string does not fail.
            let _ = write!(escaped, "\\u{:04x}", u32::from(c));
        } else {
            escaped.push(c);
        }
    }
    escaped.into()
}

/// JSON whose texts hold no hidden character: what is read from it is [`VisibleText`] on one line.
pub fn visible_json(json: &str) -> Cow<'_, str> {
    let escaped = escape_hidden(json);
    if !escaped.contains('\\') {
        return escaped;
    }
    let (mut visible, mut rest) = (String::with_capacity(escaped.len()), &*escaped);
    while let Some(at) = rest.find('\\') {
        visible.push_str(&rest[..at]);
        let escape = &rest[at..];
        let length = match escape.as_bytes().get(1) {
            Some(b'u') => 6,
            // A backslash before a longer character is no JSON, which its reader says.
            Some(byte) if byte.is_ascii() => 2,
            _ => 1,
        };
        let Some((escape, after)) = escape.split_at_checked(length) else {
            visible.push_str(escape);
            return visible.into();
        };
        visible.push_str(match escape {
            r"\n" | r"\r" | r"\t" => " ",
            r"\b" | r"\f" => r"\ufffd",
            _ => match escaped_char(escape) {
                Some('\n' | '\r' | '\t') => " ",
                Some(c) if is_hidden(c) => r"\ufffd",
                _ => escape,
            },
        });
        rest = after;
    }
    visible.push_str(rest);
    visible.into()
}

/// What `\u202e` stands for; `None` for half of a longer character, and for other escapes.
fn escaped_char(escape: &str) -> Option<char> {
    let digits = escape.strip_prefix(r"\u")?;
    u32::from_str_radix(digits, 16)
        .ok()
        .and_then(char::from_u32)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_text_holds_a_hidden_character() {
        let all: String = ('\0'..=char::MAX).collect();
        for text in [VisibleText::one_line(&*all), VisibleText::lines(&*all)] {
            assert!(!text.chars().any(|c| is_hidden(c) && c != '\n' && c != '\t'));
        }
        assert!(!VisibleText::one_line(all).contains(['\n', '\t']));
        assert_eq!(
            &*VisibleText::one_line("try\nlater\0\u{1b}[31m \u{9b} \u{202e}x\u{7f} é 北"),
            "try later\u{fffd}\u{fffd}[31m \u{fffd} \u{fffd}x\u{fffd} é 北"
        );
        assert_eq!(&*VisibleText::lines("a\r\n\tb\u{7}"), "a \n\tb\u{fffd}");
    }

    #[test]
    fn an_escaped_json_has_the_same_value() {
        let value = serde_json::json!({"a\u{9b}": "\u{202e}\u{1b}\u{7f}\u{feff}\n\\u202e"});
        let text = value.to_string();
        let escaped = escape_hidden(&text);
        assert!(!escaped.chars().any(is_hidden), "{escaped}");
        assert_eq!(
            serde_json::from_str::<serde_json::Value>(&escaped).unwrap(),
            value
        );
        assert_eq!(escape_hidden("a\r\nb\rc\n"), "a\r\nb\\u000dc\n");
    }

    #[test]
    fn what_is_read_from_json_is_visible() {
        for (given, read) in [
            ("\u{1b}]0;x\u{7}", "\u{fffd}]0;x\u{fffd}"),
            ("\u{8}\u{c}\n\r\ta", "\u{fffd}\u{fffd}   a"),
            ("\u{9b}\u{202e}", "\u{fffd}\u{fffd}"),
            (r"\u001b \\u202e", r"\u001b \\u202e"),
            ("é😀\"/", "é😀\"/"),
        ] {
            for json in [
                serde_json::json!(given).to_string(),
                format!("\"{}\"", escape_all(given)),
            ] {
                let text: String = serde_json::from_str(&visible_json(&json)).unwrap();
                assert_eq!(text, read, "{json}");
            }
        }
        for broken in ["\"\\", "\"\\u12", "\"\\é", "\\u202", "\\"] {
            assert!(serde_json::from_str::<String>(&visible_json(broken)).is_err());
        }
    }

    /// Each UTF-16 unit as an escape.
    fn escape_all(text: &str) -> String {
        text.encode_utf16()
            .map(|unit| format!("\\u{unit:04X}"))
            .collect()
    }
}
