//! The queue's own moves, one at a time: what a worker does, without its clocks.

use farescan::contract::{Api, Endpoint, Offer, Request, SearchStatus, Verdict as Band};
use farescan::history::{self, Observation, SeenPrice, Subject};
use farescan::ids::{AttemptId, ScanId};
use farescan::queue::Claim;
use farescan::queue::give_up;
use farescan::queue::hold::{Cause, hold_scan};
use farescan::queue::lanes::{self, LaneNews};
use farescan::queue::store::{
    self, Claimed, FinishedCall, LaneClaims, StoredAnswer, StoredOffer, Visit,
};
use farescan::scans::two_phase;
use farescan::search::PlanQuota;
use farescan::tenants::{GrantError, Keyring};
use jiff::Timestamp;
use rust_decimal::Decimal;
use serde_json::{Value, json};
use sqlx::PgPool;

use super::twin::Twin;
use super::world::{Business, Noticed, Seen, World};
use crate::queue::yard;

/// What a call comes to.
#[derive(Debug, Clone, Copy)]
pub enum Comes {
    /// This best price in dollars.
    Price(u32),
    Empty,
    Partial(u32),
    /// This best price in another currency.
    Euros(u32),
    Degraded,
    Refused,
    /// The key was not taken.
    Rejected,
}

impl World {
    /// Claims at most so many items of all lanes that are due.
    pub async fn claim(&mut self, slots: usize) -> Seen<Vec<Claimed>> {
        let (pool, worker) = (self.pool.clone(), self.worker);
        let mut claimed = Vec::new();
        let claim = async {
            match store::claim(&pool, worker, slots).await? {
                // In an order that no plan decides.
                Visit::Claims(mut claims, _) => {
                    claims.sort_by_key(|one| one.claim.item);
                    claimed = claims;
                }
                Visit::Fenced => {}
            }
            Ok::<_, sqlx::Error>(json!(
                claimed
                    .iter()
                    .map(|one| format!("{one:?}"))
                    .collect::<Vec<_>>()
            ))
        };
        self.work("claim", claim).await?;
        Ok(claimed)
    }

    /// Puts claims on record as sent.
    pub async fn begin(&mut self, claims: &[Claimed]) -> Seen<Vec<String>> {
        self.begin_as(
            &claims
                .iter()
                .map(|one| (one.claim, AttemptId::new()))
                .collect::<Vec<_>>(),
        )
        .await
    }

    /// The same with these ids.
    pub async fn begin_as(&mut self, claims: &[(Claim, AttemptId)]) -> Seen<Vec<String>> {
        let pool = self.pool.clone();
        let begin = async {
            let verdicts = store::begin(&pool, claims, Timestamp::now()).await?;
            Ok::<_, sqlx::Error>(
                verdicts
                    .iter()
                    .map(|verdict| format!("{verdict:?}"))
                    .collect::<Vec<_>>(),
            )
        };
        self.work("begin", begin).await
    }

    /// Claims under numbers that are past, in one batch with the twin's claims of the same items, which stand.
    pub async fn begin_stale_beside(&mut self, claims: &[Claimed]) -> Seen {
        let pool = self.pool.clone();
        let mut all: Vec<_> = self
            .with_the_twins(claims)
            .iter()
            .map(|one| (one.claim, AttemptId::new()))
            .collect();
        for (claim, _) in &mut all[..claims.len()] {
            claim.number += 90;
        }
        let begin = async {
            let verdicts = store::begin(&pool, &all, Timestamp::now()).await?;
            Ok::<_, sqlx::Error>(
                verdicts
                    .iter()
                    .take(claims.len())
                    .map(|verdict| format!("{verdict:?}"))
                    .collect::<Vec<_>>(),
            )
        };
        self.work_on(Business::All, "begin what is past beside the twin", begin)
            .await
            .map(drop)
    }

    /// The same in one batch with the twin's claims of the same items.
    pub async fn begin_beside(&mut self, claims: &[Claimed]) -> Seen {
        let pool = self.pool.clone();
        let all: Vec<_> = self.with_the_twins(claims);
        let all: Vec<_> = all
            .iter()
            .map(|one| (one.claim, AttemptId::new()))
            .collect();
        let begin = async {
            let verdicts = store::begin(&pool, &all, Timestamp::now()).await?;
            let told = verdicts
                .iter()
                .take(claims.len())
                .map(|verdict| format!("{verdict:?}"));
            // A verdict names no tenant: of equal items it may be told to either.
            Ok::<_, sqlx::Error>(told.map(|_| "told").collect::<Vec<_>>())
        };
        self.work_on(Business::All, "begin beside the twin", begin)
            .await
            .map(drop)
    }

