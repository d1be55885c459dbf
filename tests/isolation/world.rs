//! A world in which an act is played: a service on a database, with or without the twin, with or without one tenant condition.
//!
//! Every step of an act is noted: what was answered, and every row of the first tenant and of the twin afterwards. A world that plays an
//! act again, with a condition taken out, compares each step with what was noted, and ends at the first that differs.

use std::collections::BTreeSet;
use std::fmt::Display;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use farescan::queue::WorkerId;
use futures::FutureExt as _;
use serde::Serialize;
use serde_json::{Value, json};
use sqlx::postgres::{PgListener, PgPoolOptions};
use sqlx::{AssertSqlSafe, ConnectOptions as _, PgConnection, PgPool};
use uuid::Uuid;

use super::normal::Ids;
use super::statements::{Kind, Statement};
use super::twin::{self, Twin};
use crate::support::app::{KEY, TestApp};
use crate::support::db::TestDb;
use crate::support::wire::{Swap, Wire};

/// A step that has not ended by then never will: a lock is held that nobody lets go, or a wait is for nothing.
const PATIENCE: Duration = Duration::from_secs(20);

/// A difference was seen: at which step, and what.
#[derive(Debug)]
pub struct Noticed(pub String);

pub type Seen<T = ()> = Result<T, Noticed>;

/// What was noted of a step.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Note {
    pub step: String,
    pub answer: String,
    pub rows: String,
    pub twin: String,
}

/// Whose business a step is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Business {
    /// The first tenant's alone.
    Own,
    /// Its reading: no row moves.
    Reading,
    /// All tenants', the twin's too.
    All,
}

/// A condition that is not there.
#[derive(Debug, Clone)]
pub struct Without {
    pub statement: Statement,
    /// The statement without its condition.
    pub text: String,
}

pub struct World {
    pub app: TestApp,
    /// The program's own way to the database, over the wire.
    pub pool: PgPool,
    /// Who claims.
    pub worker: WorkerId,
    pub wire: Wire,
    twin: Option<Twin>,
    own: PgConnection,
    ids: Ids,
    notes: Vec<Note>,
    /// The rows as they were last looked at, before and after they were made normal: most steps change nothing.
    looked: [(String, String); 2],
    /// The first tenant's rows have changed since the twin was made like him.
    is_stale: bool,
    expected: Option<Arc<Vec<Note>>>,
    /// What is locked during the next step.
    locked: Option<&'static str>,
    /// Who listens to what scans are told of.
    ears: Option<PgListener>,
    db: TestDb,
}

/// Databases in which worlds begin: one without the twin, one with each twin.
pub struct Beginnings {
    plain: TestDb,
    twins: Vec<(Twin, TestDb)>,
}

impl Beginnings {
    pub async fn make() -> Self {
        let plain = TestDb::new().await;
        let mut conn = plain.connect_options().connect().await.unwrap();
        twin::install(&mut conn).await;
        drop(conn);
        let mut twins = Vec::new();
        for twin in Twin::ALL {
            let mut world = World::of(plain.copy().await, None, None, None).await;
            super::acts::life_of_the_twin(&mut world).await.unwrap();
            let tenant = world.tenant().await.unwrap();
            twin::adopt(&mut world.own, tenant, twin).await;
            twins.push((twin, world.db));
        }
        Self { plain, twins }
    }

    fn of(&self, twin: Option<Twin>) -> &TestDb {
        self.twins
            .iter()
            .find(|(kind, _)| Some(*kind) == twin)
            .map_or(&self.plain, |(_, db)| db)
    }
}

impl World {
    /// A world of its own; `expected` is what its steps are compared with.
    pub async fn open(
        from: &Beginnings,
        twin: Option<Twin>,
        without: Option<&Without>,
        expected: Option<Arc<Vec<Note>>>,
    ) -> Self {
        Self::of(from.of(twin).copy().await, twin, without, expected).await
    }

