//! The service on a loopback port, with a scripted marketplace behind it.

use std::sync::Arc;
use std::time::Duration;

use axum::http::HeaderMap;
use farescan::api::{self, admin_router};
use farescan::app::{AppState, Custody};
use farescan::charges::ChargeRecorder;
use farescan::config::PaceConfig;
use farescan::db::RequestPools;
use farescan::ids::TenantId;
use farescan::scans::watch::{ScanWatch, WatchSettings};
use farescan::search::CallerKey;
use farescan::search_recorder::SearchRecorder;
use farescan::tenants::{Keyring, store};
use farescan::upstream::{Client, UpstreamConfig};
use jiff::Timestamp;
use serde_json::Value;
use sqlx::PgPool;
use sqlx::postgres::PgConnectOptions;
use tokio::net::TcpListener;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use super::db::TestDb;
use super::upstream::ScriptedServer;

/// The key that [`TestApp::post`] and [`TestApp::get`] send.
pub const KEY: &str = "test-key-0123456789";

/// A running service; it stops when dropped.
pub struct TestApp {
    pub upstream: ScriptedServer,
    url: String,
    admin_url: String,
    http: reqwest::Client,
    servers: [JoinHandle<()>; 2],
}

impl Drop for TestApp {
    fn drop(&mut self) {
        for server in &self.servers {
            server.abort();
        }
    }
}

type ConfigChange = Box<dyn FnOnce(&mut UpstreamConfig)>;
type StateChange = Box<dyn FnOnce(AppState) -> AppState>;

/// The settings of a [`TestApp`].
#[derive(Default)]
pub struct TestAppBuilder {
    pool: Option<PgPool>,
    config: Option<ConfigChange>,
    custody: Option<Custody>,
    watch: WatchSettings,
    state: Option<StateChange>,
}

/// The keyring of the services in these tests.
pub fn ring() -> Keyring {
    Keyring::parse(&ring_text()).unwrap()
}

/// The keyring in the form of the setting.
pub fn ring_text() -> String {
    format!("test:{}", "5a".repeat(32))
}

/// The caller with this key.
pub async fn tenant(pool: &PgPool, ring: &Keyring, key: &str) -> TenantId {
    let mut tx = super::db::begin(pool).await;
    let tenant = store::find_or_create(&mut tx, ring, &CallerKey::new(key), Timestamp::now())
        .await
        .unwrap();
    tx.commit().await.unwrap();
    tenant
}

impl TestAppBuilder {
    /// Watches scans with other intervals and bounds. Call it before [`Self::database`].
    #[must_use]
    pub fn watch(self, watch: WatchSettings) -> Self {
        Self { watch, ..self }
    }

    /// Uses this pool.
    #[must_use]
    pub fn pool(self, pool: PgPool) -> Self {
        Self {
            pool: Some(pool),
            ..self
        }
    }

    /// Serves the scan API on this database, with the highest pace that a lane can have.
    #[must_use]
    pub fn database(self, db: &TestDb) -> Self {
        self.scan_api(db.pool().clone(), db.connect_options())
    }

    /// The same for a database that the test may stop.
    #[must_use]
    pub fn scan_api(self, pool: PgPool, options: PgConnectOptions) -> Self {
        let pace = PaceConfig {
            flights_per_minute: 60_000,
            hotels_per_minute: 60_000,
            max_in_flight: 1_000,
        };
        let (stop, ring) = (CancellationToken::new(), Arc::new(ring()));
        let watch = ScanWatch::start(pool.clone(), options.clone(), self.watch, &stop);
        let charges = ChargeRecorder::start(pool.clone(), Arc::clone(&ring), pace.clone());
        let recorder = SearchRecorder::new(pool.clone(), Arc::clone(&ring), pace.clone());
        tokio::spawn(
            recorder
                .clone()
                .follow_settings(options.clone(), stop.clone()),
        );
        Self {
            pool: Some(pool),
            custody: Some(Custody {
                ring,
                pace,
                watch,
                charges,
                recorder,
            }),
            ..self
        }
    }

    /// New lanes start with this pace.
    #[must_use]
    pub fn pace(self, pace: PaceConfig) -> Self {
        Self {
            custody: self.custody.map(|custody| Custody { pace, ..custody }),
            ..self
        }
    }

    /// Serves the scan API with this custody.
    #[must_use]
    pub fn custody(self, custody: Custody) -> Self {
        Self {
            custody: Some(custody),
            ..self
        }
    }

    /// Changes the settings of the marketplace client.
    #[must_use]
    pub fn config(self, change: impl FnOnce(&mut UpstreamConfig) + 'static) -> Self {
        Self {
            config: Some(Box::new(change)),
            ..self
        }
    }

    /// Changes the application state.
    #[must_use]
    pub fn state(self, change: impl FnOnce(AppState) -> AppState + 'static) -> Self {
        Self {
            state: Some(Box::new(change)),
            ..self
        }
    }

    /// Sets the time limit of a search, 180 s by default.
    #[must_use]
    pub fn budget(self, budget: Duration) -> Self {
        self.config(move |config| config.search_timeout_seconds = budget)
    }

    pub async fn start(self) -> TestApp {
        let upstream = ScriptedServer::start().await;
        let mut config = upstream.config();
        if let Some(change) = self.config {
            change(&mut config);
        }
        let mut app = AppState::new(
            Client::new(&config).unwrap(),
            self.pool.map(RequestPools::shared),
        );
        // On a loaded machine a permit may take long.
        app = app.with_permit_timeout(Duration::from_secs(60));
        if let Some(custody) = self.custody {
            app = app.with_custody(custody);
        }
        if let Some(change) = self.state {
            app = change(app);
        }
        let (url, server) = serve(farescan::service::router(app.clone())).await;
        let (admin_url, admin) = serve(admin_router(app)).await;
        let http = reqwest::Client::builder()
            .no_proxy()
            .redirect(reqwest::redirect::Policy::none())
            .build()
            .unwrap();
        TestApp {
            upstream,
            url,
            admin_url,
            http,
            servers: [server, admin],
        }
    }
}