    /// Records calls in one batch with the twin's calls of the same items, which come to the same.
    pub async fn record_beside(&mut self, calls: &[(&Claimed, Comes)]) -> Seen {
        let pool = self.pool.clone();
        let claims: Vec<_> = calls
            .iter()
            .map(|(claimed, _)| (*claimed).clone())
            .collect();
        let all = self.with_the_twins(&claims);
        let all: Vec<_> = all
            .iter()
            .zip(calls.iter().cycle())
            .map(|(claimed, (_, comes))| (claimed, *comes))
            .collect();
        let record = async { record(&pool, &all, Timestamp::now()).await.map(drop) };
        self.work_on(Business::All, "record beside the twin", record)
            .await?;
        let plan = PlanQuota {
            limit: Some(70),
            remaining: Some(7),
            ..PlanQuota::default()
        };
        let mut news: Vec<LaneNews> = Vec::new();
        for (claimed, _) in &all {
            if news.iter().all(|lane| lane.tenant != claimed.claim.tenant) {
                let told = if news.is_empty() {
                    plan
                } else {
                    PlanQuota::default()
                };
                news.push(LaneNews::answered(claimed.claim.tenant, claimed.lane, told));
            }
        }
        let pool = self.pool.clone();
        let tell = async { lanes::tell(&pool, &news).await.map(drop) };
        self.work_on(Business::All, "tell lanes beside the twin", tell)
            .await
    }

    /// These claims, and after them the twin's of the same items.
    fn with_the_twins(&self, claims: &[Claimed]) -> Vec<Claimed> {
        let of_twin = |claimed: &Claimed| {
            // The stopped one's items are of other scans, which could not take what they come to.
            let tenant = self
                .twin()
                .filter(|twin| *twin != Twin::Stopped)?
                .tenant()
                .into();
            Some(Claimed {
                claim: Claim {
                    tenant,
                    ..claimed.claim
                },
                ..claimed.clone()
            })
        };
        claims
            .iter()
            .cloned()
            .chain(claims.iter().filter_map(of_twin))
            .collect()
    }

    /// The second place of a call.
    pub async fn second_place(&mut self, claim: Claim) -> Seen<bool> {
        let pool = self.pool.clone();
        self.work("second place", async {
            store::second_place(&pool, claim).await
        })
        .await
    }

    /// The key of a claim, opened as a call does.
    pub async fn open_key(&mut self, claimed: &Claimed) -> Seen {
        self.open_key_with(&crate::support::app::ring(), claimed)
            .await
    }

    /// The same with this ring.
    pub async fn open_key_with(&mut self, ring: &Keyring, claimed: &Claimed) -> Seen {
        let pool = self.pool.clone();
        let grant = claimed
            .grant
            .ok_or_else(|| Noticed("a claim without a grant".to_owned()))?;
        let opened = async {
            match farescan::tenants::store::open_grant(&pool, ring, claimed.claim.tenant, grant)
                .await
            {
                Ok(key) if key.expose() == crate::support::app::KEY => Ok("opens"),
                Ok(_) => Ok("opens another key"),
                Err(GrantError::Gone) => Ok("gone"),
                Err(GrantError::NotOpened { .. }) => Ok("does not open"),
                Err(GrantError::Database(error)) => Err(error),
            }
        };
        self.work("open the key", opened).await.map(drop)
    }

    /// A lane is told of a call's end that changes nothing.
    pub async fn tell_nothing(&mut self, lane: Api, claimed: &Claimed) -> Seen {
        let pool = self.pool.clone();
        let news = [LaneNews::answered(
            claimed.claim.tenant,
            lane,
            PlanQuota::default(),
        )];
        self.work("tell a lane nothing", async {
            lanes::tell(&pool, &news).await
        })
        .await
        .map(drop)
    }

    /// A move that is one statement; gives a text.
    pub async fn run(&mut self, step: &str, sql: &'static str) -> Seen {
        let pool = self.pool.clone();
        let run = async {
            sqlx::query_scalar::<_, Option<String>>(sql)
                .fetch_one(&pool)
                .await
        };
        self.work(step, run).await.map(drop)
    }

    /// Records what calls came to: in one transaction the calls, answers, offers and observations, and then the lanes are told.
    pub async fn record(&mut self, calls: &[(&Claimed, Comes)]) -> Seen {
        self.record_with(calls, PlanQuota::default()).await
    }

    pub async fn record_with(&mut self, calls: &[(&Claimed, Comes)], plan: PlanQuota) -> Seen {
        let pool = self.pool.clone();
        let record = async {
            let fresh = record(&pool, calls, Timestamp::now()).await?;
            Ok::<_, sqlx::Error>(fresh)
        };
        self.work("record", record).await?;
        let Some((first, _)) = calls.first() else {
            return Ok(());
        };
        let news = [LaneNews::answered(first.claim.tenant, first.lane, plan)];
        let pool = self.pool.clone();
        self.work("tell lanes", async { lanes::tell(&pool, &news).await })
            .await
            .map(drop)
    }

