//! Callers of [`super::life`]: each sends random requests over HTTP to whichever process is up, also
//! equal ones at the same time, and rotates its key.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use farescan::commands::RequestContext;
use farescan::ids::{ScanId, TenantId};
use farescan::scans::control::resume;
use farescan::search::CallerKey;
use farescan::tenants::store;
use futures::future::join;
use jiff::{Span, Timestamp};
use rand::rngs::StdRng;
use rand::seq::IndexedRandom as _;
use rand::{RngExt as _, SeedableRng as _};
use reqwest::Method;
use serde_json::{Map, Value, json};
use uuid::Uuid;

use crate::faults::ledger::DeletedCall;
use crate::support::{array, http_client, text};
use crate::worker::fixture::WorkerFixture;

use super::ActionCounts;

/// Scans and monitors of a caller at a time.
const SCANS: usize = 6;
const MONITORS: usize = 2;
/// Longer than any fault, so that no request is handled after its caller has gone on, unless its
/// process was killed.
const TIMEOUT: Duration = Duration::from_secs(60);
/// What a request may be answered while there are faults: 500 is none of it.
const EXPECTED: [u16; 10] = [200, 201, 202, 204, 404, 409, 429, 502, 503, 504];
const CACHE_CONTROL: [&str; 7] = [
    "max-age=3600",
    "max-age=3600",
    "max-age=2",
    "max-age=0",
    "no-cache",
    "no-store, max-age=3600",
    "only-if-cached",
];

/// The start of a caller's keys, with which the marketplace signs what it sells to them.
pub const MARK: usize = "life-0000".len();

/// The API addresses of the processes.
pub type Addresses = Arc<Mutex<Vec<String>>>;

pub struct LifeCaller {
    number: u64,
    rotations: u32,
    key: String,
    /// The new key of a rotation whose end is not known.
    perhaps: Option<String>,
    rng: StdRng,
    addresses: Addresses,
    scans: Vec<ScanId>,
    monitors: Vec<String>,
    pub done: ActionCounts,
    deleted: Vec<(ScanId, Vec<DeletedCall>)>,
    /// The requests that synchronous searches said they had cost.
    pub reported: usize,
}

struct Response {
    status: u16,
    requests: usize,
    body: String,
}

impl Response {
    fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap()
    }
}

/// A date, from 30 days ahead.
fn date(offset: i64) -> String {
    let today = Timestamp::now().to_zoned(jiff::tz::TimeZone::UTC).date();
    today
        .saturating_add(Span::new().days(30 + offset))
        .to_string()
}

async fn tenant_of(fixture: &WorkerFixture, key: &str) -> sqlx::Result<Option<TenantId>> {
    let mut connection = fixture.pool().acquire().await?;
    let key = CallerKey::new(key.to_owned());
    store::find(&mut connection, &fixture.ring, &key, Timestamp::now()).await
}

impl LifeCaller {
    pub fn new(seed: u64, number: u64, addresses: &Addresses) -> Self {
        Self {
            number,
            rotations: 0,
            key: format!("life-{number:04}-key-000000"),
            perhaps: None,
            rng: StdRng::seed_from_u64(seed.wrapping_add(100 + number)),
            addresses: Arc::clone(addresses),
            scans: Vec::new(),
            monitors: Vec::new(),
            done: ActionCounts::new(),
            deleted: Vec::new(),
            reported: 0,
        }
    }

    /// Submits a first scan, so that the service knows the key.
    pub async fn begin(&mut self) {
        let body = self.scan_body();
        let submitted = self.post("/v1/scans", &body).await.unwrap();
        self.keep_scan(&submitted).unwrap();
    }

    pub async fn act(&mut self, fixture: &WorkerFixture, actions: usize) {
        for _ in 0..actions {
            tokio::time::sleep(Duration::from_millis(self.rng.random_range(0..250))).await;
            self.adopt_key(fixture).await;
            if self.perhaps.is_some() {
                // With the old key it would be another caller.
                continue;
            }
            let what = self.step(fixture).await.unwrap_or("refused or cut off");
            *self.done.entry(what).or_default() += 1;
        }
    }

