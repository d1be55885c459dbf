//! A list of the API as a table.

use std::io::Write as _;

use farescan_sheets::sheet::Table;
use serde::de::DeserializeOwned;

use super::Failure;
use super::client::ServiceSession;
use super::format::zone;
use super::pages::{Query, page_limit, print_lines, print_nothing, rows};
use super::render::sheet;
use super::wrap::note;

/// Prints the rows of a list, at most so many, as a table, or what it means that there are none; as
/// JSON each row on a line.
pub async fn print_table<T: DeserializeOwned>(
    session: &ServiceSession,
    query: Query,
    most: Option<usize>,
    nothing: &str,
    table: impl AsyncFnOnce(&[T]) -> Result<Table, Failure>,
) -> Result<(), Failure> {
    let path = query.with("limit", Some(page_limit(most))).path();
    if session.json {
        return print_lines(session, &path, None).await;
    }
    let rows: Vec<T> = rows(&session.client, &path, most).await?;
    if rows.is_empty() {
        return print_nothing(&session.client, nothing).await;
    }
    let table = table(&rows).await?;
    writeln!(
        anstream::stdout(),
        "{}",
        sheet::table(&table, session.screen)
    )?;
    note!("Times in {}.", zone());
    Ok(())
}
