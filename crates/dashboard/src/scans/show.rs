//! `/scans/{id}`: one scan with its progress, grid, items and what can be done with it.

use axum::Router;
use axum::extract::Path;
use axum::response::Response;
use axum::routing::get;
use farescan_sheets::numbers;
use farescan_sheets::strategy;
use farescan_sheets::trip::{self, facts, swept_words, title};
use maud::{Markup, html};
use tokio::time::timeout;

use super::cell::PriceScale;
use super::grid::{self, ScanGrid};
use super::matrix::against_median;
use super::{ALREADY_STARTED, actions, items, new, own_scan, same_as};
use crate::failure::PageFailure;
use crate::form::FormFields;
use crate::layout::{NavItem, page};
use crate::parts::{self, VERDICT_TIMEOUT};
use crate::session::Session;
use farescan_core::app::AppState;
use farescan_core::contract::history_verdict::{HistoryVerdict, PriceClass};
use farescan_core::contract::scans::{Item, PauseReason, Scan, ScanStatus, StrategyProgress};
use farescan_core::ids::TenantId;
use farescan_core::scans;

pub(super) fn routes() -> Router<AppState> {
    Router::new().route("/scans/{id}", get(show))
}

async fn show(
    session: Session,
    Path(id): Path<String>,
    filters: FormFields,
) -> Result<Response, PageFailure> {
    let (tenant, id) = own_scan(&session, &id)?;
    let scan = scans::read::scan(session.pool()?, tenant, id)
        .await?
        .ok_or_else(|| PageFailure::not_found("scan"))?;
    let grid = grid::read(&session, tenant, &scan).await?;
    let items = items::section(&session, tenant, &scan, &filters).await?;
    let mut best = match &scan.best {
        Some(best) => scans::read::item(session.pool()?, tenant, best.item, None).await?,
        None => None,
    };
    let verdict = judge_best(&session, tenant, &scan, best.as_mut_slice()).await;
    let name = title(scan.endpoint, &scan.request, &scan.sweep);
    let body = html! {
        (head(&session, &scan, &name))
        @if filters.text(ALREADY_STARTED).is_some() { (already_started(&scan)) }
        div id="scan-state" data-live class="stack-16" {
            (state_notice(&session, &scan))
            (figures(&scan, grid.as_ref(), best.as_ref(), verdict.as_ref()))
            (progress(&scan))
        }
        @if let Some(grid) = &grid {
            section id="scan-grid" data-live class="card" { (grid.render()) }
        }
        (items)
        (same_as::section(&scan))
    };
    Ok(page(&session, &name, NavItem::Scans, body))
}

/// The verdict on the cheapest price of a scan that has ended, because a live page is read again with
/// each event. `None` also if the history is not read in time.
async fn judge_best(
    session: &Session,
    tenant: TenantId,
    scan: &Scan,
    best: &mut [Item],
) -> Option<HistoryVerdict> {
    scan.finished_at?;
    let judged = async {
        let _permits = session.heavy_read_permits().await?;
        let (pool, history) = (session.pool()?, session.history_pool()?);
        scans::read::judge_items(pool, history, tenant, scan.id, best).await?;
        Ok::<_, PageFailure>(())
    };
    timeout(VERDICT_TIMEOUT, judged).await.ok()?.ok()?;
    let verdict = best.first_mut()?.history_verdict.take()?;
    (verdict.class != PriceClass::Insufficient).then_some(verdict)
}

fn head(session: &Session, scan: &Scan, name: &str) -> Markup {
    html! {
        div id="scan-head" data-live class="head" {
            div {
                h1 { (name) " " (parts::scan_status(scan.status)) }
                p class="sub" {
                    @if let Some(label) = &scan.label { b { (label) } " · " }
                    (facts(scan.endpoint, &scan.request, &scan.sweep).join(" · "))
                    @for tag in &scan.tags { " " a class="chip" href={ "/scans?tag=" (percent(tag)) } { (tag) } }
                }
                p class="sub mono" { (scan.id) }
            }
            div class="actions" { (actions::buttons(session, scan)) }
        }
        @if !scan.status.is_ended() {
            div hidden data-events={ (super::path(scan.id)) "/events" } {}
            noscript { meta http-equiv="refresh" content="15"; }
            p class="hint without-script" {
                "Without JavaScript this page is read again every 15 seconds. "
                a href=(super::path(scan.id)) { "Reload" }
            }
        }
    }
}

