//! Looks up what the stored history says about the prices of a run, for the rules that ask
//! (monitors.md, rules 74 to 78): all prices of all rules together, each once.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Instant;

use sqlx::PgConnection;

use super::evaluation::rule_scope;
use super::rule_key::RuleKey;
use super::rule_traits::{PastNeed, RuleTraits};
use super::run_snapshot::{LowestPrice, RunSnapshot};
use crate::contract::monitors::Rule;
use crate::db;
use crate::history::past_prices::{KnownPrice, PastError, PastQuestion, past_of_prices};
use crate::ids::ScanId;
use crate::monitors::store::UnevaluatedSlot;
use crate::scans::cells;

/// Reads the past of the prices that the rules evaluate, as it was before the run. Rules that do
/// not ask cost nothing. If there is no time, or the history cannot be decoded, the run notes it:
/// to try again for ever would block the slots after it.
///
/// # Errors
/// When the database fails.
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
        match RuleTraits::of(rule).past {
            Some(PastNeed::Verdict) => question.verdicts = true,
            Some(PastNeed::LowestOfDays(days)) => question.lowest_of_days.push(days),
            Some(PastNeed::LastAnswer) => question.last_answer = true,
            None => continue,
        }
        scopes.insert(rule_scope(rule));
    }
    let prices: BTreeMap<_, _> = scopes
        .into_iter()
        .flat_map(|scope| run.evaluated_prices(scope))
        .map(|price| (price.location, price))
        .collect();
    let prices: Vec<_> = prices.into_values().collect();
    if prices.is_empty() {
        return Ok(());
    }
    let items: Vec<_> = prices.iter().map(|price| run.item_of(price)).collect();
    let endpoint = run.cells.endpoint;
    let mut subjects = cells::subjects(conn, slot.tenant, scan, endpoint, &items).await?;
    let began = run.cells.created_at;
    let mut known = |price: &LowestPrice, item| {
        let subject = subjects.remove(&item)?;
        // The history of a product has prices in its currency only.
        (subject.series.currency == price.currency).then(|| KnownPrice {
            subject,
            price: price.amount,
            seen_at: price.at,
            // An answer that was reused is older than the run.
            before: began.min(price.at),
        })
    };
    let asked = prices.iter().zip(items);
    let (items, asked): (Vec<_>, Vec<_>) = asked
        .filter_map(|(price, item)| Some((item, known(price, item)?)))
        .unzip();
    let mut reading = db::begin_reading(conn, until).await?;
    let past = past_of_prices(&mut reading, slot.tenant, &question, &asked, Some(until)).await;
    reading.rollback().await?;
    match past {
        Ok(past) => run.set_past(items.into_iter().zip(past)),
        Err(PastError::Database(error)) if !is_unreadable(&error) => return Err(error),
        Err(error) => {
            tracing::error!(monitor = %slot.monitor, %error, "reading the past of prices failed");
            run.set_past_unread();
        }
    }
    Ok(())
}

/// Whether a later attempt would fail in the same way: what is stored cannot be decoded, or takes too
/// long to read.
fn is_unreadable(error: &sqlx::Error) -> bool {
    matches!(error, sqlx::Error::Decode(_)) || db::is_cancelled(error)
}
