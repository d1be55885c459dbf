//! All SQL of the program: the checked statements, and the functions and views of the migrations as a database has them.

use std::path::Path;

use serde_json::Value;
use sqlx::PgPool;

use crate::support::text;

/// One text of SQL.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Statement {
    /// `query 028ab696`, `function claim`, `view shown_scans`.
    pub name: String,
    pub sql: String,
    pub kind: Kind,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// In the program, checked against the database when it was built.
    Query,
    /// In the database: its text is what makes it anew.
    Definition,
}

impl Statement {
    /// Whether it is the definition of this name, or a query that begins with these words.
    pub fn is(&self, words: &str) -> bool {
        match self.kind {
            Kind::Definition => self.name == words,
            Kind::Query => self.words().starts_with(words),
        }
    }

    /// Its text on one line.
    pub fn words(&self) -> String {
        self.sql.split_whitespace().collect::<Vec<_>>().join(" ")
    }
}

/// Every checked query of the program, from `.sqlx`.
pub fn queries() -> Vec<Statement> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join(".sqlx");
    let mut found: Vec<_> = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| {
            let path = entry.unwrap().path();
            let digest = path
                .file_stem()
                .unwrap()
                .to_str()
                .unwrap()
                .trim_start_matches("query-")[..8]
                .to_owned();
            let described: Value = serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap();
            Statement {
                name: format!("query {digest}"),
                sql: text(&described["query"]),
                kind: Kind::Query,
            }
        })
        .collect();
    found.sort_by(|one, other| one.name.cmp(&other.name));
    assert!(found.len() > 50, "the checked queries are in .sqlx");
    found
}

/// Every function and view of a migrated database, as a statement that makes it anew.
pub async fn definitions(pool: &PgPool) -> Vec<Statement> {
    let all: Vec<(String, String)> = rows!(pool, "select 'function ' || proname, pg_get_functiondef(p.oid) from pg_proc p where pronamespace = 'public'::regnamespace
         union all
         select 'view ' || relname, 'create or replace view ' || relname || ' as ' || pg_get_viewdef(c.oid) from pg_class c
         where relkind = 'v' and relnamespace = 'public'::regnamespace
         order by 1");
    all.into_iter()
        .map(|(name, sql)| Statement {
            name,
            sql,
            kind: Kind::Definition,
        })
        .collect()
}
