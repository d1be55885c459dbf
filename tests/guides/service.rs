//! What the commands of a guide need: a service with a sandbox behind it, a worker, monitors that
//! run, webhooks on this machine that are delivered, and the program itself.

use std::path::Path;
use std::sync::Arc;

use farescan::upstream::Client;
use farescan::webhooks::Sender;
use farescan::worker::WorkerDeps;
use tokio::task::JoinHandle;

use crate::monitors::{tick, ticker};
use crate::operation::process::program;
use crate::support::TestService;
use crate::support::app::{TestApp, ring};
use crate::support::sandbox::start_sandbox;
use crate::webhooks::harness::{RunningDeliverer, TRY_TIME, TestResolver, deliver, guard};
use crate::worker::fixture::{LEASE_SECONDS, RunningWorker};
use farescan::config::WorkerConfig;

pub struct GuideService {
    service: TestService,
    _worker: RunningWorker,
    _deliverer: RunningDeliverer,
    ticks: JoinHandle<()>,
}

impl Drop for GuideService {
    fn drop(&mut self) {
        self.ticks.abort();
    }
}

impl GuideService {
    pub async fn start() -> Self {
        let sandbox = start_sandbox(None).await;
        let upstream = sandbox.clone();
        let builder = TestApp::builder()
            .config(move |config| *config = upstream)
            .state(|app| app.with_webhook_guard(guard()));
        let service = TestService::start_with(builder).await;
        let worker = RunningWorker::start(WorkerDeps {
            pool: service.pool().clone(),
            ring: Arc::new(ring()),
            upstream: Client::new(&sandbox).unwrap(),
            config: WorkerConfig {
                worker_concurrency: 8,
                lease_seconds: LEASE_SECONDS,
                ..WorkerConfig::default()
            },
        });
        // No name is resolved: only addresses of this machine are contacted.
        let sender = Sender::with_resolver(guard(), Arc::new(TestResolver::default())).unwrap();
        let deliverer = deliver(service.pool(), sender.with_timeout(TRY_TIME));
        let pool = service.pool().clone();
        let ticks = tokio::spawn(async move {
            loop {
                let done = tick(&ticker(&pool), jiff::Timestamp::now()).await;
                if done.is_err() {
                    return;
                }
                tokio::time::sleep(std::time::Duration::from_millis(100)).await;
            }
        });
        Self {
            service,
            _worker: worker,
            _deliverer: deliverer,
            ticks,
        }
    }

    /// Only what the guides name, and the program in the path.
    pub fn set_environment(&self, bash: &mut tokio::process::Command, home: &Path) {
        let program = program();
        let path = std::env::var("PATH").unwrap_or_default();
        let folder = program.parent().unwrap().display();
        let admin = self.service.admin_url().trim_start_matches("http://");
        bash.env_clear()
            .env("PATH", format!("{folder}:{path}"))
            .env("HOME", home)
            .env("TZ", "UTC")
            .env("COLUMNS", "100")
            .env("FARESCAN_URL", self.service.url())
            .env("FARESCAN_API_KEY", farescan::sandbox::DEMO_KEY)
            .env("FARESCAN_ADMIN_LISTEN", admin);
    }
}
