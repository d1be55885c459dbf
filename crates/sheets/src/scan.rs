//! A scan: its figures, why it waits or is incomplete, and what ends that.

use farescan_contract::scans::{FindGoal, Item, ItemCounts, PauseReason};
use farescan_contract::scans::{Scan, ScanStatus, StrategyProgress};

use crate::numbers::{amount, count, counted, duration};
use crate::sheet::{Cell, Column, Figure, Link, NextStep, Notice, Sheet, Table, Tone, Value};
use crate::trip::{facts, swept_words, title, words};
use crate::{item, numbers, strategy};

/// What pausing all scans and monitors does not stop: nothing refuses what is submitted later.
pub const NEW_SCANS_RUN: &str = "A scan that you start later runs.";

/// What is known of a scan's cheapest item besides its price.
#[derive(Debug, Clone, Copy, Default)]
pub struct Cheapest<'a> {
    pub item: Option<&'a Item>,
    /// Who offers it; of a flight with its times.
    pub offer: Option<&'a str>,
    /// How it compares with the others.
    pub beside: Option<&'a str>,
}

/// A scan as a sheet.
pub fn sheet(scan: &Scan, cheapest: Cheapest<'_>) -> Sheet {
    let label = scan.label.iter().cloned().map(Value::Strong);
    let searched = facts(scan.endpoint, &scan.request, &scan.sweep);
    let tags = scan.tags.iter().cloned().map(Value::Tag);
    let items = &scan.items;
    let priced = count(items.ok + items.partial);
    let mut searches = Figure::new("Searches with a price", priced).note(outcomes(items));
    searches.unit = Some(format!("/ {}", count(items.total)));
    let spent = count(scan.requests.spent);
    let requests = Figure::new("Requests spent", spent).note(requests_note(scan));
    Sheet {
        title: title(scan.endpoint, &scan.request, &scan.sweep),
        facts: label
            .chain(searched.into_iter().map(Value::Text))
            .chain(tags)
            .collect(),
        figures: vec![
            cheapest_figure(scan, cheapest),
            searches,
            requests,
            time(scan),
        ],
        sentence: scan.strategy.as_ref().map(strategy::sentence),
        notices: notice(scan).into_iter().collect(),
        ..Sheet::default()
    }
}

/// A scan in a line: `scn_… is paused (by caller): 3 ok, 1 in flight; 4 requests spent`.
pub fn line(scan: &Scan) -> String {
    let reason = scan.status_reason.map(|reason| words(reason.as_str()));
    let reason = reason.map_or_else(String::new, |reason| format!(" ({reason})"));
    let spent = counted(scan.requests.spent, "request");
    let (status, outcomes, reused) = (scan.status, outcomes(&scan.items), reused(scan));
    format!(
        "{} is {status}{reason}: {outcomes}; {spent} spent{reused}",
        scan.id
    )
}

/// What the colour of a status repeats.
pub const fn status_tone(status: ScanStatus) -> Tone {
    match status {
        ScanStatus::Completed => Tone::Good,
        ScanStatus::Incomplete | ScanStatus::Paused => Tone::Warn,
        ScanStatus::Running => Tone::Info,
        ScanStatus::Queued | ScanStatus::Cancelled => Tone::Plain,
    }
}

/// The status, and why it is paused.
pub fn status(scan: &Scan) -> Cell {
    let status = Value::Word(status_tone(scan.status), scan.status.to_string());
    let reason = scan
        .status_reason
        .map(|reason| Value::Muted(words(reason.as_str())));
    std::iter::once(status).chain(reason).collect()
}

/// Scans as rows.
pub fn table(name: &'static str, scans: &[Scan]) -> Table {
    let columns = [
        Column::text("What"),
        Column::detail("Details").rank(5),
        Column::text("Status"),
        Column::text("Searches").rank(3),
        Column::number("Cheapest"),
        Column::number("Requests").rank(4),
        Column::text("Created").rank(2),
    ];
    let rows = scans.iter().map(|scan| {
        let title = title(scan.endpoint, &scan.request, &scan.sweep);
        let details = facts(scan.endpoint, &scan.request, &scan.sweep);
        let name = match scan.label.clone() {
            Some(label) => vec![label.into(), Value::Muted(title)],
            None => vec![title.into()],
        };
        let tags = scan.tags.iter().cloned().map(Value::Tag);
        let details = std::iter::once(details.join(" · ").into()).chain(tags);
        let items = &scan.items;
        let searches = match (ended(items), items.total) {
            (ended, total) if ended == total => outcomes(items),
            (ended, total) => format!("{} of {}: {}", count(ended), count(total), outcomes(items)),
        };
        let best = scan.best.as_ref();
        let best = best.map(|best| Value::Money(best.price, Some(best.currency.clone())));
        let most = scan
            .requests
            .max
            .map(|max| Value::Muted(format!("/ {}", count(max))));
        let spent = std::iter::once(Value::Count(scan.requests.spent.into())).chain(most);
        let cells = [
            name,
            details.collect(),
            status(scan),
            vec![Value::Progress(scan.progress, searches)],
            vec![best.unwrap_or(Value::Absent("–"))],
            spent.collect(),
            vec![Value::Time("", scan.created_at)],
        ];
        (Some(Link::of(scan.id)), cells)
    });
    Table::new(name, columns, rows)
}