    async fn of(
        db: TestDb,
        twin: Option<Twin>,
        without: Option<&Without>,
        expected: Option<Arc<Vec<Note>>>,
    ) -> Self {
        let mut own = db.connect_options().connect().await.unwrap();
        let swap = match without {
            None => None,
            Some(Without { statement, text }) if statement.kind == Kind::Query => Some(Swap {
                statement: statement.sql.clone(),
                other: text.clone(),
            }),
            Some(Without { text, .. }) => {
                sqlx::raw_sql(AssertSqlSafe(text.clone()))
                    .execute(&mut own)
                    .await
                    .unwrap();
                None
            }
        };
        let wire = Wire::start(&db.connect_options(), swap);
        // Nobody waits for a lock here but for one on the twin's rows.
        let options = wire
            .options(&db.connect_options())
            .options(twin.unwrap_or(Twin::First).ways())
            .options([("lock_timeout", "1s")]);
        let pool = PgPoolOptions::new()
            .max_connections(6)
            .connect_lazy_with(options.clone());
        let app = TestApp::builder()
            .orders(pool.clone(), options)
            .start()
            .await;
        // So that its number is the same in every world.
        sqlx::raw_sql("truncate workers restart identity")
            .execute(&mut own)
            .await
            .unwrap();
        let worker = sqlx::query_scalar(
            "insert into workers (lease_until) values ('infinity') returning worker_id",
        );
        let worker = WorkerId(worker.fetch_one(&mut own).await.unwrap());
        Self {
            app,
            pool,
            worker,
            wire,
            twin,
            own,
            ids: Ids::default(),
            notes: Vec::new(),
            looked: Default::default(),
            is_stale: true,
            expected,
            locked: None,
            ears: None,
            db,
        }
    }

    /// Who stands beside the first tenant.
    pub fn twin(&self) -> Option<Twin> {
        self.twin
    }

    /// Ends it; what was noted.
    pub async fn end(self) -> Vec<Note> {
        let Self {
            app,
            pool,
            wire,
            own,
            ears,
            notes,
            db,
            ..
        } = self;
        drop((app, pool, wire, own, ears));
        db.close().await;
        notes
    }

    /// The first tenant, once it has ordered something.
    pub async fn tenant(&mut self) -> Seen<Uuid> {
        let first = "select tenant_id from tenants where not tenant_id = any ($1) order by created_at limit 1";
        let twins = Twin::ALL.map(Twin::tenant);
        let found: Option<Uuid> = sqlx::query_scalar(first)
            .bind(&twins[..])
            .fetch_optional(&mut self.own)
            .await
            .unwrap();
        found.ok_or_else(|| Noticed("there is no first tenant".to_owned()))
    }

    /// Something that the test itself arranges, unseen by the program; `$1` is the first tenant.
    pub async fn arrange(&mut self, sql: &'static str) -> Seen {
        let tenant = self.tenant().await?;
        self.is_stale = true;
        sqlx::query(sql)
            .bind(tenant)
            .execute(&mut self.own)
            .await
            .map(drop)
            .map_err(|error| Noticed(format!("{sql}: {error}")))
    }

    /// Something that the test arranges of the twin's alone, for one step; `$1` is the twin. Where there is none, nothing.
    pub async fn beside(&mut self, sql: &'static str) -> Seen {
        let Some(twin) = self.twin else { return Ok(()) };
        self.refresh(Business::Reading).await;
        sqlx::raw_sql("begin; set local session_replication_role = replica")
            .execute(&mut self.own)
            .await
            .unwrap();
        let arranged = sqlx::query(sql)
            .bind(twin.tenant())
            .execute(&mut self.own)
            .await;
        sqlx::raw_sql("commit")
            .execute(&mut self.own)
            .await
            .unwrap();
        arranged
            .map(drop)
            .map_err(|error| Noticed(format!("{sql}: {error}")))
    }

    /// Locks rows of the first tenant's during the next step, which must not wait for them; `$1` is the first tenant.
    pub fn locked(&mut self, sql: &'static str) {
        self.locked = Some(sql);
    }

    /// Listens from here on to which scans are told of.
    pub async fn listen(&mut self) -> Seen {
        let failed = |error: sqlx::Error| Noticed(format!("listening: {error}"));
        let mut ears = PgListener::connect_with(self.db.pool())
            .await
            .map_err(failed)?;
        ears.listen("farescan_scan").await.map_err(failed)?;
        self.ears = Some(ears);
        Ok(())
    }

    /// Notes which scans were told of since.
    pub async fn heard(&mut self) -> Seen {
        let failed = |error: sqlx::Error| Noticed(format!("listening: {error}"));
        let Some(mut ears) = self.ears.take() else {
            return Ok(());
        };
        sqlx::query("select pg_notify('farescan_scan', 'end')")
            .execute(&mut self.own)
            .await
            .map_err(failed)?;
        let mut heard = BTreeSet::new();
        loop {
            let told = ears.recv().await.map_err(failed)?;
            if told.payload() == "end" {
                return self
                    .note("heard".to_owned(), json!(heard).to_string())
                    .await;
            }
            heard.insert(told.payload().to_owned());
        }
    }

