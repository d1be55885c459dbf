//! Every tenant condition is taken out in turn, and every time the acts must notice.
//!
//! Where a statement runs is known from a first play of each act, so that a removal plays only the acts that can notice it, one after the
//! other, beside each twin. `FARESCAN_ISOLATION=all` plays every removal, else it is one in five; `FARESCAN_WITHOUT=<number>` plays that one.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::sync::Arc;
use std::time::Instant;

use futures::StreamExt as _;

use super::acts::{ACTS, Act};
use super::conditions::{conditions, unread};
use super::statements::{Statement, definitions, queries, reached};
use super::twin::Twin;
use super::world::{Beginnings, Note, Without, World};
use crate::support::db::TestDb;

/// How many removals are played at the same time.
const AT_ONCE: usize = 3;

/// Without `FARESCAN_ISOLATION=all`, one removal in so many is played.
const SAMPLE: usize = 5;

/// Removals that no act can notice, and why. Each must exist.
const UNSEEN: &[(&str, &str, &str)] = &[
    (
        "select g.tenant_id, g.grant_id, s.scan_id",
        "s.tenant_id = g.tenant_id",
        "the sweep would be told of a wrong scan too, and hold_scan looks again under its lock: a scan whose key is held is not paused",
    ),
    (
        "select i.item_id, s.endpoint, i.body from scan_items i join scans s",
        "s.tenant_id = i.tenant_id",
        "the same item once more under another's endpoint, where it has seen nothing that could be forgotten",
    ),
    (
        "select from tenant_keys where (key_id, fingerprint) in",
        "tenant_id = $3",
        "a key that passes on to another tenant between two statements of one request: a race, not a state",
    ),
];

/// One tenant condition that is taken out.
struct Removal {
    without: Without,
    condition: String,
}

/// An act as it is played beside each twin.
struct Known {
    act: &'static Act,
    beside: Vec<(Twin, Arc<Vec<Note>>)>,
    /// The names of the statements that it runs.
    runs: BTreeSet<String>,
}

async fn all_statements() -> Vec<Statement> {
    let db = TestDb::new().await;
    let mut all = queries();
    all.extend(definitions(db.pool()).await);
    all
}

fn removals(statements: &[Statement]) -> Vec<Removal> {
    let of = |statement: &Statement| {
        let conditions = conditions(&statement.sql);
        conditions
            .into_iter()
            .map(|condition| Removal {
                without: Without { statement: statement.clone(), text: condition.taken_out(&statement.sql) },
                condition: condition.text,
            })
            .collect::<Vec<_>>()
    };
    statements.iter().flat_map(of).collect()
}

/// Plays an act without the twin and beside it: the twin changes nothing, and nothing changes the twin.
async fn known(from: &Beginnings, act: &'static Act, statements: &[Statement]) -> Known {
    let mut alone = World::open(from, None, None, None).await;
    (act.play)(&mut alone).await.unwrap_or_else(|noticed| panic!("{}: {}", act.name, noticed.0));
    let prepared = alone.wire.prepared();
    let alone = alone.notes();
    let mut beside = Vec::new();
    for side in Twin::ALL {
        let mut world = World::open(from, Some(side), None, None).await;
        (act.play)(&mut world).await.unwrap_or_else(|noticed| panic!("{}, {side:?}: {}", act.name, noticed.0));
        let notes = world.notes();
        assert_eq!(notes.len(), alone.len(), "{}", act.name);
        for (note, noted) in notes.iter().zip(&alone) {
            if let Some(told) = note.differs(noted) {
                panic!("beside the twin ({side:?}), {}, {}: {told}", act.name, note.step);
            }
        }
        beside.push((side, Arc::new(notes)));
    }
    let is_run = |statement: &&Statement| prepared.contains(&statement.sql);
    let mut runs: BTreeSet<String> = statements.iter().filter(is_run).map(|statement| statement.name.clone()).collect();
    for text in &prepared {
        runs.extend(reached(text, statements).into_iter().map(str::to_owned));
    }
    // Triggers run by themselves.
    runs.extend(statements.iter().filter(|one| one.sql.contains("RETURNS trigger")).map(|one| one.name.clone()));
    Known { act, beside, runs }
}

