//! The results of a scan, how it ended, and what to do next.

use std::io::Write as _;

use crate::Failure;
use crate::client::ServiceSession;
use crate::exit::{CommandEnd, ExitStatus};
use crate::export;
use crate::render::sheet;
use crate::scan_table;
use crate::wrap::for_stdout;
use crate::wrap::note;
use farescan_contract::{Item, Scan, ScanStatus, offers};
use farescan_sheets::fare;
use farescan_sheets::scan::{Cheapest, cheapest_figure, line, notice};
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
            let text = scan_table::render(&session.client, scan, session.screen).await?;
            writeln!(out, "{text}")?;
            if let Some(cheapest) = cheapest(session, scan).await? {
                writeln!(out, "{}", for_stdout(&cheapest))?;
            }
            if let Some(strategy) = &scan.strategy {
                writeln!(out, "{}", for_stdout(&strategy::sentence(strategy)))?;
            }
        }
        Form::Lines | Form::Csv => {
            let format = if form == Form::Csv { "csv" } else { "ndjson" };
            let path = format!("/v1/scans/{}/items?format={format}", scan.id);
            export::print(&session.client, &path).await?;
        }
    }
    note!("{}", line(scan));
    match scan.status {
        ScanStatus::Completed | ScanStatus::Queued | ScanStatus::Running => Ok(()),
        ScanStatus::Incomplete | ScanStatus::Paused | ScanStatus::Cancelled => {
            let next = next_step(scan).unwrap_or_else(|| line(scan));
            Err(CommandEnd::with(ExitStatus::Incomplete, next))
        }
    }
}

/// What stops a scan or has ended it, and what to do next.
pub fn next_step(scan: &Scan) -> Option<String> {
    notice(scan).map(|notice| sheet::notice(&notice, scan.id))
}

/// The cheapest item, with the flight or room and the link of its offer.
async fn cheapest(session: &ServiceSession, scan: &Scan) -> Result<Option<String>, Failure> {
    if scan.best.is_none() && scan.implausible.is_empty() {
        return Ok(None);
    }
    let item = best_item(session, scan).await?;
    let answer = item.as_ref().and_then(|item| item.answer.as_ref());
    let offers = answer.map(|answer| offers(scan.endpoint, answer.as_str().as_bytes()));
    let best = scan.best.as_ref().map(|best| best.price);
    let mut offers = offers.into_iter().flatten();
    let offer = offers.find(|offer| Some(offer.price) == best);
    let link = offer.as_ref().and_then(|offer| offer.link.as_deref());
    let fare = answer
        .zip(best)
        .and_then(|(answer, price)| fare::line(scan.endpoint, answer.as_str(), price, link));
    let room = offer
        .as_ref()
        .and_then(|offer| offer.carrier_or_room.as_deref());
    let found = Cheapest {
        item: item.as_ref(),
        offer: fare.as_deref().or(room),
        beside: None,
    };
    let figure = cheapest_figure(scan, found);
    let link = link.map_or_else(String::new, |link| format!("\n  {link}"));
    Ok(Some(format!(
        "{}: {}{link}",
        figure.label,
        sheet::figure(&figure)
    )))
}

/// The item with the lowest price and its answer; without the history the price has no verdict.
async fn best_item(session: &ServiceSession, scan: &Scan) -> Result<Option<Item>, Failure> {
    let Some(best) = &scan.best else {
        return Ok(None);
    };
    let path = format!("/v1/items/{}?expand=answer", best.item);
    let judged = format!("{path}&history_verdict=true");
    let item = match session.client.get(&judged).await {
        Ok(item) => item,
        Err(_) => session.client.get(&path).await?,
    };
    Ok(Some(item))
}