    /// `None`: the process was killed or does not listen.
    async fn ask(
        &self,
        address: &str,
        method: Method,
        path: &str,
        body: &Value,
        headers: &[(&str, &str)],
    ) -> Option<Response> {
        let mut request = http_client()
            .request(method, format!("{address}{path}"))
            .timeout(TIMEOUT)
            .header("x-api-key", &self.key)
            .json(body);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let response = request.send().await.ok()?;
        let status = response.status().as_u16();
        let requests = response.headers().get("x-upstream-requests");
        let requests = requests.map_or(0, |cost| cost.to_str().unwrap().parse().unwrap());
        let body = response.text().await.ok()?;
        // A scan whose budget is spent is resumed only with a higher one.
        let is_expected = EXPECTED.contains(&status) || status == 400 && path.ends_with("/resume");
        assert!(is_expected, "{path}: {status} {body}");
        for other in (0..10).filter(|other| *other != self.number) {
            let mark = format!("life-{other:04}");
            assert!(!body.contains(&mark), "{path} shows {mark}: {body}");
        }
        Some(Response {
            status,
            requests,
            body,
        })
    }

    fn address(&mut self) -> String {
        let addresses = self.addresses.lock().unwrap();
        addresses.choose(&mut self.rng).unwrap().clone()
    }

    async fn post(&mut self, path: &str, body: &Value) -> Option<Response> {
        let address = self.address();
        self.ask(&address, Method::POST, path, body, &[]).await
    }

