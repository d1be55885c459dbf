//! Checks periodically whether new database sessions work.
//!
//! A package upgrade replaces a server's files at run time. Open sessions keep the libraries they
//! have loaded; new ones cannot load `plpgsql`. The pool then seems healthy, but more and more
//! statements fail until a restart. So every few seconds a new session runs a line of PL/pgSQL, and
//! the embedded server's version is compared with that of its files. `/readyz` shows the result
//! ([`SessionHealth`]). The embedded server is restarted once all processes that use it agree.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use sqlx::postgres::PgConnectOptions;
use sqlx::{ConnectOptions as _, Connection as _, PgConnection};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use super::embedded::{EmbeddedError, EmbeddedServer, RestartOutcome};
use super::{cause, is_library_error, with_timeout};

/// Interval between checks.
const CHECK_INTERVAL: Duration = Duration::from_secs(5);
/// Consecutive bad results before a restart: a package upgrade takes a moment.
const BAD_BEFORE_RESTART: u32 = 2;
/// Consecutive good results after which another restart is allowed: half an hour.
const RESET_AFTER_GOOD: u32 = 360;

/// The last result: `None`, or why new sessions fail.
pub type SessionHealth = watch::Receiver<Option<Arc<str>>>;

/// The periodic check; see the module.
#[derive(Debug)]
pub struct SessionCheck {
    options: PgConnectOptions,
    server: Option<Arc<Mutex<EmbeddedServer>>>,
    health: watch::Sender<Option<Arc<str>>>,
    bad_count: u32,
    healthy_count: u32,
    /// The server was restarted for the current problem.
    is_restarted: bool,
    /// This process has agreed to a restart and waits for the others.
    is_waiting: bool,
    /// Why no session could be opened, as logged; empty: the last one worked.
    unavailable: String,
    /// Last logged reason why a restart failed.
    restart_error: String,
}

/// The result of one check.
#[derive(Debug, Clone, PartialEq, Eq)]
enum CheckResult {
    Healthy,
    /// No session was opened. Pools retry what is refused and then say only that they timed out.
    Unavailable(String),
    /// New sessions cannot load their libraries.
    Damaged(String),
    /// The server works, but its files have another version.
    Outdated {
        running: String,
        installed: String,
    },
}

impl SessionCheck {
    /// `server`: the embedded one, if used.
    pub(super) fn new(
        options: PgConnectOptions,
        server: Option<Arc<Mutex<EmbeddedServer>>>,
    ) -> Self {
        let health = watch::Sender::new(None);
        Self {
            options,
            server,
            health,
            bad_count: 0,
            healthy_count: 0,
            is_restarted: false,
            is_waiting: false,
            unavailable: String::new(),
            restart_error: String::new(),
        }
    }

    pub fn health(&self) -> SessionHealth {
        self.health.subscribe()
    }

    /// Checks until `stop`.
    pub async fn run(mut self, stop: CancellationToken) {
        loop {
            let finding = self.check().await;
            self.report(&finding);
            self.restart_if_needed(&finding).await;
            tokio::select! {
                () = stop.cancelled() => return,
                () = tokio::time::sleep(CHECK_INTERVAL) => {}
            }
        }
    }

    async fn check(&self) -> CheckResult {
        let running = match with_timeout(new_session(&self.options)).await {
            Ok(running) => running,
            Err(sqlx::Error::Database(error)) if is_library_error(error.as_ref()) => {
                return CheckResult::Damaged(error.message().to_owned());
            }
            Err(error) => return CheckResult::Unavailable(cause(&error)),
        };
        match self.with_server(EmbeddedServer::installed_version).await {
            Some(Ok(installed)) if installed != running => {
                CheckResult::Outdated { running, installed }
            }
            _ => CheckResult::Healthy,
        }
    }

