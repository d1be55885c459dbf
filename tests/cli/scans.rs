//! Stored scans: lists, ids, retry, control, comparison, export, the story of an item.

use std::io::Read as _;

use serde_json::json;

use super::terminal::Terminal;
use super::{Client, lines, script_fares, stable};
use crate::support::reply::Reply;
use crate::support::upstream::fare;

const SCAN: [&str; 7] = [
    "scan",
    "oneway",
    "TLV",
    "LHR",
    "--depart",
    "2030-02-04..2030-02-07",
    "--yes",
];

/// A service with one incomplete scan: the 5th is degraded, the 6th empty.
async fn with_scan() -> (Client, crate::worker::fixture::RunningWorker) {
    let client = Client::start().await;
    script_fares(&client.service);
    let worker = client.start_worker(4);
    let scan = client.run(&SCAN);
    assert_eq!(scan.code, Some(3), "{scan:?}");
    (client, worker)
}

#[tokio::test(flavor = "multi_thread")]
async fn scans_are_listed_and_shown() {
    let (client, _worker) = with_scan().await;
    client.run(&[&SCAN[..], &["--label", "second", "--tag", "a"]].concat());
    insta::assert_snapshot!("list_at_80_columns", stable(&client.out(&["scans"])));
    insta::assert_snapshot!(
        "list_at_140_columns",
        stable(&client.run_at(140, &["scans"]).out)
    );
    assert_eq!(
        lines(&client.out(&["scans", "--tag", "a", "--json"])).len(),
        1
    );
    assert_eq!(
        lines(&client.out(&["scans", "--status", "completed", "--json"])).len(),
        0
    );
    let shown = client.out(&["scans", "show"]);
    for words in [
        "second",
        "is incomplete",
        "Searches with a price  2 / 4, 2 ok, 1 empty, 1 degraded",
        "Requests spent         4, 4 planned, no limit",
        "February 2030",
    ] {
        assert!(shown.contains(words), "{words}: {shown}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn ids_have_unique_beginnings() {
    let (client, _worker) = with_scan().await;
    client.run(&SCAN);
    let ids: Vec<String> = lines(&client.out(&["scans", "--json"]))
        .iter()
        .map(|scan| scan["id"].as_str().unwrap().to_owned())
        .collect();
    let show = |id: &str| client.run(&["scans", "show", id, "--json"]);
    for id in [ids[1].as_str(), &ids[1][..24], &ids[1][4..28]] {
        assert_eq!(lines(&show(id).out)[0]["id"], json!(ids[1]), "{id}");
    }
    assert_eq!(lines(&show("@last").out)[0]["id"], json!(ids[0]));
    for (id, code, says) in [
        (&ids[0][..8], 2, "2 scans begin with"),
        ("scn_ffff", 1, "no scan begins with"),
        ("nonsense", 2, "expected the id of a scan"),
        ("01", 2, "expected the id of a scan"),
    ] {
        let refused = show(id);
        assert_eq!(refused.code, Some(code), "{refused:?}");
        assert!(refused.err.contains(says), "{refused:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn retry_shows_its_cost_and_asks() {
    let (client, _worker) = with_scan().await;
    let before = client.calls();
    let refused = client.run(&["retry", "@last"]);
    assert_eq!(refused.code, Some(2), "{refused:?}");
    assert!(
        refused.err.contains("Ask again for 1 to 2 requests"),
        "{refused:?}"
    );
    let nothing = client.run(&["retry", "@last", "--reasons", "upstream_timeout", "--yes"]);
    assert!(
        nothing.code == Some(0) && nothing.err.contains("nothing to search again"),
        "{nothing:?}"
    );
    assert_eq!(client.calls(), before);

    client
        .upstream
        .answer(|call| Reply::json(json!([fare(90, &call.body)])).header("x-search-status", "ok"));
    let mut terminal = Terminal::start(&mut client.command(&["retry", "@last"]), 80, 40);
    terminal.expect("[y/N]").await;
    terminal.type_text("y\n");
    assert_eq!(terminal.end().await, Some(0), "{}", terminal.shown());
    terminal.expect("is completed: 3 ok, 1 empty").await;
    assert_eq!(client.calls(), before + 1, "only the degraded item");
}

#[tokio::test(flavor = "multi_thread")]
async fn why_tells_the_story_of_a_search() {
    let (client, _worker) = with_scan().await;
    let story = client.out(&["why", "@last"]);
    let without_times: Vec<_> = story
        .lines()
        .filter(|line| {
            !["sent  ", "stored  ", "took  "]
                .iter()
                .any(|time| line.contains(time))
        })
        .collect();
    insta::assert_snapshot!(stable(&without_times.join("\n")));
    let same = client.out(&["why", "@last", "2030-02-05"]);
    assert_eq!(
        [&["why"][..], &["why", "2030-02-05"]].map(|args| client.out(args)),
        [story.as_str(), story.as_str()]
    );
    assert_eq!(same, story);
    let item = lines(&client.out(&["why", "@last", "2030-02-06", "--json"]));
    assert_eq!(
        (&item[0]["search_status"], item.len()),
        (&json!("empty"), 2)
    );
    let id = item[0]["id"].as_str().unwrap();
    assert!(client.out(&["why", id]).contains("nothing is on offer"));
    let several = client.out(&["why", "@last", "TLV"]);
    assert_eq!(several.matches("itm_").count(), 4, "{several}");
    let none = client.run(&["why", "@last", "2031-01-01"]);
    assert!(
        none.code == Some(1) && none.err.contains("no search of"),
        "{none:?}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn compare_names_what_changed() {
    let (client, _worker) = with_scan().await;
    client
        .upstream
        .answer(|call| Reply::json(json!([fare(111, &call.body)])).header("x-search-status", "ok"));
    client.run(&SCAN);
    let ids = lines(&client.out(&["scans", "--json"]));
    let before = ids[1]["id"].as_str().unwrap();
    insta::assert_snapshot!(client.out(&["compare", before, "@last"]));
    let json = lines(&client.out(&["compare", before, "--json"]));
    assert_eq!(json[0]["counts"]["new"], 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn export_writes_whole_files_only() {
    let (client, _worker) = with_scan().await;
    let folder = client.home.path();
    let file = |name: &str| folder.join(name).to_str().unwrap().to_owned();
    client.out(&["export", "@last", "-o", &file("fares.parquet")]);
    assert!(
        std::fs::read(file("fares.parquet"))
            .unwrap()
            .starts_with(b"PAR1")
    );
    client.out(&["export", "-o", &file("fares.csv")]);
    assert_eq!(
        std::fs::read_to_string(file("fares.csv"))
            .unwrap()
            .lines()
            .count(),
        5
    );
    assert_eq!(
        lines(&client.out(&["export", "--format", "ndjson"])).len(),
        4
    );
    let unnamed = client.run(&["export", "-o", &file("fares.xls")]);
    assert!(
        unnamed.code == Some(2) && unnamed.err.contains(".parquet"),
        "{unnamed:?}"
    );
    let failed = client.run(&[
        "export",
        "scn_00000000000000000000000000000000",
        "-o",
        &file("none.csv"),
    ]);
    assert_eq!(failed.code, Some(1), "{failed:?}");
    let unwritable = client.run(&["export", "-o", &file("absent/fares.csv")]);
    assert_eq!(unwritable.code, Some(1), "{unwritable:?}");
    for words in [
        "absent/fares.csv cannot be written",
        "create the folder",
        "at no cost",
    ] {
        assert!(unwritable.err.contains(words), "{words}: {unwritable:?}");
    }
    let full = std::fs::File::options()
        .write(true)
        .open("/dev/full")
        .unwrap();
    let mut child = client
        .command(&["export"])
        .stdout(full)
        .stderr(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    let mut err = String::new();
    child
        .stderr
        .take()
        .unwrap()
        .read_to_string(&mut err)
        .unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(1), "{err}");
    assert!(err.contains("No space left"), "{err}");
    let left: Vec<_> = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().file_name())
        .collect();
    assert!(
        left.iter()
            .all(|name| !name.to_string_lossy().contains("none")
                && !name.to_string_lossy().contains("part")),
        "{left:?}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_scan_is_paused_resumed_and_cancelled() {
    let client = Client::start().await;
    client.out(&[&SCAN[..], &["--detach"]].concat());
    assert!(
        client
            .out(&["pause", "@last"])
            .contains("is paused (by caller)")
    );
    let watched = client.run(&["watch", "@last"]);
    assert!(
        watched.code == Some(3) && watched.err.contains("farescan resume"),
        "{watched:?}"
    );
    let refused = client.run(&["resume", "@last"]);
    assert!(
        refused.code == Some(2) && refused.err.contains("--yes"),
        "{refused:?}"
    );
    assert!(
        client
            .out(&["resume", "@last", "--yes"])
            .contains("is queued")
    );
    assert_eq!(client.run(&["cancel", "@last"]).code, Some(2));
    assert!(
        client
            .out(&["cancel", "@last", "--yes"])
            .contains("is cancelled: 4 cancelled")
    );
    assert_eq!(client.calls(), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn all_scans_are_cancelled_at_once() {
    let client = Client::start().await;
    client.service.accept_key_by_steps().await;
    for _ in 0..2 {
        client.out(&[&SCAN[..], &["--detach"]].concat());
    }
    client.out(&["pause", "@last"]);
    let refused = client.run(&["cancel", "--all"]);
    assert!(
        refused.code == Some(2)
            && refused
                .err
                .contains("Cancel 2 scans for good? 8 searches not made yet"),
        "{refused:?}"
    );
    let cancelled = client.out(&["cancel", "--all", "--yes"]);
    assert_eq!(cancelled.matches("is cancelled").count(), 2, "{cancelled}");
    let nothing = client.run(&["cancel", "--all", "--yes"]);
    assert!(nothing.err.contains("Nothing to cancel"), "{nothing:?}");
    let unnamed = client.run(&["cancel"]);
    assert!(
        unnamed.code == Some(2) && unnamed.err.contains("farescan cancel --all"),
        "{unnamed:?}"
    );
    assert_eq!(client.calls(), 0);
}