    /// Records a call that ended long ago, at the time that the twin's done items tell.
    pub async fn record_old(&mut self, claimed: &Claimed, comes: Comes) -> Seen {
        let (pool, long_ago) = (self.pool.clone(), "2026-01-01T00:00:00Z".parse().unwrap());
        self.work("record what ended long ago", async {
            record(&pool, &[(claimed, comes)], long_ago).await
        })
        .await
        .map(drop)
    }

    /// Searches all that can be claimed, a few at a time.
    pub async fn finish(&mut self, comes: impl Fn(usize) -> Comes) -> Seen {
        let mut count = 0;
        loop {
            let claims = self.claim(3).await?;
            if claims.is_empty() {
                return Ok(());
            }
            self.begin(&claims).await?;
            let calls: Vec<_> = claims
                .iter()
                .enumerate()
                .map(|(at, claimed)| (claimed, comes(count + at)))
                .collect();
            count += calls.len();
            self.record(&calls).await?;
        }
    }

    /// Claims that nobody carries on are given up.
    pub async fn give_up(&mut self, claims: &[Claimed]) -> Seen {
        let Some(first) = claims.first() else {
            return Err(Noticed("nothing to give up".to_owned()));
        };
        let lane = LaneClaims {
            tenant: first.claim.tenant,
            api: first.lane.as_str().to_owned(),
            items: claims.iter().map(|one| one.claim.item.uuid()).collect(),
            numbers: claims.iter().map(|one| one.claim.number).collect(),
        };
        let pool = self.pool.clone();
        self.work("give up", give_up::give_up(&pool, &lane))
            .await
            .map(drop)
    }

    /// Retries of the first tenant's lane that are due are made pending.
    pub async fn release(&mut self, api: Api) -> Seen {
        let (pool, tenant) = (self.pool.clone(), self.tenant().await?);
        let release = async {
            let released: i64 = sqlx::query_scalar("select release_delayed($1, $2, $3, 1000)")
                .bind(jiff_sqlx::Timestamp::from(Timestamp::now()))
                .bind(tenant)
                .bind(api.as_str())
                .fetch_one(&pool)
                .await?;
            Ok::<_, sqlx::Error>(released)
        };
        self.work("release delayed", release).await.map(drop)
    }

    /// A scan that cannot go on is paused.
    pub async fn hold(&mut self, scan: &str, cause: Cause) -> Seen {
        let (pool, tenant) = (self.pool.clone(), self.tenant().await?);
        let scan: ScanId = scan
            .parse()
            .map_err(|_| Noticed(format!("{scan} is no scan")))?;
        self.work("hold", async {
            hold_scan(&pool, tenant.into(), scan, &cause).await
        })
        .await
        .map(drop)
    }

    /// The key of a scan is wiped, as the sweep does with what has expired.
    pub async fn wipe_expired(&mut self, claimed: &Claimed) -> Seen {
        let (pool, tenant) = (self.pool.clone(), claimed.claim.tenant);
        let grant = claimed
            .grant
            .ok_or_else(|| Noticed("a claim without a grant".to_owned()))?;
        let wipe = async {
            let mut conn = pool.acquire().await?;
            // Whenever it expires, it has by then.
            let later = Timestamp::now() + jiff::SignedDuration::from_hours(24 * 365 * 2_000);
            farescan::tenants::store::wipe_expired(&mut conn, tenant, grant, later).await
        };
        self.work("wipe expired", wipe).await
    }

    /// Slots that are due are decided, runs that have ended are judged; the twin's own too.
    pub async fn tick(&mut self) -> Seen {
        self.tick_as(Business::All, "tick").await
    }

    /// The same while another process is at everything that is the twin's.
    pub async fn tick_alone(&mut self) -> Seen {
        self.tick_as(Business::Own, "tick, the first alone").await
    }

    async fn tick_as(&mut self, business: Business, step: &str) -> Seen {
        let ticker = crate::monitors::ticker(&self.pool);
        // How many is no matter, and when the next comes is a matter of time.
        let tick = async {
            crate::monitors::tick(&ticker, Timestamp::now())
                .await
                .map(|pass| pass.failed)
        };
        self.work_on(business, step, tick).await.map(drop)
    }

    /// Second phases that are due begin.
    pub async fn second_phase(&mut self) -> Seen {
        let pool = self.pool.clone();
        // How many begin is no matter: the twin's own may be due too.
        self.work_on(Business::All, "second phase", async {
            two_phase::begin_due(&pool, Timestamp::now())
                .await
                .map(drop)
        })
        .await
    }
}

