//! Every tenant condition is taken out in turn, and every time the acts must notice.
//!
//! Where a removal was noticed, by which act and beside which twin, is on record in `noticed.tsv` ([`super::record`]). The record is what
//! makes two forms of one proof:
//!
//! * the long form (`script/isolation`) plays every removal, first where the record says, then wherever its statement runs, and writes
//!   the record anew;
//! * the short form, with the ordinary tests, holds that the record knows every condition that there is, so that no statement is added
//!   or changed without the long form, and plays one removal of each act.
//!
//! Where a statement runs is known from a first play of each act, so that a removal plays only the acts that can notice it, one after the
//! other, beside each twin.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};
use std::time::Instant;

use futures::StreamExt as _;
use tokio::sync::OnceCell;

use super::acts::{ACTS, Act};
use super::conditions::{conditions, unread};
use super::record::{Place, Record};
use super::statements::{Statement, definitions, queries, reached};
use super::twin::Twin;
use super::world::{Beginnings, Note, Without, World};
use crate::support::db::TestDb;

/// How many removals are played at the same time.
const AT_ONCE: usize = 4;

/// One tenant condition that is taken out.
pub struct Removal {
    pub without: Without,
    /// What the record calls it: the statement with a digest of its text, which of its conditions, and the condition.
    pub key: String,
}

/// All statements, and every removal of a tenant condition from one of them, in their order.
pub async fn all() -> (Vec<Statement>, Vec<Removal>) {
    let db = TestDb::new().await;
    let mut statements = queries();
    statements.extend(definitions(db.pool()).await);
    let of = |statement: &Statement| {
        let conditions = conditions(&statement.sql).into_iter().enumerate();
        conditions
            .map(|(place, condition)| {
                let text = one_line(&condition.text);
                Removal {
                    without: Without {
                        statement: statement.clone(),
                        text: condition.taken_out(&statement.sql),
                    },
                    key: format!("{} {} {text}", statement.digest(), place + 1),
                }
            })
            .collect::<Vec<_>>()
    };
    let removals = statements.iter().flat_map(of).collect();
    (statements, removals)
}

/// An act as it is played with nothing taken out: once alone, once beside each twin, each when it is first asked for.
struct Known<'a> {
    act: &'static Act,
    from: &'a Beginnings,
    statements: &'a [Statement],
    alone: OnceCell<(Vec<Note>, BTreeSet<String>)>,
    beside: [OnceCell<Arc<Vec<Note>>>; Twin::ALL.len()],
}

impl<'a> Known<'a> {
    fn all(from: &'a Beginnings, statements: &'a [Statement]) -> Vec<Self> {
        let of = |act| Self {
            act,
            from,
            statements,
            alone: OnceCell::new(),
            beside: Default::default(),
        };
        ACTS.iter().map(of).collect()
    }

    /// What is noted without a twin, and the names of the statements that run.
    async fn alone(&self) -> &(Vec<Note>, BTreeSet<String>) {
        let play = || async {
            let mut world = World::open(self.from, None, None, None).await;
            (self.act.play)(&mut world)
                .await
                .unwrap_or_else(|noticed| panic!("{}: {}", self.act.name, noticed.0));
            let prepared = world.wire.prepared();
            let is_run = |statement: &&Statement| prepared.contains(&statement.sql);
            let mut runs: BTreeSet<String> = self
                .statements
                .iter()
                .filter(is_run)
                .map(|statement| statement.name.clone())
                .collect();
            for text in &prepared {
                runs.extend(
                    reached(text, self.statements)
                        .into_iter()
                        .map(str::to_owned),
                );
            }
            // Triggers run by themselves.
            let triggers = self
                .statements
                .iter()
                .filter(|one| one.sql.contains("RETURNS trigger"));
            runs.extend(triggers.map(|one| one.name.clone()));
            (world.end().await, runs)
        };
        self.alone.get_or_init(play).await
    }

    async fn runs(&self, statement: &Statement) -> bool {
        self.alone().await.1.contains(&statement.name)
    }

    /// What is noted beside a twin: the same, because the twin changes nothing, and nothing changes the twin.
    async fn beside(&self, twin: Twin) -> Arc<Vec<Note>> {
        let name = self.act.name;
        let play = || async {
            let (alone, _) = self.alone().await;
            let mut world = World::open(self.from, Some(twin), None, None).await;
            (self.act.play)(&mut world)
                .await
                .unwrap_or_else(|noticed| panic!("{name}, {twin:?}: {}", noticed.0));
            let notes = world.end().await;
            assert_eq!(notes.len(), alone.len(), "{name}");
            for (note, noted) in notes.iter().zip(alone) {
                if let Some(told) = note.differs(noted) {
                    panic!("beside the twin ({twin:?}), {name}, {}: {told}", note.step);
                }
            }
            Arc::new(notes)
        };
        Arc::clone(self.beside[twin as usize].get_or_init(play).await)
    }