    async fn step(&mut self, fixture: &WorkerFixture) -> Option<&'static str> {
        match self.rng.random_range(0..100) {
            0..22 if self.scans.len() < SCANS => {
                let body = self.scan_body();
                let submitted = self.post("/v1/scans", &body).await?;
                self.keep_scan(&submitted)?;
                Some("scan")
            }
            0..34 if self.scans.len() + 1 < SCANS => self.equal_scans().await,
            0..54 => self.search().await,
            54..62 => self.equal_searches().await,
            62..68 if self.monitors.len() < MONITORS => {
                let body = self.monitor_body();
                let created = self.post("/v1/monitors", &body).await?;
                if created.status != 201 {
                    return None;
                }
                self.monitors.push(text(&created.json()["id"]));
                Some("monitor")
            }
            62..70 => {
                let body = self.monitor_body();
                let played = self.post("/v1/monitors/backtest?days=7", &body).await?;
                (played.status == 200).then_some("backtest")
            }
            70..76 => {
                let age = [0, 2, 3600][self.rng.random_range(0..3)];
                let settings =
                    json!({"record_searches": self.rng.random_bool(0.7), "max_age_seconds": age});
                let address = self.address();
                let put = self.ask(
                    &address,
                    Method::PUT,
                    "/v1/account/settings",
                    &settings,
                    &[],
                );
                (put.await?.status == 200).then_some("settings")
            }
            76..80 => self.rotate().await,
            _ => self.command(fixture).await,
        }
    }

    fn scan_body(&mut self) -> Value {
        let rng = &mut self.rng;
        let first = rng.random_range(0..6);
        let last = first + rng.random_range(2..14);
        let mut body = json!({
            "endpoint": "flights/oneway",
            "request": {"from_airport": "TLV", "to_airport": (["LHR", "CDG"][rng.random_range(0..2)]), "currency": "USD"},
            "sweep": {"departure_date": {"from": date(first), "to": date(last)}},
            "retry": {"max_attempts": rng.random_range(1..3), "delay_seconds": 1},
        });
        match rng.random_range(0..10) {
            0..4 => body["max_age_seconds"] = json!(3600),
            4..7 => body["max_age_seconds"] = json!(rng.random_range(1..5)),
            _ => {}
        }
        match rng.random_range(0..10) {
            0..2 => body["strategy"] = json!({"find": "cheapest"}),
            2..4 => {
                body["strategy"] = json!({"find": "below", "below": rng.random_range(100..180)});
            }
            4..5 => {
                body["strategy"] = json!({"watch": "cheapest"});
                body["max_requests"] = json!(6);
            }
            _ => {}
        }
        body
    }

    fn monitor_body(&mut self) -> Value {
        let mut scan = self.scan_body();
        for field in ["strategy", "max_requests"] {
            scan.as_object_mut().unwrap().remove(field);
        }
        // A watch spends all that it may on its question.
        let mut confirm = 1;
        if self.rng.random_bool(0.5) {
            scan["strategy"] = json!({"watch": "cheapest"});
            scan["max_requests"] = json!(6);
            confirm = 0;
        }
        // Half a day away: the test makes the slots.
        let hour = (Timestamp::now().to_zoned(jiff::tz::TimeZone::UTC).hour() + 12) % 24;
        json!({
            "name": format!("life {}", self.rng.random_range(0..1_000_000)),
            "schedule": {"cron": format!("0 {hour} * * *"), "timezone": "UTC"},
            "scan": scan,
            "max_requests_per_month": 500,
            "alerts": [{"type": "price_below", "amount": self.rng.random_range(110..160), "confirm": confirm}],
        })
    }

    fn keep_scan(&mut self, submitted: &Response) -> Option<()> {
        if submitted.status != 202 {
            return None;
        }
        self.scans
            .push(text(&submitted.json()["id"]).parse().unwrap());
        Some(())
    }

    /// Two equal scans at the same time, perhaps to two processes.
    async fn equal_scans(&mut self) -> Option<&'static str> {
        let mut body = self.scan_body();
        body["max_age_seconds"] = json!(3600);
        let (one, other) = (self.address(), self.address());
        let submit = |address: &str| {
            let (address, body, caller) = (address.to_owned(), &body, &*self);
            async move {
                caller
                    .ask(&address, Method::POST, "/v1/scans", body, &[])
                    .await
            }
        };
        let (first, second) = join(submit(&one), submit(&other)).await;
        let kept = [first, second].map(|submitted| self.keep_scan(&submitted?));
        kept.contains(&Some(())).then_some("two equal scans")
    }

    fn search_body(&mut self) -> Value {
        json!({"from_airport": "TLV", "to_airport": "LHR", "currency": "USD", "departure_date": date(self.rng.random_range(0..12))})
    }

    fn check_search(&mut self, directive: &str, response: &Response) {
        self.reported += response.requests;
        let (status, body) = (response.status, &response.body);
        assert!(
            directive != "only-if-cached" || response.requests == 0,
            "{directive} sent a request: {body}"
        );
        let is_own = body.contains(&self.key[..MARK]);
        assert!(
            status != 200 || is_own || body == "[]",
            "{directive}: {body}"
        );
    }

    async fn search(&mut self) -> Option<&'static str> {
        let (address, body) = (self.address(), self.search_body());
        let directive = *CACHE_CONTROL.choose(&mut self.rng)?;
        let mut headers = vec![("cache-control", directive)];
        let is_async = self.rng.random_bool(0.2);
        if is_async {
            headers = vec![("prefer", "respond-async, wait=1")];
        }
        let path = "/v1/flights/oneway";
        let response = self
            .ask(&address, Method::POST, path, &body, &headers)
            .await?;
        if is_async {
            return Some("search with Prefer");
        }
        self.check_search(directive, &response);
        Some("search")
    }

    async fn equal_searches(&mut self) -> Option<&'static str> {
        let (address, body) = (self.address(), self.search_body());
        let send = || {
            let headers = [("cache-control", "max-age=3600")];
            let (address, body, caller) = (&address, &body, &*self);
            async move {
                let path = "/v1/flights/oneway";
                caller
                    .ask(address, Method::POST, path, body, &headers)
                    .await
            }
        };
        let (first, second) = join(send(), send()).await;
        for response in [first?, second?] {
            self.check_search("max-age=3600", &response);
        }
        Some("two equal searches")
    }

    async fn rotate(&mut self) -> Option<&'static str> {
        if self.perhaps.is_some() {
            return None;
        }
        self.rotations += 1;
        let new = format!("{}-key-{:06}", &self.key[..MARK], self.rotations);
        self.perhaps = Some(new.clone());
        let body = json!({"new_key": new});
        let rotated = self.post("/v1/account/rotate-key", &body).await?;
        if rotated.status != 200 {
            return None;
        }
        self.key = new;
        self.perhaps = None;
        Some("key rotated")
    }

    /// Learns whether a rotation without an answer happened.
    async fn adopt_key(&mut self, fixture: &WorkerFixture) {
        let Some(new) = self.perhaps.clone() else {
            return;
        };
        match tenant_of(fixture, &new).await {
            Ok(Some(_)) => (self.key, self.perhaps) = (new, None),
            Ok(None) => self.perhaps = None,
            Err(_) => {}
        }
    }

    async fn command(&mut self, fixture: &WorkerFixture) -> Option<&'static str> {
        let scan = *self.scans.choose(&mut self.rng)?;
        let path = format!("/v1/scans/{scan}");
        let is = |status: u16| move |response: Response| response.status == status;
        match self.rng.random_range(0..10) {
            0..3 => {
                self.post(&format!("{path}/pause"), &json!({})).await?;
                tokio::time::sleep(Duration::from_millis(self.rng.random_range(0..50))).await;
                self.post(&format!("{path}/resume"), &json!({})).await?;
                Some("pause and resume")
            }
            3 => {
                let cancelled = self.post(&format!("{path}/cancel"), &json!({})).await;
                cancelled.is_some_and(is(200)).then_some("cancel")
            }
            4..6 => {
                let again = json!({"search_status": ["degraded", "failed"]});
                let retried = self.post(&format!("{path}/retry"), &again).await?;
                matches!(retried.status, 200 | 202).then_some("retry")
            }
            _ => {
                let ended = "select finished_at is not null from scans where scan_id = $1";
                let ended: Option<bool> = sqlx::query_scalar(ended)
                    .bind(scan.uuid())
                    .fetch_optional(fixture.pool())
                    .await
                    .ok()?;
                // None: a deletion happened although its answer was lost.
                if ended.is_none() {
                    self.scans.retain(|other| *other != scan);
                }
                if ended != Some(true) {
                    return None;
                }
                let calls = DeletedCall::of(fixture.pool(), scan).await?;
                // A retry may have followed a deletion that did not happen.
                self.deleted.retain(|(other, _)| *other != scan);
                self.deleted.push((scan, calls));
                let address = self.address();
                let nothing = json!({});
                let deleted = self.ask(&address, Method::DELETE, &path, &nothing, &[]);
                if deleted.await?.status != 204 {
                    return None;
                }
                self.scans.retain(|other| *other != scan);
                Some("deletion")
            }
        }
    }

    /// Resumes every scan that is paused, also those of monitors and those of which it has no id.
    pub async fn resume_all(&mut self, fixture: &WorkerFixture) {
        self.adopt_key(fixture).await;
        let Ok(Some(tenant)) = tenant_of(fixture, &self.key).await else {
            return;
        };
        let paused = "select scan_id from scans where tenant_id = $1 and status = 'paused'";
        let paused: Vec<Uuid> = values!(fixture.pool(), paused, tenant.uuid());
        let key = CallerKey::new(self.key.clone());
        for scan in paused {
            let context = || RequestContext {
                pool: fixture.pool(),
                ring: &fixture.ring,
                key: &key,
                now: Timestamp::now(),
            };
            let more = json!({"max_requests": 10_000});
            for body in [&Map::new(), more.as_object().unwrap()] {
                // Without a budget that is spent it is refused; the lock of another may be in the way.
                if resume::resume(context(), scan.into(), body, None)
                    .await
                    .is_ok()
                {
                    break;
                }
            }
        }
    }

    /// The calls of its deleted scans.
    pub async fn deleted_calls(
        &mut self,
        fixture: &WorkerFixture,
    ) -> &[(ScanId, Vec<DeletedCall>)] {
        let mut gone = Vec::new();
        for (scan, calls) in std::mem::take(&mut self.deleted) {
            let there = "select count(*) from scans where scan_id = $1";
            if value!(fixture.pool(), there, scan.uuid(), => i64) == 0 {
                self.scans.retain(|other| *other != scan);
                gone.push((scan, calls));
            }
        }
        self.deleted = gone;
        &self.deleted
    }

    /// Compares the usage and the monitors' months that it is shown with the attempts.
    pub async fn check_spending(&mut self, fixture: &WorkerFixture) {
        let tenant = tenant_of(fixture, &self.key).await.unwrap();
        let Some(tenant) = tenant else { return };
        // Single searches that are stored have no worker; they are charged by themselves.
        let spent = "select coalesce(sum(requests_spent), 0)::bigint from attempts where tenant_id = $1 and worker_id <> 0";
        let stored = value!(fixture.pool(), spent, tenant.uuid(), => i64);
        let deleted: i64 = self
            .deleted
            .iter()
            .flat_map(|(_, calls)| calls.iter().map(DeletedCall::requests_of_scan))
            .sum();
        let usage = self.get("/v1/usage?group=monitor").await;
        let of_scans = array(&usage["data"])
            .iter()
            .filter(|row| row["key"] != "single");
        let of_scans: i64 = of_scans.map(|row| row["billed"].as_i64().unwrap()).sum();
        assert_eq!(
            of_scans,
            stored + deleted,
            "the usage of {} and its attempts: {stored} stored, {deleted} deleted",
            self.key
        );
        let of_month = "select m.monitor_id::text, coalesce(sum(s.requests_spent), 0)::bigint + coalesce(sum(m.deleted_requests), 0)::bigint
             from monitor_slots m left join scans s using (tenant_id, scan_id) where m.tenant_id = $1 group by 1";
        let of_month: Vec<(String, i64)> = rows!(fixture.pool(), of_month, tenant.uuid());
        for (monitor, spent) in of_month {
            let path = format!("/v1/monitors/mon_{}", monitor.replace('-', ""));
            let shown = self.get(&path).await;
            assert_eq!(shown["requests"]["this_month"], json!(spent), "{path}");
        }
    }

    async fn get(&mut self, path: &str) -> Value {
        loop {
            let address = self.address();
            let answer = self.ask(&address, Method::GET, path, &json!({}), &[]).await;
            if let Some(answer) = answer.filter(|answer| answer.status != 503) {
                assert_eq!(answer.status, 200, "{path}: {}", answer.body);
                return answer.json();
            }
        }
    }
}