async fn record(
    pool: &PgPool,
    calls: &[(&Claimed, Comes)],
    ended: Timestamp,
) -> sqlx::Result<Value> {
    let now = Timestamp::now();
    let (mut finished, mut bodies, mut offers) = (Vec::new(), Vec::new(), Vec::new());
    for (claimed, comes) in calls {
        finished.push(call(claimed.claim, *comes, ended));
        bodies.push(
            zstd::encode_all(format!("[{{\"comes\": \"{comes:?}\"}}]").as_bytes(), 3).unwrap(),
        );
        offers.push(offer(*comes));
    }
    let mut tx = farescan::db::begin(pool).await?;
    let fresh = store::record_calls(&mut tx, &finished.iter().collect::<Vec<_>>(), now).await?;
    let is_fresh = |at: &usize| {
        fresh.iter().any(|(item, number)| {
            (*item, *number) == (calls[*at].0.claim.item, calls[*at].0.claim.number)
        })
    };
    let kept: Vec<usize> = (0..calls.len()).filter(is_fresh).collect();
    let claim = |at: usize| calls[at].0.claim;
    let answers: Vec<_> = kept
        .iter()
        .map(|at| StoredAnswer {
            tenant: claim(*at).tenant,
            item: claim(*at).item,
            number: claim(*at).number,
            observed_at: now,
            body: &bodies[*at],
        })
        .collect();
    store::insert_answers(&mut tx, &answers).await?;
    let seen: Vec<_> = kept
        .iter()
        .filter_map(|at| {
            let offer = offers[*at].as_ref()?;
            Some(StoredOffer {
                tenant: claim(*at).tenant,
                item: claim(*at).item,
                ended_at: ended,
                offer,
            })
        })
        .collect();
    store::insert_offers(&mut tx, &seen).await?;
    let observations: Vec<_> = kept
        .iter()
        .filter_map(|at| observation(calls[*at].0, &finished[*at], now))
        .collect();
    history::record(&mut tx, &observations).await?;
    tx.commit().await?;
    let mut fresh: Vec<_> = fresh.iter().map(|one| format!("{one:?}")).collect();
    fresh.sort();
    Ok(json!(fresh))
}

fn call(claim: Claim, comes: Comes, ended: Timestamp) -> FinishedCall {
    let call = match comes {
        Comes::Price(price) => yard::priced(claim, &price.to_string()),
        Comes::Euros(price) => FinishedCall {
            currency: Some("EUR".to_owned()),
            ..yard::priced(claim, &price.to_string())
        },
        Comes::Partial(price) => FinishedCall {
            search_status: Some(SearchStatus::Partial),
            reason: Some("search_truncated".to_owned()),
            ..yard::priced(claim, &price.to_string())
        },
        Comes::Empty => yard::done(claim, SearchStatus::Empty),
        Comes::Degraded => yard::degraded(claim),
        Comes::Refused => FinishedCall {
            ending: store::Ending::Failed,
            may_retry: false,
            search_status: None,
            error: Some("no such airport".to_owned()),
            http_status: Some(422),
            ..yard::degraded(claim)
        },
        Comes::Rejected => FinishedCall {
            http_status: Some(401),
            ..yard::rejected(claim)
        },
    };
    FinishedCall {
        ended_at: ended,
        ..call
    }
}

fn offer(comes: Comes) -> Option<Offer> {
    let (Comes::Price(price) | Comes::Partial(price)) = comes else {
        return None;
    };
    Some(Offer {
        price: price.into(),
        currency: Some("USD".to_owned()),
        carrier_or_room: Some("Example Air".to_owned()),
        hotel: None,
        board: Some("Breakfast".to_owned()),
        link: Some("https://flights.example/".to_owned()),
        verdict: Some(Band::Low),
        band_low: Some(180.into()),
        band_high: Some(320.into()),
        stops: Some(0),
    })
}

fn observation(claimed: &Claimed, call: &FinishedCall, now: Timestamp) -> Option<Observation> {
    let request = Request::check(Endpoint::parse(&claimed.endpoint)?, &claimed.body)
        .ok()?
        .request;
    let price: Option<Decimal> = call
        .best_price
        .as_ref()
        .and_then(|price| price.parse().ok());
    Some(Observation {
        tenant: claimed.claim.tenant,
        item: claimed.claim.item,
        number: claimed.claim.number,
        subject: Subject::of(&request)?,
        observed_at: now,
        best: price.map(|price| SeenPrice {
            price,
            seller: Some("Example Air".to_owned()),
            band_low: Some(180.into()),
            band_high: Some(320.into()),
            verdict: Some(Band::Low),
        }),
        results: call.results,
        status: call.search_status?,
        reason: call.reason.clone(),
    })
}
