//! Where each removal was noticed when the long form was last played: `noticed.tsv` beside this file, a line for each removal.
//!
//! It says nothing that is not looked at again: the long form plays every removal and writes it anew, and the short form plays what it
//! takes from it.

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;

use super::acts::ACTS;
use super::twin::Twin;

/// An act beside a twin.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place {
    pub act: &'static str,
    pub twin: Twin,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} beside {}", self.act, self.twin.word())
    }
}

/// Removals by their keys.
#[derive(Debug, Default, Clone)]
pub struct Record {
    places: BTreeMap<String, Place>,
}

fn path() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/isolation/noticed.tsv")
}

impl Record {
    /// What is on record; acts and twins that are no more are not.
    pub fn read() -> Self {
        let text = std::fs::read_to_string(path()).unwrap_or_default();
        let place = |line: &str| {
            let mut columns = line.split('\t');
            let (key, act, twin) = (columns.next()?, columns.next()?, columns.next()?);
            let act = ACTS.iter().find(|known| known.name == act)?.name;
            let twin = Twin::ALL.into_iter().find(|known| known.word() == twin)?;
            Some((key.to_owned(), Place { act, twin }))
        };
        Self {
            places: text.lines().filter_map(place).collect(),
        }
    }

    pub fn write(&self) {
        let line = |(key, place): (&String, &Place)| {
            format!("{key}\t{}\t{}\n", place.act, place.twin.word())
        };
        std::fs::write(path(), self.places.iter().map(line).collect::<String>()).unwrap();
    }

    pub fn get(&self, key: &str) -> Option<Place> {
        self.places.get(key).copied()
    }

    pub fn put(&mut self, key: &str, place: Place) {
        self.places.insert(key.to_owned(), place);
    }

    pub fn retain(&mut self, is_kept: impl Fn(&str) -> bool) {
        self.places.retain(|key, _| is_kept(key));
    }

    pub fn extend(&mut self, other: Self) {
        self.places.extend(other.places);
    }

    pub fn len(&self) -> usize {
        self.places.len()
    }

    pub fn keys(&self) -> impl Iterator<Item = &str> {
        self.places.keys().map(String::as_str)
    }
}