/// Whether a scan is paused until its caller does something.
pub fn waits_for_caller(scan: &Scan) -> bool {
    let ends_by_itself = |reason| next(reason).is_empty();
    scan.status == ScanStatus::Paused && !scan.status_reason.is_some_and(ends_by_itself)
}

/// The text of a button or question that asks again for so many searches, with its cost: a server
/// error is tried a second time.
pub fn ask_again(searches: u64) -> String {
    let most = searches.saturating_mul(2);
    format!("Ask again for {}", numbers::requests(searches, most))
}

/// The items that have ended.
pub const fn ended(items: &ItemCounts) -> u32 {
    items.total.saturating_sub(items.pending + items.running)
}

/// The counts of those that run or have ended, in words.
pub fn outcomes(items: &ItemCounts) -> String {
    let counts = [
        (items.running, "in flight"),
        (items.ok, "ok"),
        (items.empty, "empty"),
        (items.partial, "partial"),
        (items.degraded, "degraded"),
        (items.failed, "failed"),
        (items.cancelled, "cancelled"),
    ];
    let some = counts.into_iter().filter(|(number, _)| *number > 0);
    let words: Vec<_> = some
        .map(|(number, what)| format!("{} {what}", count(number)))
        .collect();
    if words.is_empty() {
        "no answer yet".to_owned()
    } else {
        words.join(", ")
    }
}

/// The lowest price: where it is, and how it compares.
pub fn cheapest_figure(scan: &Scan, cheapest: Cheapest<'_>) -> Figure {
    let label = match &scan.strategy {
        Some(StrategyProgress::Find(find)) if find.find == FindGoal::Below => {
            "Lowest that was searched"
        }
        _ => "Cheapest",
    };
    let mut figure = Figure::new(label, Value::Absent("–"));
    if let Some(best) = &scan.best {
        figure.value = Value::Link(Link::of(best.item), Some(amount(best.price)));
        figure.unit = Some(best.currency.clone());
        let search = cheapest.item.map(|item| &item.search);
        let swept = search.map(|search| swept_words(scan.endpoint, search, &scan.sweep));
        let swept = swept.filter(|swept| !swept.is_empty());
        let swept = swept.map(|swept| Value::Strong(swept.join(", ")));
        let verdict = cheapest.item.and_then(item::verdict);
        let beside = cheapest.beside.map(Value::from);
        let notes = [swept, cheapest.offer.map(Value::from), beside, verdict];
        figure.notes.extend(notes.into_iter().flatten());
    } else if scan.implausible.is_empty() {
        figure = figure.note(without_price(scan.status));
    }
    figure.notes.extend(implausible(scan));
    figure
}

/// Why there is no cheapest price.
fn without_price(status: ScanStatus) -> &'static str {
    match status {
        ScanStatus::Completed => "nothing on offer",
        ScanStatus::Incomplete | ScanStatus::Cancelled => "no price found",
        ScanStatus::Queued | ScanStatus::Running | ScanStatus::Paused => "no price yet",
    }
}

/// The implausible prices below the cheapest one, of which the lowest is named.
fn implausible(scan: &Scan) -> Option<Value> {
    let lowest = scan.implausible.first()?;
    let mut text = format!("is implausible: usually {}", amount(lowest.usual.price));
    if let others @ 1.. = scan.implausible.len() - 1 {
        text = format!("{text}, and {}", counted(others as u64, "other"));
    }
    let price = numbers::price(lowest.price, &lowest.currency);
    Some(Value::Implausible(lowest.item, price, text))
}

fn requests_note(scan: &Scan) -> String {
    let (planned, max) = (count(scan.requests.planned), scan.requests.max);
    let limit = max.map_or_else(
        || "no limit".to_owned(),
        |max| format!("limit {}", count(max)),
    );
    format!("{planned} planned, {limit}{}", reused(scan))
}

/// `, 11 answers reused`, if there are any.
fn reused(scan: &Scan) -> String {
    let avoided = scan.requests.avoided.unwrap_or_default();
    match avoided.reused + avoided.joined {
        0 => String::new(),
        taken => format!(", {} reused", counted(taken, "answer")),
    }
}

