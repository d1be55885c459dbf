//! Whether new sessions of the database can work, looked at all the time.
//!
//! A package upgrade replaces a server's files while the server runs. Sessions that are open go on with what they have loaded, new ones
//! cannot load `plpgsql`: the pool looks well, statements fail more and more, and waiting mends nothing. So a fresh session runs a line of
//! PL/pgSQL every few seconds, and of an embedded server the version of its files is compared with its own. [`Condition`] has the finding for
//! `/readyz`. The embedded server is restarted, once, when every process that uses it has found the same.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use sqlx::postgres::PgConnectOptions;
use sqlx::{ConnectOptions as _, Connection as _, PgConnection};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use super::embedded::{EmbeddedError, Renewal, Server};
use super::{in_time, is_damage};

/// How often is looked.
const EVERY: Duration = Duration::from_secs(5);
/// Findings in a row before the server is restarted: a package manager is at it for a moment.
const BEFORE_A_RESTART: u32 = 2;
/// Good looks in a row after which another restart would be for another reason: half an hour.
const FORGOTTEN_AFTER: u32 = 360;

/// What was found last: `None`, or why new sessions cannot work.
pub type Condition = watch::Receiver<Option<Arc<str>>>;

/// The looking; see the module.
#[derive(Debug)]
pub struct Checkup {
    options: PgConnectOptions,
    server: Option<Arc<Mutex<Server>>>,
    condition: watch::Sender<Option<Arc<str>>>,
    bad: u32,
    good: u32,
    /// The server was restarted for what is found.
    is_restarted: bool,
    /// This process has agreed to a restart and waits for others.
    is_waiting: bool,
    /// Why the last restart did not come about, as it was logged.
    obstacle: String,
}

/// What one look found.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Finding {
    Good,
    /// It does not answer now, which others see as well.
    Away,
    /// New sessions cannot load what they need.
    Damaged(String),
    /// It works, with files of another version beside it.
    Outdated {
        running: String,
        installed: String,
    },
}

impl Checkup {
    /// Of the server that the options lead to; `server`: it is the program's own.
    pub(super) fn new(options: PgConnectOptions, server: Option<Arc<Mutex<Server>>>) -> Self {
        let condition = watch::Sender::new(None);
        Self {
            options,
            server,
            condition,
            bad: 0,
            good: 0,
            is_restarted: false,
            is_waiting: false,
            obstacle: String::new(),
        }
    }

    /// Where the findings are.
    #[must_use]
    pub fn condition(&self) -> Condition {
        self.condition.subscribe()
    }

    /// Looks until `stop`.
    pub async fn run(mut self, stop: CancellationToken) {
        loop {
            let finding = self.look().await;
            self.tell(&finding);
            self.act(&finding).await;
            tokio::select! {
                () = stop.cancelled() => return,
                () = tokio::time::sleep(EVERY) => {}
            }
        }
    }

    async fn look(&self) -> Finding {
        let running = match in_time(new_session(&self.options)).await {
            Ok(running) => running,
            Err(sqlx::Error::Database(error)) if is_damage(error.as_ref()) => {
                return Finding::Damaged(error.message().to_owned());
            }
            Err(_) => return Finding::Away,
        };
        match self.with_server(Server::installed_version).await {
            Some(Ok(installed)) if installed != running => Finding::Outdated { running, installed },
            _ => Finding::Good,
        }
    }

    /// Notes the finding, and logs it when it is new.
    fn tell(&mut self, finding: &Finding) {
        match finding {
            Finding::Good => {
                (self.bad, self.good) = (0, self.good.saturating_add(1));
                if self.condition.send_replace(None).is_some() {
                    tracing::info!("new database sessions work again");
                }
            }
            Finding::Away => self.good = 0,
            Finding::Damaged(error) => {
                (self.bad, self.good) = (self.bad.saturating_add(1), 0);
                let why = format!(
                    "new database sessions cannot work ({error}): the files of the database server were replaced or removed while it ran; {}",
                    if self.server.is_some() {
                        "end every process that uses it, or restart them"
                    } else {
                        "restart the server"
                    }
                );
                if self.condition.borrow().is_none() {
                    tracing::error!("{why}");
                }
                self.condition.send_replace(Some(why.into()));
            }
            Finding::Outdated { running, installed } => {
                (self.bad, self.good) = (self.bad.saturating_add(1), 0);
                self.condition.send_replace(None);
                if self.bad == 1 {
                    tracing::warn!(%running, %installed, "the database server is older than its files: it has to be restarted");
                }
            }
        }
    }

    /// Restarts an embedded server that needs it, if nobody objects.
    async fn act(&mut self, finding: &Finding) {
        if self.good >= FORGOTTEN_AFTER {
            self.is_restarted = false;
        }
        let is_bad = matches!(finding, Finding::Damaged(_) | Finding::Outdated { .. });
        if self.is_waiting && matches!(finding, Finding::Good) {
            self.is_waiting = false;
            if let Some(Err(error)) = self.with_server(Server::rejoin).await {
                tracing::warn!(%error, "the embedded Postgres is used by this process, and others do not see that");
            }
        } else if self.is_waiting || (is_bad && self.bad >= BEFORE_A_RESTART && !self.is_restarted)
        {
            let renewal = self.with_server(Server::renew).await;
            self.note(renewal);
        }
    }

    fn note(&mut self, renewal: Option<Result<Renewal, EmbeddedError>>) {
        match renewal {
            None => {}
            Some(Ok(Renewal::Objected)) if self.is_waiting => {}
            Some(Ok(Renewal::Objected)) => {
                self.is_waiting = true;
                tracing::warn!(
                    "the embedded Postgres is restarted as soon as every process that uses it agrees"
                );
            }
            Some(Ok(renewal)) => {
                (self.is_waiting, self.is_restarted) = (false, true);
                tracing::warn!(
                    ?renewal,
                    "the embedded Postgres was restarted with the files that are there now"
                );
            }
            Some(Err(error)) => {
                let obstacle = error.to_string();
                if obstacle != self.obstacle {
                    tracing::error!(
                        error = obstacle,
                        "the embedded Postgres cannot be restarted"
                    );
                    self.obstacle = obstacle;
                }
            }
        }
    }

    /// Does something with the embedded server, on a thread that may wait; `None`: there is none.
    async fn with_server<T: Send + 'static>(
        &self,
        act: impl FnOnce(&mut Server) -> T + Send + 'static,
    ) -> Option<T> {
        let server = Arc::clone(self.server.as_ref()?);
        let acted = tokio::task::spawn_blocking(move || {
            act(&mut server.lock().unwrap_or_else(PoisonError::into_inner))
        });
        acted.await.ok()
    }
}

/// What a session needs before anything else; gives the server's version.
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