    /// An order whose key passes on to a new caller after it was looked up whose key it is, and before that is held.
    pub async fn ask_while_the_key_passes_on(&mut self, path: &str, body: Value) -> Seen {
        self.refresh(Business::All).await;
        let first = self.tenant().await?;
        let (step, own) = (
            format!("POST {path}, while the key passes on"),
            &mut self.own,
        );
        // Whoever reads goes on, whoever locks a row waits.
        sqlx::raw_sql("begin; lock table tenant_keys in exclusive mode")
            .execute(&mut *own)
            .await
            .unwrap();
        let asked = self.app.send(
            self.app
                .request("POST", path)
                .header("x-api-key", KEY)
                .json(&body),
        );
        let pass_on = async {
            let waits = "select exists (select from pg_locks where relation = 'tenant_keys'::regclass and not granted)";
            while !sqlx::query_scalar::<_, bool>(waits)
                .fetch_one(&mut *own)
                .await?
            {
                tokio::time::sleep(Duration::from_millis(2)).await;
            }
            let newcomer = Uuid::from_u128(0xabcd);
            sqlx::query("insert into tenants values ($1, now())")
                .bind(newcomer)
                .execute(&mut *own)
                .await?;
            let pass = sqlx::query("update tenant_keys set tenant_id = $1 where tenant_id = $2")
                .bind(newcomer)
                .bind(first);
            pass.execute(&mut *own).await?;
            sqlx::raw_sql("commit").execute(&mut *own).await.map(drop)
        };
        let both = async { tokio::join!(asked, pass_on) };
        let Ok((answer, passed)) = tokio::time::timeout(PATIENCE, both).await else {
            return Err(Noticed(format!("{step}: no answer")));
        };
        passed.map_err(|error| Noticed(format!("{step}: {error}")))?;
        self.note(step, format!("{} {}", answer.status, answer.text()))
            .await
    }

    /// The id of something that only the twin has; where there is no twin, one that nothing has.
    pub async fn foreign(&mut self, sql: &'static str, prefix: &str) -> Seen<String> {
        let found = match self.twin {
            Some(_) => sqlx::query_scalar(sql)
                .fetch_one(&mut self.own)
                .await
                .map_err(|error| Noticed(format!("{sql}: {error}")))?,
            None => Uuid::now_v7(),
        };
        Ok(format!("{prefix}_{}", found.simple()))
    }

    /// A request of the first tenant.
    pub async fn ask(&mut self, method: &str, path: &str, body: Option<Value>) -> Seen<Value> {
        self.ask_with(method, path, &[], body).await
    }

    pub async fn get(&mut self, path: &str) -> Seen<Value> {
        self.ask("GET", path, None).await
    }

    pub async fn post(&mut self, path: &str, body: Value) -> Seen<Value> {
        self.ask("POST", path, Some(body)).await
    }

    /// A request of the first tenant with more headers.
    pub async fn ask_with(
        &mut self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: Option<Value>,
    ) -> Seen<Value> {
        self.ask_as(KEY, method, path, headers, body).await
    }

    /// A request with this key.
    pub async fn ask_as(
        &mut self,
        key: &str,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: Option<Value>,
    ) -> Seen<Value> {
        self.refresh(if method == "GET" {
            Business::Reading
        } else {
            Business::Own
        })
        .await;
        let mut request = self.app.request(method, path).header("x-api-key", key);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        if let Some(body) = &body {
            request = request.json(body);
        }
        let step = format!("{method} {path}");
        let Ok(answer) = tokio::time::timeout(PATIENCE, self.app.send(request)).await else {
            return Err(Noticed(format!("{step}: no answer")));
        };
        let link = answer.headers.contains_key("link");
        let text = format!(
            "{} {}{}",
            answer.status,
            if link { "with a next page " } else { "" },
            answer.text()
        );
        self.note(step, text).await?;
        Ok(serde_json::from_slice(&answer.bytes).unwrap_or_default())
    }

    /// A move of the queue, or of a sweep.
    pub async fn work<T: Serialize, E: Display>(
        &mut self,
        step: &str,
        work: impl Future<Output = Result<T, E>>,
    ) -> Seen<T> {
        self.work_on(Business::Own, step, work).await
    }