    /// Publishes the result and logs changes.
    fn report(&mut self, finding: &CheckResult) {
        match finding {
            CheckResult::Healthy => {
                (self.bad_count, self.healthy_count) = (0, self.healthy_count.saturating_add(1));
                self.unavailable.clear();
                if self.health.send_replace(None).is_some() {
                    tracing::info!("new database sessions work again");
                }
            }
            CheckResult::Unavailable(error) => {
                self.healthy_count = 0;
                if *error != self.unavailable {
                    tracing::warn!(error, "a new database session failed");
                    self.unavailable.clone_from(error);
                }
            }
            CheckResult::Damaged(error) => {
                (self.bad_count, self.healthy_count) = (self.bad_count.saturating_add(1), 0);
                let message = format!(
                    "new database sessions fail ({error}): the server's files were replaced or removed while it ran; {}",
                    if self.server.is_some() {
                        "stop or restart every process that uses it"
                    } else {
                        "restart the server"
                    }
                );
                if self.health.borrow().is_none() {
                    tracing::error!("{message}");
                }
                self.health.send_replace(Some(message.into()));
            }
            CheckResult::Outdated { running, installed } => {
                (self.bad_count, self.healthy_count) = (self.bad_count.saturating_add(1), 0);
                self.health.send_replace(None);
                if self.bad_count == 1 {
                    tracing::warn!(%running, %installed, "the running database server and its files differ in version; restart it");
                }
            }
        }
    }

    /// Restarts the embedded server if needed and if no process blocks it.
    async fn restart_if_needed(&mut self, finding: &CheckResult) {
        if self.healthy_count >= RESET_AFTER_GOOD {
            self.is_restarted = false;
        }
        let is_bad = matches!(
            finding,
            CheckResult::Damaged(_) | CheckResult::Outdated { .. }
        );
        if self.is_waiting && matches!(finding, CheckResult::Healthy) {
            self.is_waiting = false;
            if let Some(Err(error)) = self.with_server(EmbeddedServer::rejoin).await {
                tracing::warn!(%error, "failed to withdraw consent to a restart of the embedded Postgres");
            }
        } else if self.is_waiting
            || (is_bad && self.bad_count >= BAD_BEFORE_RESTART && !self.is_restarted)
        {
            let outcome = self.with_server(EmbeddedServer::restart).await;
            self.log_restart(outcome);
        }
    }

    fn log_restart(&mut self, outcome: Option<Result<RestartOutcome, EmbeddedError>>) {
        match outcome {
            None => {}
            Some(Ok(RestartOutcome::Blocked)) if self.is_waiting => {}
            Some(Ok(RestartOutcome::Blocked)) => {
                self.is_waiting = true;
                tracing::warn!("restart of the embedded Postgres waits for other processes");
            }
            Some(Ok(outcome)) => {
                (self.is_waiting, self.is_restarted) = (false, true);
                match outcome {
                    RestartOutcome::RestartedByAnother => {
                        tracing::info!("another process restarted the embedded Postgres");
                    }
                    _ => tracing::warn!("embedded Postgres restarted"),
                }
            }
            Some(Err(error)) => {
                let restart_error = error.to_string();
                if restart_error != self.restart_error {
                    tracing::error!(
                        error = restart_error,
                        "restart of the embedded Postgres failed"
                    );
                    self.restart_error = restart_error;
                }
            }
        }
    }

    /// Runs `action` on the embedded server in a blocking thread; `None` if there is none.
    async fn with_server<T: Send + 'static>(
        &self,
        action: impl FnOnce(&mut EmbeddedServer) -> T + Send + 'static,
    ) -> Option<T> {
        let server = Arc::clone(self.server.as_ref()?);
        let task = tokio::task::spawn_blocking(move || {
            action(&mut server.lock().unwrap_or_else(PoisonError::into_inner))
        });
        task.await.ok()
    }
}

/// Opens a session and runs PL/pgSQL; returns the server's version.
async fn new_session(options: &PgConnectOptions) -> sqlx::Result<String> {
    let mut connection: PgConnection = options.connect().await?;
    sqlx::raw_sql("do $$ begin null; end $$")
        .execute(&mut connection)
        .await?;
    let version = sqlx::query_scalar("select current_setting('server_version')")
        .fetch_one(&mut connection)
        .await?;
    connection.close().await?;
    Ok(version)
}
