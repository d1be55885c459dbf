//! What a receiver of each kind accepts. No server of ntfy or Slack runs here: these checks follow
//! the published descriptions of their requests.

use serde_json::Value;

use crate::support::upstream::Call;

/// The largest message that ntfy does not turn into a file.
const NTFY_MESSAGE: usize = 4_096;
/// The most characters of the text of a block.
const SLACK_BLOCK: usize = 3_000;

fn text<'a>(value: &'a Value, name: &str) -> &'a str {
    value[name]
        .as_str()
        .unwrap_or_else(|| panic!("{name}: {value}"))
}

fn is_plain(text: &str) -> bool {
    !text.chars().any(|c| {
        c.is_control() || matches!(c, '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
    })
}

/// A message as JSON to the root of an ntfy server; returns it.
pub fn ntfy(call: &Call) -> Value {
    assert_eq!(
        (call.path.as_str(), call.header("content-type")),
        ("/", "application/json")
    );
    let message = &call.body;
    let known = [
        "topic", "title", "message", "priority", "tags", "click", "actions",
    ];
    for name in message.as_object().expect("an object").keys() {
        assert!(known.contains(&name.as_str()), "{name}: {message}");
    }
    let topic = text(message, "topic");
    let is_topic = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
    assert!((1..=64).contains(&topic.len()) && topic.chars().all(is_topic));
    assert!(is_plain(text(message, "title")) && !text(message, "title").is_empty());
    let body = text(message, "message");
    assert!(!body.is_empty() && body.len() <= NTFY_MESSAGE);
    assert!(body.lines().all(is_plain), "{body:?}");
    assert!((1..=5).contains(&message["priority"].as_u64().unwrap()));
    for tag in message["tags"].as_array().unwrap() {
        assert!(tag.is_string());
    }
    for action in message["actions"].as_array().into_iter().flatten() {
        assert_eq!(action["action"], "view");
        assert!(text(action, "url").starts_with("http") && !text(action, "label").is_empty());
    }
    assert!(
        message["actions"]
            .as_array()
            .is_none_or(|all| all.len() <= 3)
    );
    message.clone()
}

/// A message to an incoming webhook of Slack; returns its text.
pub fn slack(call: &Call) -> String {
    assert_eq!(call.header("content-type"), "application/json");
    let message = call.body.as_object().expect("an object");
    let mut names: Vec<_> = message.keys().collect();
    names.sort();
    assert_eq!(names, ["blocks", "text"]);
    let blocks = call.body["blocks"].as_array().unwrap();
    assert!((1..=50).contains(&blocks.len()));
    for block in blocks {
        assert_eq!(
            (&block["type"], &block["text"]["type"]),
            (&"section".into(), &"mrkdwn".into())
        );
        let shown = text(&block["text"], "text");
        assert!((1..=SLACK_BLOCK).contains(&shown.chars().count()));
        assert!(only_links(shown), "{shown}");
    }
    let shown = text(&call.body, "text");
    assert!(only_links(shown), "{shown}");
    shown.to_owned()
}

/// Whether each `<` begins a link: nothing names a channel or a person.
fn only_links(text: &str) -> bool {
    text.split('<')
        .skip(1)
        .all(|rest| rest.starts_with("http://") || rest.starts_with("https://"))
}