/// For who pressed again the button that has started the scan.
fn already_started(scan: &Scan) -> Markup {
    html! {
        div class="notice notice-action" role="status" {
            p {
                b { "This scan was already started " (parts::time(scan.created_at)) ". " }
                "The same button starts no second one."
            }
            div class="actions" { a class="button" href=(new::preview_like(scan.id)) { "Start another" } }
        }
    }
}

fn percent(text: &str) -> String {
    form_urlencoded::byte_serialize(text.as_bytes()).collect()
}

/// What stops the scan or asks for a decision.
fn state_notice(session: &Session, scan: &Scan) -> Markup {
    let undone = scan.items.partial + scan.items.degraded + scan.items.failed;
    html! {
        @if let Some(reason) = scan.status_reason {
            div class="notice warn" {
                b { "Paused: " (trip::words(reason.as_str())) ". " }
                (pause_words(reason))
            }
        } @else if scan.status == ScanStatus::Incomplete && undone > 0 {
            div class="notice warn notice-action" {
                p {
                    b { (numbers::count(undone)) " of " (numbers::count(scan.items.total)) " searches did not complete. " }
                    "They say nothing about prices: whether there is a cheaper one is unknown. Nothing is asked again unless you decide so."
                }
                div class="actions" { (actions::retry_buttons(session, scan)) }
            }
        } @else if scan.status == ScanStatus::Queued {
            div class="notice" { "Stored. It begins as soon as your plan's pace allows." }
        }
    }
}

/// What a pause means and what ends it.
pub(crate) const fn pause_words(reason: PauseReason) -> &'static str {
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

/// Why a scan has no cheapest price.
fn without_price(scan: &Scan) -> &'static str {
    match scan.status {
        ScanStatus::Completed => "nothing on offer",
        ScanStatus::Incomplete | ScanStatus::Cancelled => "no price found",
        ScanStatus::Queued | ScanStatus::Running | ScanStatus::Paused => "no price yet",
    }
}

/// The implausible prices below the cheapest one, of which the lowest is named.
fn left_out(scan: &Scan) -> Option<Markup> {
    let lowest = scan.implausible.first()?;
    let others = scan.implausible.len() - 1;
    Some(html! {
        a href={ "/items/" (lowest.item) } { s { (numbers::amount(lowest.price)) } }
        " is implausible: usually " (numbers::amount(lowest.usual.price))
        @if others > 0 { ", and " (numbers::counted(others.try_into().unwrap_or(u64::MAX), "other")) }
    })
}

fn figures(
    scan: &Scan,
    grid: Option<&ScanGrid>,
    best: Option<&Item>,
    verdict: Option<&HistoryVerdict>,
) -> Markup {
    let scale = grid.map(|grid| PriceScale::of(grid.grid.cells.iter()));
    let swept = best.map(|item| swept_words(scan.endpoint, &item.search, &scan.sweep).join(", "));
    let priced = scan.items.ok + scan.items.partial;
    html! {
        dl class="stats" {
            div class="stat" {
                dt { "Cheapest" }
                @match &scan.best {
                    Some(best) => {
                        dd class="value" {
                            a href={ "/items/" (best.item) } { (numbers::amount(best.price)) } " " small { (best.currency) }
                        }
                        dd class="note" {
                            @if let Some(swept) = swept.filter(|swept| !swept.is_empty()) { b { (swept) } ", " }
                            (scale.as_ref().and_then(against_median).unwrap_or_else(|| "lowest price seen".to_owned()))
                        }
                        @if let Some(verdict) = verdict { dd class="note" { (parts::history_verdict(verdict)) } }
                    }
                    None if !scan.implausible.is_empty() => { dd class="value muted" { "–" } }
                    None => { dd class="value muted" { "–" } dd class="note" { (without_price(scan)) } }
                }
                @if let Some(left_out) = left_out(scan) { dd class="note" { (left_out) } }
            }
            div class="stat" {
                dt { "Searches with a price" }
                dd class="value" { (numbers::count(priced)) " " small { "/ " (numbers::count(scan.items.total)) } }
                dd class="note" { (outcome_note(scan)) }
            }
            div class="stat" {
                dt { "Requests spent" }
                dd class="value" {
                    (numbers::count(scan.requests.spent))
                    @if let Some(max) = scan.requests.max { " " small { "/ " (numbers::count(max)) } }
                }
                dd class="note" {
                    @match scan.requests.max {
                        Some(max) => { "limit " (numbers::count(max)) ", " (numbers::count(scan.requests.planned)) " planned" }
                        None => { (numbers::count(scan.requests.planned)) " planned, no limit set" }
                    }
                    @if let Some(avoided) = scan.requests.avoided {
                        ", " (numbers::counted(avoided.reused + avoided.joined, "answer")) " reused"
                    }
                }
            }
            (time_figure(scan))
        }
    }
}

