//! Texts of two runs made comparable: ids are numbered in the order in which they come, times and what depends on them are masked.

use std::collections::BTreeMap;

/// The ids of a run, by their digits.
#[derive(Debug, Default)]
pub struct Ids(BTreeMap<String, usize>);

/// Fields whose values are new in every run.
const MASKED: [&str; 6] = ["age_seconds", "next_cursor", "nonce", "ciphertext", "fingerprint", "cursor"];

impl Ids {
    /// The text as it reads in every run.
    pub fn normal(&mut self, text: &str) -> String {
        let mut normal = String::with_capacity(text.len());
        let mut rest = text;
        while let Some(first) = rest.chars().next() {
            let joined = normal.ends_with(|c: char| c.is_ascii_alphanumeric());
            let (kept, taken) = if let Some(length) = id(rest).filter(|_| !joined) {
                let digits: String = rest[..length].chars().filter(|c| *c != '-').collect();
                let next = self.0.len();
                (format!("#{}", self.0.entry(digits).or_insert(next)), length)
            } else if let Some(length) = time(rest).filter(|_| !joined) {
                ("<time>".to_owned(), length)
            } else if let Some((name, length)) = masked(rest) {
                (format!("\"{name}\":<masked>"), length)
            } else {
                (first.to_string(), first.len_utf8())
            };
            normal.push_str(&kept);
            rest = &rest[taken..];
        }
        normal
    }
}

/// The length of an id at the beginning: 32 digits, or a UUID with its hyphens.
fn id(text: &str) -> Option<usize> {
    let run = |text: &str| text.bytes().take_while(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f')).count();
    if run(text) == 32 && !text[32..].starts_with(|c: char| c.is_ascii_alphanumeric()) {
        return Some(32);
    }
    let mut at = 0;
    for (place, length) in [8, 4, 4, 4, 12].into_iter().enumerate() {
        if place > 0 {
            at += text.get(at..)?.starts_with('-').then_some(1)?;
        }
        at += (run(text.get(at..)?) == length).then_some(length)?;
    }
    Some(at)
}

/// The length of a time at the beginning, as `2030-01-01T10:00`, with what follows.
fn time(text: &str) -> Option<usize> {
    let shape = b"0000-00-00T00:00";
    let fits = text.len() >= shape.len()
        && text.bytes().zip(shape).all(|(byte, wanted)| if *wanted == b'0' { byte.is_ascii_digit() } else { byte == *wanted });
    let more = |byte: &u8| byte.is_ascii_digit() || matches!(byte, b':' | b'.' | b'+' | b'Z');
    fits.then(|| shape.len() + text.as_bytes()[shape.len()..].iter().take_while(|byte| more(byte)).count())
}

/// A masked field at the beginning, and its length with its value; a null is told from a value.
fn masked(text: &str) -> Option<(&'static str, usize)> {
    let after = text.strip_prefix('"')?;
    let name = MASKED.into_iter().find(|name| after.strip_prefix(name).is_some_and(|after| after.starts_with("\":")))?;
    let begin = name.len() + 3;
    let value = text[begin..].trim_start();
    let begin = text.len() - value.len();
    let end = match value.strip_prefix('"') {
        Some(value) => value.find('"')? + 2,
        None => value.find([',', '}', ']'])?,
    };
    (!value.starts_with("null") && !value.starts_with("\"\\\\x\"")).then_some((name, begin + end))
}

#[test]
fn what_is_new_in_every_run_is_masked() {
    let mut ids = Ids::default();
    let first = "01970a1b2c3d7e4f8a9b0c1d2e3f4a5b";
    let text = format!(
        r#"{{"id":"scn_{first}","item":"01970a1b-2c3d-7e4f-8a9b-0c1d2e3f4a5c","again":"01970a1b-2c3d-7e4f-8a9b-0c1d2e3f4a5b",
           "at":"2026-11-20T10:00:00.123Z","until":"infinity","on":"2030-01-01","age_seconds":12,"nonce": "\\x12","wiped":null,
           "ciphertext":"\\x","next_cursor":null,"series":"\\x{first}"}}"#
    );
    let expected = format!(
        r##"{{"id":"scn_#0","item":"#1","again":"#0",
           "at":"<time>","until":"infinity","on":"2030-01-01","age_seconds":<masked>,"nonce":<masked>,"wiped":null,
           "ciphertext":"\\x","next_cursor":null,"series":"\\x{first}"}}"##
    );
    assert_eq!(ids.normal(&text), expected);
}