async fn serve(router: axum::Router) -> (String, JoinHandle<()>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    (
        url,
        tokio::spawn(api::serve(listener, router, CancellationToken::new())),
    )
}

/// How often a GET is sent whose connection ends without a response.
const GET_ATTEMPTS: usize = 10;

/// Sends a request; a GET again if its connection ends without a response, as clients do. On a
/// machine loaded to 20, the service may see nothing of a connection for so long that it closes it,
/// and of a pool of connections it closes many.
async fn send(request: reqwest::RequestBuilder) -> reqwest::Response {
    let is_get = |request: &reqwest::RequestBuilder| {
        let request = request.try_clone().and_then(|request| request.build().ok());
        request.is_some_and(|request| request.method() == reqwest::Method::GET)
    };
    if is_get(&request) {
        for _ in 1..GET_ATTEMPTS {
            match request.try_clone().unwrap().send().await {
                Err(error) if error.is_request() => {}
                response => return response.unwrap(),
            }
        }
    }
    request.send().await.unwrap()
}

/// A complete response.
#[derive(Debug)]
pub struct HttpResponse {
    pub status: u16,
    pub headers: HeaderMap,
    pub bytes: Vec<u8>,
}

impl HttpResponse {
    async fn of(request: reqwest::RequestBuilder) -> Self {
        let response = send(request).await;
        let (status, headers) = (response.status().as_u16(), response.headers().clone());
        Self {
            status,
            headers,
            bytes: response.bytes().await.unwrap().to_vec(),
        }
    }

    /// The body as JSON.
    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.bytes).unwrap_or_else(|_| panic!("not JSON: {}", self.text()))
    }

    /// The response, which must have this status.
    #[track_caller]
    pub fn expect(self, status: u16) -> Self {
        assert_eq!(self.status, status, "{}", self.text());
        self
    }

    /// The id in the response, which must have this status.
    #[track_caller]
    pub fn created(self, status: u16) -> String {
        super::text(&self.expect(status).json()["id"])
    }

    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.bytes).into_owned()
    }

    /// A header's text; empty when absent.
    pub fn header(&self, name: &str) -> &str {
        self.headers
            .get(name)
            .map_or("", |value| value.to_str().unwrap())
    }

    /// `200`, or `400 invalid_request` for an error in the specified form.
    pub fn kind(&self) -> String {
        if self.status < 400 {
            return self.status.to_string();
        }
        let json = self.json();
        let (error, keys) = (
            &json["error"],
            json.as_object().map_or(0, serde_json::Map::len),
        );
        assert!(
            keys == 1 && error["message"].is_string(),
            "not the specified error form: {json}"
        );
        format!(
            "{} {}",
            self.status,
            error["type"].as_str().unwrap_or_default()
        )
    }

    /// An error's message.
    pub fn message(&self) -> String {
        self.json()["error"]["message"]
            .as_str()
            .unwrap_or_default()
            .to_owned()
    }
}

impl TestApp {
    /// A service without a database.
    pub async fn start() -> Self {
        Self::builder().start().await
    }

    pub fn builder() -> TestAppBuilder {
        TestAppBuilder::default()
    }

    pub fn url(&self) -> &str {
        &self.url
    }

    pub fn admin_url(&self) -> &str {
        &self.admin_url
    }

    pub async fn post(&self, path: &str, body: &Value) -> HttpResponse {
        self.post_as(KEY, path, body).await
    }

    pub async fn post_as(&self, key: &str, path: &str, body: &Value) -> HttpResponse {
        self.ask_as(key, "POST", path, Some(body)).await
    }

    pub async fn get(&self, path: &str) -> HttpResponse {
        self.get_as(KEY, path).await
    }

    pub async fn get_as(&self, key: &str, path: &str) -> HttpResponse {
        self.ask_as(key, "GET", path, None).await
    }

    pub async fn ask(&self, method: &str, path: &str, body: Option<&Value>) -> HttpResponse {
        self.ask_as(KEY, method, path, body).await
    }

    pub async fn ask_as(
        &self,
        key: &str,
        method: &str,
        path: &str,
        body: Option<&Value>,
    ) -> HttpResponse {
        let request = self.request(method, path).header("x-api-key", key);
        let request = body
            .iter()
            .fold(request, |request, body| request.json(body));
        self.send(request).await
    }

    pub async fn delete(&self, path: &str) -> HttpResponse {
        self.ask("DELETE", path, None).await
    }

    /// Posts with this idempotency key.
    pub async fn post_with_key(&self, once: &str, path: &str, body: &Value) -> HttpResponse {
        let request = self.request("POST", path).header("x-api-key", KEY);
        self.send(request.header("idempotency-key", once).json(body))
            .await
    }

    /// Sends a request to the admin listener.
    pub async fn admin(&self, path: &str) -> HttpResponse {
        self.send(self.http.get(format!("{}{path}", self.admin_url)))
            .await
    }

    /// A request without a key, for the test to complete.
    pub fn request(&self, method: &str, path: &str) -> reqwest::RequestBuilder {
        self.http
            .request(method.parse().unwrap(), format!("{}{path}", self.url()))
    }

    pub async fn send(&self, request: reqwest::RequestBuilder) -> HttpResponse {
        HttpResponse::of(request).await
    }
}