    /// Plays the act without a condition: what was noticed.
    async fn play_without(&self, twin: Twin, without: &Without) -> Option<String> {
        let expected = self.beside(twin).await;
        let mut world = World::open(self.from, Some(twin), Some(without), Some(expected)).await;
        let noticed = (self.act.play)(&mut world)
            .await
            .err()
            .map(|noticed| noticed.0);
        world.end().await;
        noticed
    }
}

/// How a removal was noticed: where, and what was seen.
type Notice = (Place, String);

/// Removals as they are played.
struct Play<'a> {
    known: Vec<Known<'a>>,
    record: Record,
    /// Where removals of a statement were noticed so far: others of it are likely to be noticed there too.
    lately: Mutex<BTreeMap<String, Vec<Place>>>,
}

impl<'a> Play<'a> {
    fn new(from: &'a Beginnings, statements: &'a [Statement], record: Record) -> Self {
        Self {
            known: Known::all(from, statements),
            record,
            lately: Mutex::default(),
        }
    }

    /// Where a removal may be noticed, the likeliest first.
    async fn places(&self, removal: &Removal) -> Vec<Place> {
        let statement = &removal.without.statement;
        let on_record = self.record.get(&removal.key);
        let mut places: Vec<Place> = on_record.into_iter().collect();
        places.extend(
            self.lately
                .lock()
                .unwrap()
                .get(&statement.name)
                .into_iter()
                .flatten()
                .copied(),
        );
        for twin in Twin::ALL {
            for known in &self.known {
                if known.runs(statement).await {
                    places.push(Place {
                        act: known.act.name,
                        twin,
                    });
                }
            }
        }
        let mut seen = BTreeSet::new();
        places.retain(|place| seen.insert(*place));
        places
    }

    async fn at(&self, place: Place, removal: &Removal) -> Option<Notice> {
        let known = self
            .known
            .iter()
            .find(|known| known.act.name == place.act)?;
        let told = known.play_without(place.twin, &removal.without).await?;
        Some((place, told))
    }

    /// How a removal was noticed; `Err`: where it was not.
    async fn noticed(&self, removal: &Removal) -> Result<Notice, String> {
        // Where the record says, nothing else needs to be known.
        if let Some(place) = self.record.get(&removal.key)
            && let Some(notice) = self.at(place, removal).await
        {
            return Ok(notice);
        }
        let places = self.places(removal).await;
        for place in &places {
            if let Some(notice) = self.at(*place, removal).await {
                let mut lately = self.lately.lock().unwrap();
                lately
                    .entry(removal.without.statement.name.clone())
                    .or_default()
                    .insert(0, *place);
                return Ok(notice);
            }
        }
        let names: BTreeSet<_> = places.iter().map(|place| place.act).collect();
        let names = names.into_iter().collect::<Vec<_>>().join(", ");
        Err(if names.is_empty() {
            "no act runs it".to_owned()
        } else {
            format!("not noticed by {names}")
        })
    }
}

/// Which removals are played.
enum Chosen {
    All,
    /// Those that are not on record.
    New,
    /// `17`, or `17,20-30`.
    These(String),
}

impl Chosen {
    fn from_env() -> Self {
        match std::env::var("FARESCAN_WITHOUT") {
            Err(_) => Self::All,
            Ok(word) if word == "new" => Self::New,
            Ok(numbers) => Self::These(numbers),
        }
    }

    fn numbers(&self, removals: &[Removal], record: &Record) -> Vec<usize> {
        let all = 0..removals.len();
        match self {
            Self::All => all.collect(),
            Self::New => all
                .filter(|number| record.get(&removals[*number].key).is_none())
                .collect(),
            Self::These(numbers) => {
                let range = |part: &str| {
                    let (first, last) = part.split_once('-').unwrap_or((part, part));
                    first.parse::<usize>().unwrap()..=last.parse::<usize>().unwrap()
                };
                let ranges: Vec<_> = numbers.split(',').map(range).collect();
                all.filter(|number| ranges.iter().any(|range| range.contains(number)))
                    .collect()
            }
        }
    }
}

/// Removals that no act notices yet, or that were not tried yet, by their keys (`unnoticed.txt`). `script/isolation new` tries them again. The
/// list is to be emptied: a key that is neither here nor on record fails.
fn unnoticed() -> BTreeSet<String> {
    include_str!("unnoticed.txt")
        .lines()
        .map(str::to_owned)
        .collect()
}

fn every_form_is_known(statements: &[Statement]) {
    let strange: Vec<_> = statements
        .iter()
        .flat_map(|statement| unread(&statement.sql))
        .collect();
    assert!(
        strange.is_empty(),
        "write these as equalities, so that they can be taken out: {strange:#?}"
    );
}

