//! What the commands of a guide need: a service with a sandbox behind it, a worker, monitors that
//! run and the program itself. Nothing is sent to webhooks.

use std::path::Path;

use farescan::upstream::Client;
use farescan::worker::WorkerDeps;
use tokio::task::JoinHandle;

use crate::monitors::{tick, ticker};
use crate::operation::process::program;
use crate::support::TestService;
use crate::support::app::{TestApp, ring};
use crate::support::sandbox::start_sandbox;
use crate::worker::fixture::{LEASE_SECONDS, RunningWorker};
use farescan::config::WorkerConfig;

pub struct GuideService {
    service: TestService,
    _worker: RunningWorker,
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
        let builder = TestApp::builder().config(move |config| *config = upstream);
        let service = TestService::start_with(builder).await;
        let worker = RunningWorker::start(WorkerDeps {
            pool: service.pool().clone(),
            ring: std::sync::Arc::new(ring()),
            upstream: Client::new(&sandbox).unwrap(),
            config: WorkerConfig {
                worker_concurrency: 8,
                lease_seconds: LEASE_SECONDS,
                ..WorkerConfig::default()
            },
        });
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
