//! From a body to a stored scan, with its cost and the caller's consent between them.

use std::io::{Read as _, Write as _};
use std::path::Path;

use serde_json::{Map, Value, json};

use super::cost::{self, CostRefusal};
use super::{FollowArgs, SubmitArgs, follow, results};
use crate::Failure;
use crate::client::ServiceSession;
use crate::exit::{CommandEnd, ExitStatus};
use crate::wrap::note;
use farescan_contract::scans::ScanPreview;
use farescan_contract::{ErrorType, Scan};
use farescan_sheets::preview;

/// The longest file that is read: longer than the longest body that the service takes.
const MAX_FILE_BYTES: u64 = 16 << 20;

/// The object in a file.
pub fn read_body(path: &Path) -> Result<Map<String, Value>, Failure> {
    let name = path.display();
    let mut text = String::new();
    let read = if path == Path::new("-") {
        std::io::stdin()
            .lock()
            .take(MAX_FILE_BYTES)
            .read_to_string(&mut text)
    } else {
        std::fs::File::open(path)
            .and_then(|file| file.take(MAX_FILE_BYTES).read_to_string(&mut text))
    };
    read.map_err(|error| {
        CommandEnd::usage(format!(
            "{name}: {error}; expected `oneway`, `roundtrip`, `hotel` or a file with a scan as JSON"
        ))
    })?;
    serde_json::from_str(&text)
        .map_err(|error| CommandEnd::usage(format!("{name} is no JSON object: {error}")))
}

/// Previews, asks, submits, follows, prints.
pub async fn run(body: Map<String, Value>, args: FollowArgs) -> Result<(), Failure> {
    let session = args.client.open()?;
    let preview: ScanPreview = session.client.post("/v1/scans/preview", &body).await?;
    let sheet = preview::sheet(&preview, &body);
    if !args.confirmation.yes || session.screen.interactive {
        note!("{}", cost::describe(&preview, &sheet).trim_end());
    }
    match cost::refusal(&preview) {
        Some(CostRefusal::Limit(message)) => {
            return Err(CommandEnd::with(
                ExitStatus::Refused,
                format!("{message}\n  nothing was sent"),
            ));
        }
        Some(CostRefusal::OverQuota(message)) if args.confirmation.yes && !args.allow_overage => {
            return Err(CommandEnd::with(
                ExitStatus::Refused,
                format!(
                    "{message}\n  next: search fewer values, or add --allow-overage; nothing was sent"
                ),
            ));
        }
        Some(CostRefusal::OverQuota(_)) | None => {}
    }
    let question = format!("{}?", sheet.action.unwrap_or_default());
    args.confirmation.ask(session.screen, &question).await?;
    let scan = submit(&session, &body).await?;
    if args.detach {
        let mut out = anstream::stdout();
        if session.json {
            writeln!(out, "{}", scan.1)?;
        } else {
            writeln!(out, "{}", scan.0.id)?;
        }
        note!(
            "`farescan watch {}` shows its progress and its results",
            scan.0.id
        );
        return Ok(());
    }
    let scan = follow::follow(&session, scan.0.id).await?;
    results::print(&session, &scan, results::Form::of(session.json, args.csv)).await
}

/// Adds the options of the command line, which have precedence over a file.
pub(super) fn add_options(body: &mut Map<String, Value>, args: &SubmitArgs) {
    let mut set = |name: &str, value: Option<Value>| {
        if let Some(value) = value {
            body.insert(name.to_owned(), value);
        }
    };
    set("max_requests", args.max_requests.map(Value::from));
    set("max_age_seconds", args.max_age.map(Value::from));
    set("label", args.label.as_deref().map(Value::from));
    set("tags", (!args.tags.is_empty()).then(|| json!(args.tags)));
    set(
        "retry",
        args.attempts
            .map(|attempts| json!({"max_attempts": attempts})),
    );
    let question = args.find.as_deref().map(|find| {
        let risk = args
            .max_risk
            .map(|risk| ("max_risk".to_owned(), json!(risk)));
        let below = args.below.as_ref();
        let below = below.map(|below| ("below".to_owned(), json!(below)));
        let find = ("find".to_owned(), json!(find));
        Value::Object([find].into_iter().chain(below).chain(risk).collect())
    });
    set("strategy", question);
}

/// Stores the scan. The idempotency key lets the client repeat a request without an answer.
async fn submit(
    session: &ServiceSession,
    body: &Map<String, Value>,
) -> Result<(Scan, String), Failure> {
    let answer = session.create("/v1/scans", body).await;
    let answer = answer.map_err(|error| match error.error_type() {
        Some(ErrorType::TooManyRequests) => {
            CommandEnd::with(ExitStatus::Refused, format!("{error}\n  nothing was sent"))
        }
        _ => error.into(),
    })?;
    Ok((answer.read()?, answer.text.trim_end().to_owned()))
}
