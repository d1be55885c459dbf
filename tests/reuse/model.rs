//! Random scans, single searches, retries, deletions and retention: what is taken is compared with a
//! plain list of all complete answers (scans.md, rule 74; gateway.md, rule 54).

use serde_json::{Value, json};

use super::all_answers::search;
use super::check_sum;
use crate::support::reply::Reply;
use crate::support::service::{Rng, TestService, fares, with};
use crate::support::upstream::fare;

const STEPS: usize = 60;
const DATES: usize = 3;
/// The time that a step of waiting takes, and the ages that are asked for, in seconds.
const STEP_SECONDS: u32 = 600;
const AGES: [u32; 3] = [900, 2_000, 3_600];

#[derive(Debug, Clone, Copy, PartialEq)]
enum Kind {
    Single,
    Scan(Option<u32>),
}

/// A complete answer that is on record.
#[derive(Debug, Clone)]
struct Answer {
    kind: Kind,
    date: usize,
    scan: String,
    item: String,
    age: u32,
    is_stored: bool,
}

/// All complete answers, oldest first.
#[derive(Default)]
struct Model(Vec<Answer>);

impl Model {
    fn newest(&self, kind: Kind, date: usize, max_age: u32) -> Option<&Answer> {
        self.0.iter().rev().find(|answer| {
            answer.kind == kind && answer.date == date && answer.is_stored && answer.age < max_age
        })
    }
}

struct Run {
    service: TestService,
    model: Model,
    scans: Vec<(String, Kind)>,
    rng: Rng,
}

impl Run {
    fn pick(&mut self, bound: usize) -> usize {
        usize::try_from(self.rng.below(u64::try_from(bound).unwrap())).unwrap()
    }

    fn kind(&mut self) -> Kind {
        [Kind::Scan(None), Kind::Scan(Some(5))][self.pick(2)]
    }

    /// Adds the complete answers of items that were searched just now.
    fn learn(&mut self, scan: &str, kind: Kind, items: &[Value]) {
        for item in items {
            if ["ok", "empty"].contains(&item["search_status"].as_str().unwrap_or_default())
                && item.get("reused_from").is_none()
            {
                let date = item["search"]["departure_date"].as_str().unwrap();
                self.model.0.push(Answer {
                    kind,
                    date: date[8..].parse().unwrap(),
                    scan: scan.to_owned(),
                    item: item["id"].as_str().unwrap().to_owned(),
                    age: 0,
                    is_stored: true,
                });
            }
        }
    }

    async fn scan(&mut self) {
        let (kind, dates) = (self.kind(), 1 + self.pick(DATES));
        let age = [None, Some(AGES[self.pick(AGES.len())])][self.pick(2)];
        let mut body = fares(dates);
        if let Kind::Scan(Some(limit)) = kind {
            body = with(body, &json!({"upstream_limit": limit}));
        }
        if let Some(age) = age {
            body = with(body, &json!({"max_age_seconds": age}));
        }
        let before = self.service.upstream.count();
        let id = self.service.submit(&body).await;
        let scan = self.service.wait_until_ended(&id).await;
        let items = self.service.items(&id).await;
        let mut searched = 0;
        for (date, item) in (1..).zip(&items) {
            let expected = age.and_then(|age| self.model.newest(kind, date, age));
            searched += usize::from(expected.is_none());
            assert_eq!(
                item.get("reused_item").and_then(Value::as_str),
                expected.map(|answer| answer.item.as_str()),
                "date {date} of {body:#}: {item:#}"
            );
        }
        assert_eq!(self.service.upstream.count() - before, searched);
        if age.is_some() {
            check_sum(&self.service, &scan).await;
        }
        self.learn(&id, kind, &items);
        self.scans.push((id, kind));
    }

    async fn single(&mut self) {
        let (date, age) = (1 + self.pick(DATES), AGES[self.pick(AGES.len())]);
        let expected = self.model.newest(Kind::Single, date, age).is_none();
        let spent = search(&self.service, date, age).await;
        assert_eq!(spent, u64::from(expected), "date {date}, age {age}");
        if expected {
            let newest = "select 'scn_' || replace(scan_id::text, '-', '') from scans where verbatim order by scan_id desc limit 1";
            let id: String = value!(self.service.pool(), newest);
            let items = self.service.items(&id).await;
            self.learn(&id, Kind::Single, &items);
            self.scans.push((id, Kind::Single));
        }
    }

    async fn retry(&mut self) {
        let scans: Vec<_> = self
            .scans
            .iter()
            .filter(|(_, kind)| *kind != Kind::Single)
            .cloned()
            .collect();
        if scans.is_empty() {
            return;
        }
        let (id, kind) = scans[self.pick(scans.len())].clone();
        let open = |item: &&Value| {
            ["partial", "degraded"].contains(&item["search_status"].as_str().unwrap())
        };
        let again: Vec<_> = self
            .service
            .items(&id)
            .await
            .iter()
            .filter(open)
            .map(|item| item["id"].clone())
            .collect();
        if again.is_empty() {
            return;
        }
        let which = json!({"search_status": ["partial", "degraded"]});
        self.service.command(&id, "retry", &which).await;
        self.service.wait_until_ended(&id).await;
        let items = self.service.items(&id).await;
        let items: Vec<_> = items
            .into_iter()
            .filter(|item| again.contains(&item["id"]))
            .collect();
        self.learn(&id, kind, &items);
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
        // One that is empty needs no body.
        let status = "select search_status from scan_items where item_id = $1::uuid";
        let status: String = value!(self.service.pool(), status, &answer.item[4..]);
        answer.is_stored &= status == "empty";
    }

    async fn wait(&mut self) {
        for (table, column) in [
            ("observations", "observed_at"),
            ("latest_prices", "observed_at"),
            ("latest_prices", "sampled_at"),
            ("answers", "observed_at"),
            ("scan_items", "observed_at"),
            ("attempts", "ended_at"),
        ] {
            let sql = format!(
                "update {table} set {column} = {column} - make_interval(secs => {STEP_SECONDS})"
            );
            execute!(self.service.pool(), sqlx::AssertSqlSafe(sql));
        }
        for answer in &mut self.model.0 {
            answer.age += STEP_SECONDS;
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_taken_is_the_newest_of_all_complete_answers() {
    let service = TestService::start().await;
    let worker = service.start_worker(8);
    service.accept_key().await;
    let seed = std::env::var("FARESCAN_SEED").map_or(3, |seed| seed.parse().unwrap());
    let mut replies = Rng(seed);
    service.upstream.answer(move |call| match replies.below(6) {
        0 => Reply::json(json!([])).header("x-search-status", "empty"),
        1 => Reply::json(json!([fare(90, &call.body)]))
            .header("x-search-status", "partial")
            .header("x-search-reason", "search_truncated"),
        _ => Reply::json(json!([fare(100 + replies.below(100), &call.body)])),
    });
    let mut run = Run {
        service,
        model: Model::default(),
        scans: Vec::new(),
        rng: Rng(seed + 1),
    };
    for step in 0..STEPS {
        let choice = run.pick(10);
        println!("step {step}: {choice}");
        match choice {
            0..=3 => run.scan().await,
            4 | 5 => run.single().await,
            6 => run.retry().await,
            7 => run.delete().await,
            8 => run.forget().await,
            _ => run.wait().await,
        }
    }
    worker.stop().await;
}
