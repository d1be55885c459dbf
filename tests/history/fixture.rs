//! A service with observations that tests insert directly.

use farescan::contract::{Endpoint, Request, SearchStatus, Verdict};
use farescan::history::{Observation, ObservedPrice, Subject, insert};
use farescan::ids::{ItemId, TenantId};
use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use crate::support::TestService;
use crate::support::app::{KEY, ring, tenant};

/// A service and one tenant.
pub struct HistoryFixture {
    service: TestService,
    pub tenant: TenantId,
    pub now: Timestamp,
}

impl std::ops::Deref for HistoryFixture {
    type Target = TestService;

    fn deref(&self) -> &TestService {
        &self.service
    }
}

impl HistoryFixture {
    pub async fn open() -> Self {
        let service = TestService::start().await;
        let now = Timestamp::from_second(Timestamp::now().as_second()).unwrap();
        let tenant = tenant(service.pool(), &ring(), KEY).await;
        Self {
            service,
            tenant,
            now,
        }
    }

    pub fn observation(
        &self,
        endpoint: &str,
        body: Value,
        minutes: i64,
        price: Option<i64>,
    ) -> Observation {
        let Value::Object(body) = body else {
            panic!("an object")
        };
        let request = Request::check(Endpoint::parse(endpoint).unwrap(), &body)
            .unwrap()
            .request;
        Observation {
            tenant: self.tenant,
            item: ItemId::new(),
            number: 1,
            subject: Subject::of(&request).unwrap(),
            observed_at: self.now + SignedDuration::from_mins(minutes),
            best: price.map(|price| ObservedPrice {
                price: price.into(),
                seller: Some("Example Air".to_owned()),
                band_low: Some(180.into()),
                band_high: Some(320.into()),
                verdict: Some(Verdict::Low),
            }),
            results: price.map(|_| 12),
            status: if price.is_some() {
                SearchStatus::Ok
            } else {
                SearchStatus::Degraded
            },
            reason: price.is_none().then(|| "blocked_page".to_owned()),
        }
    }

    pub fn fare(&self, day: &str, minutes: i64, price: Option<i64>) -> Observation {
        self.observation(
            "flights/oneway",
            json!({"from_airport": "TLV", "to_airport": "LHR", "departure_date": day}),
            minutes,
            price,
        )
    }

    pub async fn insert(&self, observations: &[Observation]) {
        let mut tx = farescan::db::begin(self.pool()).await.unwrap();
        insert(&mut tx, observations).await.unwrap();
        tx.commit().await.unwrap();
    }

    pub async fn latest(&self) -> Vec<(String, String)> {
        let rows =
            sqlx::query_as("select first_date::text, price::text from latest_prices order by 1, 2");
        rows.fetch_all(self.pool()).await.unwrap()
    }
}
