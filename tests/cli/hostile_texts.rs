//! Texts of others that hold control sequences or change the direction of writing: none of them
//! reaches a terminal (security.md, rule 32).

use std::process::Command;

use farescan::contract::Endpoint;
use serde_json::{Value, json};

use super::Client;
use super::terminal::Terminal;
use crate::operation::process::run;
use crate::support::app::KEY;
use crate::support::reply::Reply;
use crate::support::upstream::{ScriptedServer, fare};

/// Sets the title, clears the screen, writes the clipboard, changes the colour with a control of C1,
/// and turns the direction of writing.
pub const HOSTILE: &str = "Air\u{1b}]0;PWNED\u{7}\u{1b}[2J\u{1b}]52;c;cm0gLXJm\u{7}\u{9b}31m\u{202e}kcab\u{2066}\u{200f}\u{85}\rline";
/// What none of the texts may bring to a screen.
pub const FORBIDDEN: [&str; 9] = [
    "\u{7}",
    "\u{1b}]",
    "\u{1b}[2J",
    "\u{9b}",
    "\u{202e}",
    "\u{2066}",
    "\u{200f}",
    "\u{85}",
    "\rline",
];

/// What a text has that is forbidden.
pub fn forbidden_in(text: &str) -> Vec<&'static str> {
    let found = FORBIDDEN.into_iter();
    found.filter(|&sequence| text.contains(sequence)).collect()
}

/// Runs a command on a terminal; returns what the terminal got.
async fn on_terminal(mut command: Command, end: &str) -> String {
    let mut terminal = Terminal::start(&mut command, 200, 40);
    terminal.end().await;
    terminal.expect(end).await;
    let shown = terminal.shown();
    println!("{}", shown.escape_debug());
    shown
}

async fn hostile_marketplace() -> Client {
    let client = Client::start().await;
    client.upstream.answer(|call| {
        if call.endpoint == Some(Endpoint::HotelsByName) {
            return Reply::json(json!({
                "name": HOSTILE, "available": true, "price": 200, "price_string": "$200", "review_score": 8.4,
                "review_count": 120, "room_type": HOSTILE, "image_url": null, "link": "https://hotels.example/one",
                "nights": 2, "adults": 2, "children": null,
            }));
        }
        let mut row = fare(200, &call.body);
        let texts = ["airline", "departure_description", "arrival_description", "duration"];
        let texts = texts.map(|field| (field.to_owned(), Value::from(HOSTILE)));
        row.as_object_mut().unwrap().extend(texts);
        Reply::json(json!([row])).header("x-search-status", "ok")
    });
    client
}

#[tokio::test(flavor = "multi_thread")]
async fn no_control_of_the_marketplace_reaches_the_terminal() {
    let client = hostile_marketplace().await;
    let worker = client.start_worker(2);
    let scan = client.submit(&crate::support::fares(2)).await;
    client.wait_until_ended(&scan).await;
    worker.stop().await;
    let oneway = ["search", "oneway", "TLV", "LHR", "2030-02-07"];
    let json = [&oneway[..], &["--json"]].concat();
    let hotel = [
        "search",
        "hotel",
        "Hotel Arts",
        "--checkin",
        "2030-02-07",
        "--nights",
        "2",
    ];
    let commands: [(&[&str], &str); 7] = [
        (&oneway, "1 result"),
        (&json, "PWNED"),
        (&hotel, "200"),
        (&["watch", &scan], "200"),
        (&["scans", "show", &scan], "200"),
        (
            &["export", &scan, "--answers", "--format", "ndjson"],
            "PWNED",
        ),
        (&["export", &scan, "--answers", "--format", "csv"], "200"),
    ];
    let mut wrong = Vec::new();
    for (args, end) in commands {
        let shown = on_terminal(client.command(args), end).await;
        let found = forbidden_in(&shown);
        if !found.is_empty() {
            wrong.push(format!("{}: {found:?}", args[..2].join(" ")));
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn no_control_of_an_error_reaches_the_terminal() {
    let home = tempfile::tempdir().unwrap();
    let detail = json!({"field": HOSTILE, "found": HOSTILE, "expected": HOSTILE});
    let error = |details: Value| json!({"error": {"type": "invalid_request", "message": format!("{HOSTILE} of a server"), "details": details}});
    let replies = [
        Reply::status(400).with_json(error(json!([]))),
        Reply::status(400).with_json(error(json!([detail]))),
        Reply::status(429).with_json(json!({"message": format!("{HOSTILE} of a server")})),
        Reply::status(200).body(format!("{{\"{HOSTILE} of a server\":")),
    ];
    let mut wrong = Vec::new();
    for reply in replies {
        let server = ScriptedServer::start().await;
        server.reply(reply);
        for args in [&["scans"][..], &["verify"], &["scans", "--json"]] {
            let mut command = super::bare_command(home.path(), args);
            command
                .env("FARESCAN_URL", server.url())
                .env("FARESCAN_API_KEY", KEY);
            let shown = on_terminal(command, "farescan:").await;
            let found = forbidden_in(&shown);
            if !found.is_empty() {
                wrong.push(format!("{args:?}: {found:?}: {}", shown.escape_debug()));
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_keeps_the_data() {
    let client = hostile_marketplace().await;
    let worker = client.start_worker(2);
    let scan = client.submit(&crate::support::fares(1)).await;
    client.wait_until_ended(&scan).await;
    worker.stop().await;
    let piped = client.out(&["export", &scan, "--answers", "--format", "ndjson"]);
    let item: Value = serde_json::from_str(piped.trim()).unwrap();
    assert!(item.to_string().contains(&json!(HOSTILE).to_string()));
}

/// An answer without an end takes no more memory than the bound.
#[tokio::test(flavor = "multi_thread")]
async fn the_answer_of_a_server_is_bounded() {
    let home = tempfile::tempdir().unwrap();
    let server = ScriptedServer::start().await;
    server.reply(Reply::text(vec![b' '; 65 << 20]));
    let mut command = super::bare_command(home.path(), &["scans"]);
    command
        .env("FARESCAN_URL", server.url())
        .env("FARESCAN_API_KEY", KEY);
    let done = run(&mut command);
    assert_eq!(done.code, Some(1), "{done:?}");
    assert!(done.err.contains("more than 64 MiB"), "{done:?}");
}
