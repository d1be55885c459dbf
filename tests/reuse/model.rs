//! Random scans, single searches, retries, deletions and retention: what is taken is compared with a
//! plain list of all complete answers (scans.md, rule 74; gateway.md, rule 54). `FARESCAN_SEED` repeats
//! a run; `FARESCAN_SOAK=1` makes more of them.

use serde_json::{Value, json};

use super::all_answers::{FLIGHTS, recorded, search};
use super::{check_sum, make_answers_older};
use crate::faults::{is_soak, seed};
use crate::support::reply::Reply;
use crate::support::service::{Rng, TestService, airport_code, day, departing_from, fares, with};
use crate::support::upstream::fare;

const STEPS: usize = 12;
const DATES: usize = 3;
/// The time that a step of waiting takes, and the ages that are asked for, in seconds.
const STEP_SECONDS: u32 = 600;
const AGES: [u32; 3] = [900, 2_000, 3_600];

/// What is sent: searches that are sent alike have the same answers, whoever sends them.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Sent {
    /// By a single search without options.
    Plain,
    /// By a scan, or by a single search that is strict: with this limit.
    Strict(u32),
}

/// A complete answer that is on record.
#[derive(Debug, Clone)]
struct Answer {
    sent: Sent,
    date: usize,
    scan: String,
    item: String,
    age: u32,
    is_empty: bool,
    has_body: bool,
}

/// All complete answers, oldest first.
#[derive(Default)]
struct Model(Vec<Answer>);

impl Model {
    /// A single search needs the answer as it was received; a scan needs no body of an empty one.
    fn newest(&self, sent: Sent, date: usize, max_age: u32, whole: bool) -> Option<&Answer> {
        self.0.iter().rev().find(|answer| {
            (answer.sent, answer.date) == (sent, date)
                && answer.age < max_age
                && (answer.has_body || answer.is_empty && !whole)
        })
    }
}

/// One sequence: of its own product, so that it has nothing to do with the others.
struct Sequence<'a> {
    service: &'a TestService,
    airport: String,
    model: Model,
    scans: Vec<(String, Sent)>,
    rng: &'a mut Rng,
}