    pub async fn work_on<T: Serialize, E: Display>(
        &mut self,
        business: Business,
        step: &str,
        work: impl Future<Output = Result<T, E>>,
    ) -> Seen<T> {
        self.refresh(business).await;
        // A move that breaks off is one more way to notice something.
        let Ok(done) = AssertUnwindSafe(tokio::time::timeout(PATIENCE, work))
            .catch_unwind()
            .await
        else {
            return Err(Noticed(format!("{step}: it breaks off")));
        };
        match done {
            Ok(Ok(done)) => {
                self.note(step.to_owned(), json!(done).to_string()).await?;
                Ok(done)
            }
            Ok(Err(error)) => Err(Noticed(format!("{step}: {error}"))),
            Err(_) => Err(Noticed(format!("{step}: it does not end"))),
        }
    }

    /// The twin as the first tenant is now; and while a step goes on that is none of the twin's business, all its rows are locked: who
    /// waits for one of them has reached too far.
    async fn refresh(&mut self, business: Business) {
        if let Some(twin) = self.twin
            && std::mem::take(&mut self.is_stale)
        {
            let first = self.tenant().await.unwrap_or_default();
            twin::refresh(&mut self.own, first, twin).await;
        }
        let locked = self.locked.take_if(|_| business != Business::Reading);
        if business != Business::Own && locked.is_none() {
            return;
        }
        sqlx::raw_sql("begin").execute(&mut self.own).await.unwrap();
        if let Some(twin) = self.twin
            && business == Business::Own
        {
            sqlx::query("select isolation.hold($1)")
                .bind(twin.tenant())
                .execute(&mut self.own)
                .await
                .unwrap();
        }
        if let Some(sql) = locked {
            let first = self.tenant().await.unwrap_or_default();
            sqlx::query(sql)
                .bind(first)
                .execute(&mut self.own)
                .await
                .unwrap();
        }
    }

    /// The rows of the first tenant and of the twin.
    async fn look(&mut self) -> [String; 2] {
        sqlx::raw_sql("rollback")
            .execute(&mut self.own)
            .await
            .unwrap();
        let first = self.tenant().await.unwrap_or_default();
        let rows = self.rows(first).await;
        if self.looked[0].0 != rows {
            self.is_stale = true;
            self.looked[0] = (rows.clone(), self.ids.normal(&rows));
        }
        if let Some(side) = self.twin {
            let twin = self.rows(side.tenant()).await;
            if self.looked[1].0 != twin {
                self.is_stale = true;
                self.looked[1] = (twin.clone(), self.ids.normal_of_twin(&twin));
            }
        }
        self.looked.clone().map(|(_, normal)| normal)
    }

    async fn rows(&mut self, tenant: Uuid) -> String {
        let rows = sqlx::query_scalar("select coalesce(isolation.rows($1)::text, '')").bind(tenant);
        rows.fetch_one(&mut self.own).await.unwrap()
    }

    async fn note(&mut self, step: String, answer: String) -> Seen {
        let answer = self.ids.normal(&answer);
        let is_reading = step.starts_with("GET ");
        let step = self.ids.normal(&step);
        // What is only read moves no rows.
        let [rows, twin] = if is_reading {
            Default::default()
        } else {
            self.look().await
        };
        let note = Note {
            step,
            answer,
            rows,
            twin,
        };
        if let Some(expected) = &self.expected {
            let told = expected.get(self.notes.len()).map_or_else(
                || Some("one step more".to_owned()),
                |noted| note.differs(noted),
            );
            if let Some(told) = told {
                return Err(Noticed(format!("{}: {told}", note.step)));
            }
        }
        self.notes.push(note);
        Ok(())
    }
}

impl Note {
    /// What differs from what was noted before; the twin is compared where both have one.
    pub fn differs(&self, noted: &Self) -> Option<String> {
        let parts = [
            ("another step", &self.step, &noted.step),
            ("another answer", &self.answer, &noted.answer),
            ("other rows", &self.rows, &noted.rows),
            ("other rows of the twin", &self.twin, &noted.twin),
        ];
        let (what, now, then) = parts
            .into_iter()
            .find(|(_, now, then)| !then.is_empty() && !now.is_empty() && now != then)?;
        let same = now
            .bytes()
            .zip(then.bytes())
            .take_while(|(one, other)| one == other)
            .count();
        Some(format!(
            "{what}: {} instead of {}",
            around(now, same),
            around(then, same)
        ))
    }
}

/// A few words about this place.
fn around(text: &str, at: usize) -> String {
    let text: Vec<char> = text.chars().collect();
    let from = at.saturating_sub(60).min(text.len());
    text[from..(at + 50).min(text.len())].iter().collect()
}
