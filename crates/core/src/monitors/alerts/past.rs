//! Looks up what the stored history says about the prices of a run: which are implausible
//! (monitors.md, rule 84), and for the rules that ask (rules 74 to 78) the past of the prices that
//! they evaluate: all prices of all rules together, each once.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Instant;

use jiff::Timestamp;
use rust_decimal::Decimal;
use sqlx::PgConnection;

use super::rule_key::RuleKey;
use super::rules::{self, RuleSubject, rule_scope};
use super::run_snapshot::RunSnapshot;
use crate::contract::monitors::Rule;
use crate::db;
use crate::history::known_price::KnownPrice;
use crate::history::past_prices::{PastError, PastOfPrice, PastQuestion, past_of_prices};
use crate::ids::{ItemId, ScanId};
use crate::monitors::store::UnevaluatedSlot;
use crate::scans::cells;

/// Items of a run whose requests are in memory at a time: they may be long.
const REQUESTS_AT_A_TIME: usize = 500;

/// A price that an item found, with its currency and time.
type ItemPrice = (ItemId, Decimal, String, Timestamp);

/// Marks the prices of a run that are implausible, if a rule is about prices. If there is no time,
/// or the history cannot be decoded, the run notes it, and its rules see all prices: a missed alert
/// would be worse than one about an error.
pub(super) async fn mark_implausible(
    conn: &mut PgConnection,
    slot: &UnevaluatedSlot,
    scan: ScanId,
    rules: &[(RuleKey, Rule)],
    run: &mut RunSnapshot,
    until: Instant,
) -> sqlx::Result<()> {
    let is_about_prices = |rule: &Rule| {
        let subject = rules::of(rule).subject();
        !matches!(subject, RuleSubject::Answers | RuleSubject::Plan)
    };
    if !rules.iter().any(|(_, rule)| is_about_prices(rule)) {
        return Ok(());
    }
    let question = PastQuestion {
        plausibility: true,
        ..PastQuestion::default()
    };
    let prices = run.found_prices();
    match read_past(conn, slot, scan, run, &question, &prices, until).await? {
        Some(past) => {
            let implausible = past
                .into_iter()
                .filter(|(_, past)| past.implausible.is_some());
            run.set_implausible(&implausible.map(|(item, _)| item).collect());
        }
        None => run.is_plausibility_unread = true,
    }
    Ok(())
}

/// Reads the past of the prices that the rules evaluate, as it was before the run. Rules that do
/// not ask cost nothing. If there is no time, or the history cannot be decoded, the run notes it:
/// to try again for ever would block the slots after it.
pub(super) async fn look_up(
    conn: &mut PgConnection,
    slot: &UnevaluatedSlot,
    scan: ScanId,
    rules: &[(RuleKey, Rule)],
    run: &mut RunSnapshot,
    until: Instant,
) -> sqlx::Result<()> {
    let mut question = PastQuestion::default();
    let mut scopes = BTreeSet::new();
    for (_, rule) in rules {
        if let Some(need) = rules::of(rule).past() {
            need.add_to(&mut question);
            scopes.insert(rule_scope(rule));
        }
    }
    let prices: BTreeMap<_, _> = scopes
        .into_iter()
        .flat_map(|scope| run.evaluated_prices(scope))
        .map(|price| (price.location, price))
        .collect();
    let found = prices.into_values().map(|price| {
        let item = run.item_of(&price);
        (item, price.amount, price.currency, price.at)
    });
    let found: Vec<_> = found.collect();
    match read_past(conn, slot, scan, run, &question, &found, until).await? {
        Some(past) => run.set_past(past),
        None => run.is_past_unread = true,
    }
    Ok(())
}

/// The past of some prices of a run; `None` if it could not be read in time or not be decoded.
async fn read_past(
    conn: &mut PgConnection,
    slot: &UnevaluatedSlot,
    scan: ScanId,
    run: &RunSnapshot,
    question: &PastQuestion,
    prices: &[ItemPrice],
    until: Instant,
) -> sqlx::Result<Option<Vec<(ItemId, PastOfPrice)>>> {
    if prices.is_empty() {
        return Ok(Some(Vec::new()));
    }
    let endpoint = run.cells.endpoint;
    let began = run.cells.created_at;
    let (mut items, mut asked) = (Vec::new(), Vec::new());
    for prices in prices.chunks(REQUESTS_AT_A_TIME) {
        let of_chunk: Vec<_> = prices.iter().map(|(item, ..)| *item).collect();
        let subjects = cells::subjects(conn, slot.tenant, scan, endpoint, &of_chunk).await?;
        let known = prices.iter().filter_map(|(item, price, currency, at)| {
            let known = KnownPrice::of(subjects.get(item)?, *price, currency, *at)?;
            // An answer that was reused is older than the run.
            let before = began.min(*at);
            Some((*item, KnownPrice { before, ..known }))
        });
        let (found, known): (Vec<_>, Vec<_>) = known.unzip();
        items.extend(found);
        asked.extend(known);
    }
    let mut reading = db::begin_reading(conn, until).await?;
    let past = past_of_prices(&mut reading, slot.tenant, question, &asked, Some(until)).await;
    reading.rollback().await?;
    match past {
        Ok(past) => Ok(Some(items.into_iter().zip(past).collect())),
        Err(PastError::Database(error)) if !is_unreadable(&error) => Err(error),
        Err(error) => {
            tracing::error!(monitor = %slot.monitor, %error, "reading the past of prices failed");
            Ok(None)
        }
    }
}

/// Whether a later attempt would fail in the same way: what is stored cannot be decoded, or takes too
/// long to read.
fn is_unreadable(error: &sqlx::Error) -> bool {
    matches!(
        error,
        sqlx::Error::Decode(_) | sqlx::Error::ColumnDecode { .. }
    ) || db::is_cancelled(error)
}