#[tokio::test]
async fn every_tenant_condition_is_on_record() {
    let (statements, removals) = all().await;
    every_form_is_known(&statements);
    let record = Record::read();
    let unnoticed = unnoticed();
    let is_tried = |key: &&String| record.get(key).is_some() || unnoticed.contains(*key);
    let unknown: Vec<_> = removals
        .iter()
        .map(|removal| &removal.key)
        .filter(|key| !is_tried(key))
        .collect();
    let is_gone = |key: &&str| !removals.iter().any(|removal| removal.key == **key);
    let gone: Vec<_> = record
        .keys()
        .chain(unnoticed.iter().map(String::as_str))
        .filter(is_gone)
        .collect();
    println!(
        "{} removals, of which {} are not noticed, or not tried, yet",
        removals.len(),
        unnoticed.len()
    );
    assert!(
        unknown.is_empty() && gone.is_empty(),
        "whether these tenant conditions are needed was not tried: {unknown:#?}\nand these are no more: {gone:#?}\n\
         `script/isolation new` tries them; if nothing notices, an act is missing in tests/isolation/acts"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn of_each_act_one_removal_is_noticed_where_the_record_says() {
    let begun = Instant::now();
    let (statements, removals) = all().await;
    let record = Record::read();
    let mut sample = BTreeMap::new();
    for removal in &removals {
        if let Some(place) = record.get(&removal.key) {
            sample.entry(place.act).or_insert((place, removal));
        }
    }
    let from = Box::pin(Beginnings::make()).await;
    let play = Play::new(&from, &statements, record);
    let played = sample.values().map(|(place, removal)| {
        let play = &play;
        async move { (place, removal, play.at(*place, removal).await) }
    });
    let results = futures::stream::iter(played)
        .buffer_unordered(AT_ONCE)
        .collect::<Vec<_>>()
        .await;
    let missed: Vec<_> = results
        .iter()
        .filter(|(.., noticed)| noticed.is_none())
        .map(|(at, one, _)| (at, &one.key))
        .collect();
    println!(
        "{} removals of {}, one of each act, in {:.0?}",
        results.len(),
        removals.len(),
        begun.elapsed()
    );
    assert!(results.len() >= 10, "the record knows few acts");
    assert!(missed.is_empty(), "these were noticed once: {missed:#?}");
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "it plays every act beside every twin: script/isolation runs it"]
async fn where_nothing_is_taken_out_nothing_is_noticed() {
    let (statements, _) = all().await;
    let from = Box::pin(Beginnings::make()).await;
    let acts = Known::all(&from, &statements);
    // A function and a query, made anew as they were.
    let whole = |name: &str| {
        let statement = statements
            .iter()
            .find(|one| one.name.starts_with(name))
            .unwrap();
        Without {
            statement: statement.clone(),
            text: statement.sql.clone(),
        }
    };
    let plays = acts
        .iter()
        .flat_map(|act| Twin::ALL.map(|twin| (act, twin)));
    let plays = plays
        .zip([whole("function "), whole("query ")].into_iter().cycle())
        .map(async |((act, twin), whole)| {
            if let Some(told) = act.play_without(twin, &whole).await {
                panic!("{} beside {}: {told}", act.act.name, twin.word());
            }
        });
    let played = futures::stream::iter(plays)
        .buffer_unordered(AT_ONCE)
        .count()
        .await;
    println!(
        "{played} plays with nothing taken out, {} acts, nothing was noticed",
        ACTS.len()
    );
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "it plays the acts hundreds of times: script/isolation runs it"]
async fn no_tenant_condition_can_be_taken_out_unnoticed() {
    let begun = Instant::now();
    let (statements, removals) = all().await;
    every_form_is_known(&statements);
    let (chosen, record) = (Chosen::from_env(), Record::read());
    let numbers = chosen.numbers(&removals, &record);
    let from = Box::pin(Beginnings::make()).await;
    let play = Play::new(&from, &statements, record);
    let results = futures::stream::iter(numbers)
        .map(|number| {
            let (play, removal) = (&play, &removals[number]);
            async move {
                let result = play.noticed(removal).await;
                let told = match &result {
                    Ok((place, told)) => format!("noticed   {place}: {told}"),
                    Err(why) => format!("SURVIVED  {why}"),
                };
                // While it is played: it takes minutes.
                println!(
                    "{number:4} {:>5.0?} {} {}",
                    begun.elapsed(),
                    removal.key,
                    one_line(&told)
                );
                (removal, result)
            }
        })
        .buffer_unordered(AT_ONCE)
        .collect::<Vec<_>>()
        .await;

    let unnoticed = unnoticed();
    let (mut noticed, mut survived) = (Record::default(), Vec::new());
    for (removal, result) in &results {
        match result {
            Ok((place, _)) => noticed.put(&removal.key, *place),
            Err(_) if unnoticed.contains(&removal.key) => {}
            Err(why) => survived.push(format!("{}: {why}", removal.key)),
        }
    }
    println!(
        "{} removals of {} in {:.0?}: {} noticed, {} survived",
        results.len(),
        removals.len(),
        begun.elapsed(),
        noticed.len(),
        survived.len(),
    );
    match chosen {
        Chosen::These(_) => {}
        Chosen::All => noticed.write(),
        Chosen::New => {
            let mut record = play.record;
            record.retain(|key| removals.iter().any(|removal| removal.key == key));
            record.extend(noticed);
            record.write();
        }
    }
    assert!(
        survived.is_empty(),
        "nothing would notice if these were missing: {survived:#?}"
    );
}

fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}
