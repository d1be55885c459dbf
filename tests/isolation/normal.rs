//! Texts of two runs made comparable: ids are numbered in the order in which they come, times and what depends on them are masked.

use std::collections::BTreeMap;

/// The ids of a run, by their digits.
#[derive(Debug, Default)]
pub struct Ids(BTreeMap<String, usize>);

/// Fields whose values are new in every run.
const MASKED: [&str; 5] = [
    "age_seconds",
    "next_cursor",
    "cursor",
    "latency_ms",
    "webhook_secret",
];

/// The same where their values are bytes: what is sealed, drawn or packed. A slot's outcome is a word, and stays.
const MASKED_BYTES: [&str; 6] = [
    "nonce",
    "ciphertext",
    "fingerprint",
    "outcome",
    "states",
    "looks",
];

impl Ids {
    /// The text as it reads in every run.
    pub fn normal(&mut self, text: &str) -> String {
        self.read(text, true)
    }

    /// The same for the twin, whose own ids are the same in every run and stay as they are.
    pub fn normal_of_twin(&mut self, text: &str) -> String {
        self.read(text, false)
    }

    fn read(&mut self, text: &str, numbers_new: bool) -> String {
        let mut normal = String::with_capacity(text.len());
        let (mut at, mut kept) = (0, 0);
        while let Some(byte) = text.as_bytes().get(at) {
            let rest = &text.as_bytes()[at..];
            let word = rest
                .iter()
                .take_while(|byte| byte.is_ascii_alphanumeric())
                .count();
            let other = match byte {
                b'0'..=b'9' | b'a'..=b'f' => match (id(rest), time(rest)) {
                    (Some(length), _) => {
                        Some((self.number(&text[at..at + length], numbers_new), length))
                    }
                    (None, Some(length)) => Some(("<time>".to_owned(), length)),
                    (None, None) => None,
                },
                b'"' | b'=' => masked(rest)
                    .map(|(value, length)| (format!("{}<masked>", &text[at..at + value]), length)),
                _ => None,
            };
            match other {
                None => at += word.max(1),
                Some((other, length)) => {
                    normal.push_str(&text[kept..at]);
                    normal.push_str(&other);
                    at += length;
                    kept = at;
                }
            }
        }
        normal.push_str(&text[kept..]);
        normal
    }

    fn number(&mut self, id: &str, numbers_new: bool) -> String {
        let digits = id.replace('-', "");
        let next = self.0.len();
        if numbers_new {
            self.0.entry(digits.clone()).or_insert(next);
        }
        self.0
            .get(&digits)
            .map_or(digits, |number| format!("#{number}"))
    }
}

/// The length of an id at the beginning: 32 digits, or a UUID with its hyphens.
fn id(text: &[u8]) -> Option<usize> {
    let run = |from: usize| {
        text[from..]
            .iter()
            .take_while(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
            .count()
    };
    let first = run(0);
    if first == 32 && !text.get(32).is_some_and(u8::is_ascii_alphanumeric) {
        return Some(32);
    }
    let mut at = (first == 8).then_some(8)?;
    for length in [4, 4, 4, 12] {
        at += (text.get(at) == Some(&b'-')).then_some(1)?;
        at += (run(at) == length).then_some(length)?;
    }
    Some(at)
}

/// The length of a time at the beginning, as `2030-01-01T10:00`, with what follows.
fn time(text: &[u8]) -> Option<usize> {
    let shape = b"0000-00-00T00:00";
    let fits = text.len() >= shape.len()
        && text.iter().zip(shape).all(|(byte, wanted)| {
            if *wanted == b'0' {
                byte.is_ascii_digit()
            } else {
                byte == wanted
            }
        });
    let more = |byte: &&u8| byte.is_ascii_digit() || matches!(byte, b':' | b'.' | b'+' | b'Z');
    fits.then(|| shape.len() + text[shape.len()..].iter().take_while(more).count())
}

/// A masked field at the beginning: where its value begins, and its length with its value; a null is told from a value.
fn masked(text: &[u8]) -> Option<(usize, usize)> {
    if text[0] == b'=' {
        // A cursor in a query: long digits.
        let digits = text[1..]
            .iter()
            .take_while(|byte| byte.is_ascii_hexdigit())
            .count();
        return (digits > 40).then_some((1, 1 + digits));
    }
    let after = &text[1..];
    let is_it =
        |name: &&str| after.starts_with(name.as_bytes()) && after[name.len()..].starts_with(b"\":");
    let name = MASKED.into_iter().chain(MASKED_BYTES).find(is_it)?;
    let begin = name.len() + 3;
    let begin = begin
        + text[begin..]
            .iter()
            .take_while(|byte| **byte == b' ')
            .count();
    let value = &text[begin..];
    let end = match value.first()? {
        b'"' => value[1..].iter().position(|byte| *byte == b'"')? + 2,
        _ => value
            .iter()
            .position(|byte| matches!(byte, b',' | b'}' | b']'))?,
    };
    let is_bytes = value.starts_with(b"\"\\\\x") && !value.starts_with(b"\"\\\\x\"");
    let is_new = if MASKED.contains(&name) {
        !value.starts_with(b"null")
    } else {
        is_bytes
    };
    is_new.then_some((begin, begin + end))
}

#[test]
fn what_is_new_in_every_run_is_masked() {
    let mut ids = Ids::default();
    let first = "01970a1b2c3d7e4f8a9b0c1d2e3f4a5b";
    let text = format!(
        r#"{{"id":"scn_{first}","item":"01970a1b-2c3d-7e4f-8a9b-0c1d2e3f4a5c","again":"01970a1b-2c3d-7e4f-8a9b-0c1d2e3f4a5b",
           "at":"2026-11-20T10:00:00.123Z","until":"infinity","on":"2030-01-01","age_seconds":12,"nonce": "\\x12","wiped":null,
           "ciphertext":"\\x","next_cursor":null,"series":"\\x{first}","outcome":"ran",
           "outcome":"\\x28b5"}}"#
    );
    let expected = format!(
        r##"{{"id":"scn_#0","item":"#1","again":"#0",
           "at":"<time>","until":"infinity","on":"2030-01-01","age_seconds":<masked>,"nonce": <masked>,"wiped":null,
           "ciphertext":"\\x","next_cursor":null,"series":"\\x{first}","outcome":"ran",
           "outcome":<masked>}}"##
    );
    assert_eq!(ids.normal(&text), expected);
}