fn outcome_note(scan: &Scan) -> String {
    let items = &scan.items;
    let parts: Vec<_> = [
        (items.empty, "empty"),
        (items.partial, "partial"),
        (items.degraded, "degraded"),
        (items.failed, "failed"),
        (items.cancelled, "cancelled"),
        (items.pending + items.running, "to do"),
    ]
    .into_iter()
    .filter(|(count, _)| *count > 0)
    .map(|(count, name)| format!("{} {name}", numbers::count(count)))
    .collect();
    if parts.is_empty() {
        "all completed".to_owned()
    } else {
        parts.join(", ")
    }
}

fn time_figure(scan: &Scan) -> Markup {
    let (label, value) = match (scan.started_at, scan.finished_at, scan.eta_seconds) {
        (Some(started), Some(finished), _) => {
            let seconds = finished.duration_since(started).as_secs();
            ("Took", numbers::duration(seconds.unsigned_abs()))
        }
        (_, None, Some(eta)) => ("Time left", format!("about {}", numbers::duration(eta))),
        (..) => ("Time left", "unknown".to_owned()),
    };
    html! {
        div class="stat" {
            dt { (label) }
            dd class="value" { (value) }
            dd class="note" {
                @match (scan.finished_at, scan.started_at) {
                    (Some(finished), _) => { "ended " (parts::time(finished)) }
                    (None, Some(started)) => { "started " (parts::time(started)) }
                    (None, None) => { "created " (parts::time(scan.created_at)) }
                }
            }
        }
    }
}

/// What a strategy has searched, and what it says.
fn strategy_progress(progress: &StrategyProgress) -> Markup {
    match progress {
        StrategyProgress::Find(find) => html! {
            p class="hint" {
                @match &find.below {
                    Some(below) => { "Finds one below " (below.get()) ". " }
                    None => { "Finds the cheapest. " }
                }
                @if let Some(best) = &find.best {
                    "Best: " (numbers::price(best.price, &best.currency)) ", " (best.date) ". "
                }
                (strategy::found(find)) "."
            }
        },
        StrategyProgress::Watch(watch) => html! {
            p class="hint" {
                "Watches " (watch.watch) @if let Some(below) = &watch.below { " " (below.get()) } ". "
                @if let Some(best) = &watch.best {
                    "Best of this run: " (numbers::price(best.price, &best.currency)) ", " (best.date) ". "
                }
                (strategy::watched(watch)) "."
            }
        },
    }
}

/// The progress of a live scan, and of a strategy.
fn progress(scan: &Scan) -> Markup {
    let ended = scan.items.total - scan.items.pending - scan.items.running;
    html! {
        @if !scan.status.is_ended() {
            div class="card progress" {
                progress max="1" value=(scan.progress) aria-label="Share of the searches that have ended" {}
                p {
                    (numbers::count(ended)) " of " (numbers::count(scan.items.total)) " searches"
                    @if scan.items.running > 0 { ", " (numbers::count(scan.items.running)) " in flight" }
                    @if let Some(custody) = scan.key_custody {
                        span class="muted" { " · your key is stored, sealed, until the end, at most until " (parts::time(custody.until)) }
                    }
                }
            }
        }
        @if let Some(strategy) = &scan.strategy {
            (strategy_progress(strategy))
        }
    }
}
