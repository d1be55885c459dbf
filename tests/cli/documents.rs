//! Completions, manual pages and the description of the API: without a service, key or home.

use serde_json::Value;

use super::bare_command;
use crate::operation::process::{farescan, program, run};

fn out(args: &[&str]) -> String {
    let done = run(&mut farescan(&program(), args));
    assert_eq!((done.code, done.err.as_str()), (Some(0), ""), "{args:?}");
    done.out
}

#[test]
fn completions_know_every_command() {
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let script = out(&["completions", shell]);
        for word in [
            "search",
            "roundtrip",
            "monitors",
            "max-requests",
            "completions",
        ] {
            assert!(script.contains(word), "{shell}: {word}");
        }
    }
}

#[test]
fn there_is_a_manual_page_for_each_command() {
    assert!(out(&["man"]).contains(".TH farescan 1"));
    let place = tempfile::tempdir().unwrap();
    let done = run(&mut farescan(
        &program(),
        &["man", "--out", place.path().to_str().unwrap()],
    ));
    assert_eq!(done.code, Some(0), "{done:?}");
    for page in [
        "farescan.1",
        "farescan-scan-oneway.1",
        "farescan-monitors-create-hotel.1",
    ] {
        let text = std::fs::read_to_string(place.path().join(page)).unwrap();
        assert!(text.contains("Examples"), "{page}");
    }
}

#[test]
fn the_description_is_the_one_that_is_served() {
    let printed: Value = serde_json::from_str(&out(&["openapi"])).unwrap();
    let served = serde_json::to_value(farescan::api::openapi_description()).unwrap();
    assert!(printed == served && printed["paths"]["/v1/scans"].is_object());
}

#[test]
fn a_wrong_guess_names_the_command() {
    let home = tempfile::tempdir().unwrap();
    for (args, says) in [
        (
            &["history", "TLV", "LHR"][..],
            "farescan history oneway TLV",
        ),
        (
            &["scan", "TLV", "LHR", "2030-02"],
            "farescan scan oneway TLV",
        ),
        (
            &["watch", "TLV", "LHR"],
            "farescan monitors create oneway TLV",
        ),
        (&["stop"], "farescan pause --all"),
        (&["scan", "oneway", "TLV", "LHR"], "--depart"),
        (&["spend"], "farescan usage"),
        (
            &["export", "fares.csv"],
            "farescan export @last -o fares.csv",
        ),
        (&["pause"], "--all"),
        (&["watch", "TLV"], "farescan scans"),
    ] {
        let mut command = bare_command(home.path(), args);
        let refused = run(command.env("FARESCAN_API_KEY", "some-key"));
        assert!(
            refused.code == Some(2) && refused.err.contains(says),
            "{args:?}: {refused:?}"
        );
    }
}

/// No option has a value that begins with the name of a wrong one.
#[test]
fn a_wrong_option_is_not_taken_for_a_value() {
    let home = tempfile::tempdir().unwrap();
    for (args, option) in [
        (
            &["search", "oneway", "TLV", "LHR", "--depart", "2030-02-07"][..],
            "--depart",
        ),
        (
            &["scan", "hotel", "Arts", "--chekin", "2030-02-07"],
            "--chekin",
        ),
        (&["scans", "--colour"], "--colour"),
    ] {
        let refused = run(&mut bare_command(home.path(), args));
        assert_eq!(refused.code, Some(2), "{refused:?}");
        assert!(refused.err.contains(option), "{refused:?}");
        assert!(
            !refused.err.contains(&format!("-- {option}")),
            "{refused:?}"
        );
    }
    let args = ["scan", "hotel", "Arts", "--chekin", "2030-02-07"];
    let similar = run(&mut bare_command(home.path(), &args));
    assert!(similar.err.contains("--checkin"), "{similar:?}");
}
