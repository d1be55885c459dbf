//! The command line as a client of a running service: the real program against a service with a
//! scripted marketplace. Golden files hold what it prints.

mod ask;
mod backtest;
mod connection;
mod documents;
mod follow;
mod history;
pub mod hostile_texts;
mod limits;
pub mod monitors;
mod relay;
mod scan;
mod scans;
mod search;
pub mod terminal;

use std::process::Command;

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::operation::process::{CommandResult, farescan, program, run};
use crate::support::TestService;
use crate::support::app::{KEY, TestApp};
use crate::support::reply::Reply;
use crate::support::upstream::fare;

/// A service and a home folder for the program.
pub struct Client {
    pub service: TestService,
    pub home: TempDir,
}

impl std::ops::Deref for Client {
    type Target = TestService;

    fn deref(&self) -> &TestService {
        &self.service
    }
}

impl Client {
    pub async fn start() -> Self {
        Self {
            service: TestService::start().await,
            home: tempfile::tempdir().unwrap(),
        }
    }

    /// The program with this service and key in its environment, 80 columns wide.
    pub fn command(&self, args: &[&str]) -> Command {
        let mut command = bare_command(self.home.path(), args);
        command
            .env("FARESCAN_URL", self.service.url())
            .env("FARESCAN_API_KEY", KEY);
        command
    }

    pub fn run(&self, args: &[&str]) -> CommandResult {
        run(&mut self.command(args))
    }

    /// The same on a terminal of another width.
    pub fn run_at(&self, columns: u16, args: &[&str]) -> CommandResult {
        run(self.command(args).env("COLUMNS", columns.to_string()))
    }

    /// Standard output of a command that must succeed.
    #[track_caller]
    pub fn out(&self, args: &[&str]) -> String {
        let done = self.run(args);
        assert_eq!(done.code, Some(0), "{args:?}: {done:?}");
        done.out
    }

    /// The requests that the marketplace received.
    pub fn calls(&self) -> usize {
        self.service.upstream.count()
    }
}

/// The program without a service or key.
pub fn bare_command(home: &std::path::Path, args: &[&str]) -> Command {
    let mut command = farescan(&program(), args);
    command
        .env("HOME", home)
        .env("TZ", "UTC")
        .env("TERM", "xterm")
        .env("COLUMNS", "80");
    command
}

/// A price that differs by date and destination, and is the same in every run.
pub fn price_of(search: &Value) -> u64 {
    let day = |field: &str| {
        let text = search[field].as_str().unwrap_or_default();
        text.bytes()
            .rev()
            .take(2)
            .map(u64::from)
            .fold(0, |sum, byte| sum * 7 + byte)
    };
    let place = search["to_airport"].as_str().unwrap_or_default();
    100 + (day("departure_date") * 13
        + day("return_date") * 5
        + place.bytes().map(u64::from).sum::<u64>())
        % 97
}

/// Answers one-way searches by date: the 5th is degraded, the 6th empty.
pub fn script_fares(service: &TestApp) {
    service.upstream.answer(|call| {
        let date = call.body["departure_date"].as_str().unwrap_or_default();
        if date.ends_with("-05") {
            return Reply::search_incomplete("blocked_page");
        }
        if date.ends_with("-06") {
            return Reply::json(json!([])).header("x-search-status", "empty");
        }
        Reply::json(json!([fare(price_of(&call.body), &call.body)])).header("x-search-status", "ok")
    });
}

/// The text without what differs between runs: ids and times.
pub fn stable(text: &str) -> String {
    let mut stable = text.to_owned();
    for prefix in ["scn_", "itm_", "att_", "mon_", "alr_", "dlv_"] {
        stable = replace_digits(&stable, prefix, |c| c.is_ascii_hexdigit(), "…");
    }
    stable = replace_digits(&stable, "http://127.0.0.1:", |c| c.is_ascii_digit(), "PORT");
    replace_times(&stable)
}

/// Replaces each `2026-11-22 20:04` by as many characters.
fn replace_times(text: &str) -> String {
    const PATTERN: &[u8] = b"0000-00-00 00:00";
    let mut bytes = text.as_bytes().to_vec();
    let fits = |window: &[u8]| {
        window
            .iter()
            .zip(PATTERN)
            .all(|(found, wanted)| match wanted {
                b'0' => found.is_ascii_digit(),
                wanted => found == wanted,
            })
    };
    for at in 0..bytes.len().saturating_sub(PATTERN.len()) {
        if fits(&bytes[at..at + PATTERN.len()]) {
            bytes[at..at + PATTERN.len()].copy_from_slice(b"YYYY-MM-DD HH:MM");
        }
    }
    String::from_utf8(bytes).unwrap()
}

/// Replaces the characters after each `prefix`; padding to their width stays.
fn replace_digits(text: &str, prefix: &str, is_part: fn(char) -> bool, with: &str) -> String {
    let mut parts = text.split(prefix);
    let mut replaced = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        replaced.push_str(prefix);
        let rest = part.trim_start_matches(is_part);
        replaced.push_str(if rest.len() < part.len() { with } else { "" });
        replaced.push_str(rest);
    }
    replaced
}

/// The JSON objects of a line-wise output.
pub fn lines(text: &str) -> Vec<Value> {
    text.lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}
