//! A database of its own for each test, on the server that `DATABASE_URL` names.

use std::str::FromStr as _;

use sqlx::postgres::{PgConnectOptions, PgPoolOptions};
use sqlx::{ConnectOptions as _, PgPool};

pub async fn fresh() -> PgPool {
    let url = std::env::var("DATABASE_URL").expect("DATABASE_URL names a Postgres for the tests");
    let options = PgConnectOptions::from_str(&url).unwrap();
    let name = format!("test_{}", farescan::ids::ScanId::new().uuid().simple());
    let mut server = options.clone().database("postgres").connect().await.unwrap();
    sqlx::raw_sql(sqlx::AssertSqlSafe(format!("create database {name}"))).execute(&mut server).await.unwrap();
    let pool = PgPoolOptions::new().max_connections(20).connect_with(options.database(&name)).await.unwrap();
    farescan::db::migrate(&pool).await.unwrap();
    pool
}
