//! The results of a scan, how it ended, and what to do next.

use std::io::Write as _;

use crate::Failure;
use crate::client::ServiceSession;
use crate::exit::{CommandEnd, ExitStatus};
use crate::export;
use crate::layout::{Layout, cell_text};
use crate::progress::summary;
use crate::wrap::for_stdout;
use crate::wrap::note;
use farescan_contract::history_verdict::PriceClass;
use farescan_contract::scans::{FindGoal, PauseReason, StrategyProgress};
use farescan_contract::{Item, Scan, ScanStatus, offers};
use farescan_sheets::numbers::{amount, counted};
use farescan_sheets::strategy;

/// The form of the results.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    Tables,
    /// Each item on a line, as the API's JSON.
    Lines,
    Csv,
}

impl Form {
    pub fn of(json: bool, csv: bool) -> Self {
        match (json, csv) {
            (true, _) => Self::Lines,
            (false, true) => Self::Csv,
            (false, false) => Self::Tables,
        }
    }
}

/// Prints the results and how the scan ended; ends with 3 unless it is completed.
pub async fn print(session: &ServiceSession, scan: &Scan, form: Form) -> Result<(), Failure> {
    let mut out = anstream::stdout();
    match form {
        Form::Tables => {
            let text = Layout::of(scan)
                .render(&session.client, scan, session.screen)
                .await?;
            writeln!(out, "{text}")?;
            if let Some(cheapest) = cheapest(session, scan).await? {
                writeln!(out, "{}", for_stdout(&cheapest))?;
            }
            match &scan.strategy {
                Some(StrategyProgress::Find(find)) => {
                    writeln!(out, "{}", for_stdout(&strategy::found(find)))?;
                }
                Some(StrategyProgress::Watch(watch)) => {
                    writeln!(out, "{}", for_stdout(&strategy::watched(watch)))?;
                }
                None => {}
            }
        }
        Form::Lines | Form::Csv => {
            let format = if form == Form::Csv { "csv" } else { "ndjson" };
            let path = format!("/v1/scans/{}/items?format={format}", scan.id);
            export::print(&session.client, &path).await?;
        }
    }
    let (id, spent) = (scan.id, scan.requests.spent);
    note!(
        "{id} is {}: {}; {} spent{}",
        scan.status,
        summary(scan),
        counted(spent, "request"),
        avoided(scan)
    );
    match next_step(scan) {
        None => Ok(()),
        Some(next) => Err(CommandEnd::new(ExitStatus::Incomplete, next).into()),
    }
}

/// `, 11 answers reused`, if there are any.
pub fn avoided(scan: &Scan) -> String {
    let taken = scan
        .requests
        .avoided
        .map_or(0, |avoided| avoided.reused + avoided.joined);
    if taken == 0 {
        return String::new();
    }
    format!(", {} reused", counted(taken, "answer"))
}

/// What to do about a scan that is not completed.
pub fn next_step(scan: &Scan) -> Option<String> {
    let id = scan.id;
    match scan.status {
        ScanStatus::Completed | ScanStatus::Queued | ScanStatus::Running => None,
        ScanStatus::Incomplete => {
            let again = scan.items.degraded + scan.items.partial + scan.items.failed;
            let are = if again == 1 { "is" } else { "are" };
            Some(format!(
                "{} {are} not complete: nothing is known about what is missing\n  next: `farescan why {id}` shows the reasons\n        `farescan retry {id}` shows its cost",
                counted(again, "search")
            ))
        }
        ScanStatus::Cancelled => {
            Some("the scan was cancelled; what was searched is above".to_owned())
        }
        ScanStatus::Paused => {
            let next = match scan.status_reason {
                Some(PauseReason::BudgetSpent) => {
                    format!("`farescan resume {id} --max-requests NUMBER` raises the limit")
                }
                Some(PauseReason::QuotaExhausted | PauseReason::ReserveReached) => {
                    "`farescan quota` shows what is left and when the next period begins".to_owned()
                }
                Some(
                    PauseReason::KeyRejected | PauseReason::NotSubscribed | PauseReason::KeyExpired,
                ) => {
                    format!("check the key with `farescan verify`, then `farescan resume {id}`")
                }
                _ => format!("`farescan resume {id}` continues it"),
            };
            let reason = scan
                .status_reason
                .map_or_else(String::new, |reason| format!(" ({reason})"));
            Some(format!("the scan is paused{reason}\n  next: {next}"))
        }
    }
}

/// The implausible prices below the cheapest one, of which the lowest is named.
fn left_out(scan: &Scan) -> Option<String> {
    let lowest = scan.implausible.first()?;
    let others = match scan.implausible.len() - 1 {
        0 => String::new(),
        others => format!(", and {others} more"),
    };
    Some(format!(
        "Left out as implausible, in brackets above: {} {}, usually {}{others}\n  next: `farescan why {}`",
        amount(lowest.price),
        lowest.currency,
        amount(lowest.usual.price),
        lowest.item,
    ))
}

/// The cheapest item, with the carrier or room and the link of its offer.
async fn cheapest(session: &ServiceSession, scan: &Scan) -> Result<Option<String>, Failure> {
    let left_out = left_out(scan);
    let Some(best) = &scan.best else {
        return Ok(left_out);
    };
    let path = format!("/v1/items/{}?expand=answer", best.item);
    // Without the history the price has no verdict.
    let judged = format!("{path}&history_verdict=true");
    let item: Item = match session.client.get(&judged).await {
        Ok(item) => item,
        Err(_) => session.client.get(&path).await?,
    };
    let offers = item
        .answer
        .as_ref()
        .map(|answer| offers(scan.endpoint, answer.as_str().as_bytes()));
    let offer = offers
        .into_iter()
        .flatten()
        .find(|offer| offer.price == best.price);
    let mut parts = vec![
        format!("{} {}", amount(best.price), best.currency),
        cell_text(scan, &item.search),
    ];
    parts.extend(
        offer
            .as_ref()
            .and_then(|offer| offer.carrier_or_room.clone()),
    );
    parts.retain(|part| !part.is_empty());
    let label = match &scan.strategy {
        Some(StrategyProgress::Find(find)) if find.find == FindGoal::Below => {
            "Lowest that was searched"
        }
        _ => "Cheapest",
    };
    let mut text = format!("{label}: {}", parts.join(", "));
    if let Some(link) = offer.and_then(|offer| offer.link) {
        text = format!("{text}\n  {link}");
    }
    let verdict = item.history_verdict.as_ref();
    if let Some(verdict) = verdict.filter(|verdict| verdict.class != PriceClass::Insufficient) {
        text = format!("{text}\n  by your past prices: {}", verdict.in_words());
    }
    if let Some(left_out) = left_out {
        text = format!("{text}\n{left_out}");
    }
    Ok(Some(text))
}