impl Sequence<'_> {
    fn pick(&mut self, bound: usize) -> usize {
        usize::try_from(self.rng.below(u64::try_from(bound).unwrap())).unwrap()
    }

    fn age(&mut self) -> u32 {
        AGES[self.pick(AGES.len())]
    }

    /// Adds the complete answers of items that were searched just now.
    fn learn(&mut self, scan: &str, sent: Sent, items: &[Value]) {
        for item in items {
            let status = item["search_status"].as_str().unwrap_or_default();
            if ["ok", "empty"].contains(&status) && item.get("reused_from").is_none() {
                let date = item["search"]["departure_date"].as_str().unwrap();
                self.model.0.push(Answer {
                    sent,
                    date: date[8..].parse().unwrap(),
                    scan: scan.to_owned(),
                    item: item["id"].as_str().unwrap().to_owned(),
                    age: 0,
                    is_empty: status == "empty",
                    has_body: true,
                });
            }
        }
    }

    async fn scan(&mut self) {
        let (limit, dates) = ([50, 5][self.pick(2)], 1 + self.pick(DATES));
        let age = [None, Some(self.age())][self.pick(2)];
        let sent = Sent::Strict(limit);
        let body = with(
            fares(dates),
            &json!({"upstream_limit": limit, "max_age_seconds": age}),
        );
        let body = departing_from(&self.airport, body);
        let before = self.service.upstream.count();
        let id = self.service.submit(&body).await;
        let scan = self.service.wait_until_ended(&id).await;
        let items = self.service.items(&id).await;
        let mut searched = 0;
        for (date, item) in (1..).zip(&items) {
            let expected = age.and_then(|age| self.model.newest(sent, date, age, false));
            searched += usize::from(expected.is_none());
            assert_eq!(
                item.get("reused_item").and_then(Value::as_str),
                expected.map(|answer| answer.item.as_str()),
                "date {date} of {body:#}: {item:#}\n{:#?}",
                self.model.0
            );
        }
        assert_eq!(self.service.upstream.count() - before, searched);
        if age.is_some() {
            check_sum(self.service, &scan).await;
        }
        self.learn(&id, sent, &items);
        self.scans.push((id, sent));
    }

    /// A single search; without an age it is stored because of its caller's setting.
    async fn single(&mut self) {
        let date = 1 + self.pick(DATES);
        let sent = [Sent::Plain, Sent::Strict(50), Sent::Strict(5)][self.pick(3)];
        let age = [None, Some(self.age()), Some(self.age())][self.pick(3)];
        let mut body =
            json!({"from_airport": self.airport, "to_airport": "LHR", "departure_date": day(date)});
        if let Sent::Strict(limit) = sent {
            body = with(body, &json!({"strict": true, "limit": limit}));
        }
        let known = age.and_then(|age| self.model.newest(sent, date, age, true));
        let expected = u64::from(known.is_none());
        let before = recorded(self.service).await;
        let spent = search(self.service, FLIGHTS, &body, age).await;
        assert_eq!(
            spent, expected,
            "{body:#}, age {age:?}\n{:#?}",
            self.model.0
        );
        if recorded(self.service).await > before {
            let newest = "select 'scn_' || replace(scan_id::text, '-', '') from scans where verbatim order by scan_id desc limit 1";
            let id: String = value!(self.service.pool(), newest);
            let items = self.service.items(&id).await;
            self.learn(&id, sent, &items);
            self.scans.push((id, sent));
        }
    }

    async fn retry(&mut self) {
        if self.scans.is_empty() {
            return;
        }
        let at = self.pick(self.scans.len());
        let (id, sent) = self.scans[at].clone();
        let items = self.service.items(&id).await;
        let incomplete = |item: &&Value| item["search_status"] == "partial";
        let again: Vec<_> = items
            .iter()
            .filter(incomplete)
            .map(|item| item["id"].clone())
            .collect();
        // A single search has no key on record to be searched again with.
        let is_single: bool = value!(
            self.service.pool(),
            "select grant_id is null from scans where scan_id = $1::uuid",
            &id[4..]
        );
        if again.is_empty() || is_single {
            return;
        }
        self.service
            .command(&id, "retry", &json!({"search_status": ["partial"]}))
            .await;
        self.service.wait_until_ended(&id).await;
        let mut items = self.service.items(&id).await;
        items.retain(|item| again.contains(&item["id"]));
        self.learn(&id, sent, &items);
    }

    async fn delete(&mut self) {
        if self.scans.is_empty() {
            return;
        }
        let at = self.pick(self.scans.len());
        let (id, _) = self.scans.swap_remove(at);
        self.service
            .delete(&format!("/v1/scans/{id}"))
            .await
            .expect(204);
        self.model.0.retain(|answer| answer.scan != id);
    }

    /// Retention removes the bodies of some answers.
    async fn forget(&mut self) {
        if self.model.0.is_empty() {
            return;
        }
        let at = self.pick(self.model.0.len());
        let answer = &mut self.model.0[at];
        execute!(
            self.service.pool(),
            "delete from answers where item_id = $1::uuid",
            &answer.item[4..]
        );
        answer.has_body = false;
    }

    async fn wait(&mut self) {
        make_answers_older(self.service.pool(), STEP_SECONDS).await;
        for answer in &mut self.model.0 {
            answer.age += STEP_SECONDS;
        }
    }

    async fn play(&mut self) {
        for _ in 0..STEPS {
            match self.pick(11) {
                0..=3 => self.scan().await,
                4..=6 => self.single().await,
                7 => self.retry().await,
                8 => self.delete().await,
                9 => self.forget().await,
                _ => self.wait().await,
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_taken_is_the_newest_of_all_complete_answers() {
    let service = TestService::start().await;
    let worker = service.start_worker(8);
    service.accept_key().await;
    let settings = json!({"record_searches": true});
    service
        .ask("PUT", "/v1/account/settings", Some(&settings))
        .await
        .expect(200);
    let seed = seed();
    let mut replies = Rng(seed);
    service.upstream.answer(move |call| match replies.below(6) {
        0 => Reply::json(json!([])).header("x-search-status", "empty"),
        1 => Reply::json(json!([fare(90, &call.body)]))
            .header("x-search-status", "partial")
            .header("x-search-reason", "search_truncated"),
        _ => Reply::json(json!([fare(100 + replies.below(100), &call.body)])),
    });
    let mut rng = Rng(seed + 1);
    let sequences = if is_soak() { 200 } else { 25 };
    for number in 0..sequences {
        println!("sequence {number}");
        let mut sequence = Sequence {
            service: &service,
            airport: airport_code(number),
            model: Model::default(),
            scans: Vec::new(),
            rng: &mut rng,
        };
        sequence.play().await;
    }
    worker.stop().await;
}