/// How a removal was noticed; `Err`: it was not.
async fn noticed(from: &Beginnings, known: &[Known], removal: &Removal) -> Result<String, String> {
    let mut played = Vec::new();
    for (place, twin) in Twin::ALL.into_iter().enumerate() {
        for known in known.iter().filter(|known| known.runs.contains(&removal.without.statement.name)) {
            let expected = Arc::clone(&known.beside[place].1);
            let mut world = World::open(from, Some(twin), Some(&removal.without), Some(expected)).await;
            if let Err(noticed) = (known.act.play)(&mut world).await {
                return Ok(format!("{}: {}", known.act.name, noticed.0));
            }
            played.push(known.act.name);
        }
    }
    Err(if played.is_empty() { "no act runs it".to_owned() } else { format!("not noticed by {}", played.join(", ")) })
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "it plays the acts hundreds of times: script/isolation runs it"]
async fn no_tenant_condition_can_be_taken_out_unnoticed() {
    let begun = Instant::now();
    let statements = all_statements().await;
    let strange: Vec<_> = statements.iter().flat_map(|statement| unread(&statement.sql)).collect();
    assert!(strange.is_empty(), "write these as equalities, so that they can be taken out: {strange:#?}");
    let all = removals(&statements);
    let from = Box::pin(Beginnings::make()).await;
    let acts = futures::stream::iter(ACTS).map(|act| known(&from, act, &statements)).buffered(AT_ONCE).collect::<Vec<_>>().await;
    println!("{} acts are known after {:?}", acts.len(), begun.elapsed());

    let only: Option<usize> = std::env::var("FARESCAN_WITHOUT").ok().map(|number| number.parse().unwrap());
    let step = if std::env::var("FARESCAN_ISOLATION").is_ok_and(|form| form == "all") { 1 } else { SAMPLE };
    let is_chosen = |number: usize| only.map_or(number.is_multiple_of(step), |only| only == number);
    let chosen = all.iter().enumerate().filter(|(number, _)| is_chosen(*number));
    let results = futures::stream::iter(chosen)
        .map(|(number, removal)| {
            let (from, acts) = (&from, &acts);
            async move {
                let result = noticed(from, acts, removal).await;
                if let Err(why) = &result {
                    println!("{number} {} {}: {why}", removal.without.statement.name, removal.condition);
                }
                (number, removal, result)
            }
        })
        .buffered(AT_ONCE)
        .collect::<Vec<_>>()
        .await;

    let (mut table, mut survived) = (String::new(), Vec::new());
    for (number, removal, result) in &results {
        let told = match result {
            Ok(how) => format!("noticed   {how}"),
            Err(why) => format!("SURVIVED  {why}"),
        };
        let name = &removal.without.statement.name;
        writeln!(table, "{number:4} {name:28} {:44} {told}", removal.condition).unwrap();
        let is_it =
            |(words, condition, _): &(&str, &str, &str)| removal.without.statement.is(words) && *condition == removal.condition;
        let excused = UNSEEN.iter().any(is_it);
        match result {
            Err(why) if !excused => survived.push(format!("{number} {name} {}: {why}", removal.condition)),
            Ok(_) if excused => {
                survived.push(format!(
                    "{number} {name} {}: it is noticed, and is on the list of those that are not",
                    removal.condition
                ));
            }
            _ => {}
        }
    }
    println!("{table}\n{} removals of {} in {:?}, {} survived", results.len(), all.len(), begun.elapsed(), survived.len());
    for (words, condition, _) in UNSEEN {
        let is_held = |removal: &Removal| removal.without.statement.is(words) && removal.condition == *condition;
        assert!(all.iter().any(is_held), "{words} has no {condition} any more");
    }
    assert!(survived.is_empty(), "nothing would notice if these were missing: {survived:#?}");
}