fn time(scan: &Scan) -> Figure {
    let note = match (scan.finished_at, scan.started_at) {
        (Some(finished), _) => Value::Time("ended", finished),
        (None, Some(started)) => Value::Time("started", started),
        (None, None) => Value::Time("created", scan.created_at),
    };
    let (label, value) = match (scan.started_at, scan.finished_at, scan.eta_seconds) {
        (Some(started), Some(finished), _) => {
            let seconds = finished.duration_since(started).as_secs();
            ("Took", duration(seconds.unsigned_abs()).into())
        }
        (None, Some(_), _) => ("Took", Value::Absent("no search")),
        (_, None, Some(eta)) => ("Time left", format!("about {}", duration(eta)).into()),
        (_, None, None) => ("Time left", Value::Absent("unknown")),
    };
    let mut figure = Figure::new(label, value).note(note);
    let created = scan.finished_at.or(scan.started_at);
    figure
        .notes
        .extend(created.map(|_| Value::Time("created", scan.created_at)));
    let stored = "your key is stored, sealed, until the end, at most until";
    figure.notes.extend(
        scan.key_custody
            .map(|custody| Value::Time(stored, custody.until)),
    );
    figure
}

/// What stops the scan, asks for a decision or has ended it.
pub fn notice(scan: &Scan) -> Option<Notice> {
    let items = &scan.items;
    let undone = items.partial + items.degraded + items.failed;
    let notice = |tone, lead: &str, text: &str, next| Notice {
        tone,
        lead: lead.to_owned(),
        text: text.to_owned(),
        next,
    };
    if let Some(reason) = scan.status_reason {
        let lead = format!("Paused: {}.", words(reason.as_str()));
        return Some(notice(Tone::Warn, &lead, pause(reason), next(reason)));
    }
    match scan.status {
        ScanStatus::Incomplete if undone > 0 => {
            let (undone, total) = (count(undone), counted(items.total, "search"));
            let lead = format!("{undone} of {total} did not complete.");
            let text = "They say nothing about prices: whether there is a cheaper one is unknown. Nothing is asked again unless you decide so.";
            Some(notice(
                Tone::Warn,
                &lead,
                text,
                &[NextStep::ReadReasons, NextStep::AskAgain],
            ))
        }
        ScanStatus::Queued => {
            let text = "It begins as soon as your plan's pace allows.";
            Some(notice(Tone::Plain, "Stored.", text, &[]))
        }
        ScanStatus::Paused => Some(notice(
            Tone::Warn,
            "Paused.",
            "Resume continues it.",
            &[NextStep::Resume],
        )),
        ScanStatus::Cancelled => {
            let text = "What was searched before stays.";
            Some(notice(Tone::Plain, "Cancelled.", text, &[]))
        }
        _ => None,
    }
}

/// What a pause means and what ends it.
pub const fn pause(reason: PauseReason) -> &'static str {
    match reason {
        PauseReason::ByCaller => "You paused it; Resume continues it.",
        PauseReason::RateLimited => {
            "Your plan's rate window is full. It continues by itself when the window ends."
        }
        PauseReason::QuotaExhausted => {
            "Your plan's quota is used up. It continues when the plan's next month begins; after an upgrade, resume it."
        }
        PauseReason::KeyRejected => {
            "The marketplace does not know the key. Rotate to a valid key, then resume."
        }
        PauseReason::NotSubscribed => {
            "The key has no subscription to this API. Subscribe on the marketplace, then resume."
        }
        PauseReason::BudgetSpent => {
            "Its limit of requests is reached. Resume it with a higher limit."
        }
        PauseReason::ReserveReached => {
            "Only the requests that you keep in reserve are left. Lower the reserve, or wait for the plan's next month."
        }
        PauseReason::KeyExpired => {
            "The key was stored for its maximum time and is destroyed. Resume seals it again."
        }
        PauseReason::UpstreamDown => {
            "The marketplace fails every call. It continues by itself when a probe succeeds."
        }
        PauseReason::Moving => {
            "The operator moves your work to another installation, where it continues."
        }
    }
}

/// What the caller can do about a pause; nothing if it ends by itself.
const fn next(reason: PauseReason) -> &'static [NextStep] {
    match reason {
        PauseReason::RateLimited | PauseReason::UpstreamDown | PauseReason::Moving => &[],
        PauseReason::ByCaller | PauseReason::KeyExpired => &[NextStep::Resume],
        PauseReason::KeyRejected | PauseReason::NotSubscribed => {
            &[NextStep::CheckKey, NextStep::Resume]
        }
        PauseReason::QuotaExhausted | PauseReason::ReserveReached => &[NextStep::ReadQuota],
        PauseReason::BudgetSpent => &[NextStep::RaiseLimit],
    }
}
