//! Lists of the API: their queries, their pages, and as JSON one object a line.

use std::io::Write as _;

use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::value::RawValue;

use super::Failure;
use super::client::{ApiClient, ClientError, ServiceSession};
use super::wrap::note;
use farescan_contract::quota::Quota;

/// The rows of a page that a command asks for.
const PAGE_ROWS: u16 = 500;

/// A path with a query.
pub struct Query {
    path: String,
    pairs: form_urlencoded::Serializer<'static, String>,
}

impl Query {
    pub fn new(path: impl Into<String>) -> Self {
        Self {
            path: path.into(),
            pairs: form_urlencoded::Serializer::new(String::new()),
        }
    }

    /// Adds a parameter, if it has a value.
    #[must_use]
    pub fn with(mut self, name: &str, value: Option<impl ToString>) -> Self {
        if let Some(value) = value {
            self.pairs.append_pair(name, &value.to_string());
        }
        self
    }

    /// The path with its query.
    pub fn path(mut self) -> String {
        let query = self.pairs.finish();
        if query.is_empty() {
            self.path
        } else {
            format!("{}?{query}", self.path)
        }
    }
}

/// A page with its rows as text.
#[derive(Deserialize)]
struct RawPage {
    data: Vec<Box<RawValue>>,
    #[serde(default)]
    next_cursor: Option<String>,
}

/// Prints each row of a list on a line: all pages, or the first `most` rows.
pub async fn print_lines(
    session: &ServiceSession,
    path: &str,
    most: Option<usize>,
) -> Result<(), Failure> {
    let mut out = anstream::stdout();
    let mut left = most.unwrap_or(usize::MAX);
    let (mut cursor, mut is_empty) = (None, true);
    loop {
        let answer = session
            .client
            .ask(&page_path(path, cursor.as_deref()))
            .await?;
        let page: RawPage = answer.read_data()?;
        is_empty &= page.data.is_empty();
        for row in page.data.iter().take(left) {
            writeln!(out, "{}", row.get())?;
        }
        left = left.saturating_sub(page.data.len());
        match page.next_cursor.filter(|_| left > 0) {
            Some(next) => cursor = Some(next),
            None if is_empty => return check_key_is_known(&session.client).await,
            None => return Ok(()),
        }
    }
}

/// Says what an empty list means, unless the key is one that the service does not know.
///
/// # Errors
/// As [`check_key_is_known`].
pub async fn print_nothing(client: &ApiClient, meaning: &str) -> Result<(), Failure> {
    check_key_is_known(client).await?;
    note!("{meaning}");
    Ok(())
}

/// A key with a typing error owns nothing, which looks like lost data. Asked where there is nothing.
///
/// # Errors
/// The service does not know the key, or does not answer.
pub async fn check_key_is_known(client: &ApiClient) -> Result<(), Failure> {
    let quota: Quota = client.get("/v1/quota").await?;
    if quota.known_key {
        return Ok(());
    }
    Err("the service does not know this key, so it has nothing stored for it\n  next: `farescan verify` checks the key; another one comes from FARESCAN_API_KEY or `farescan login`".into())
}

/// The first page as a whole, and the rows of all pages, or the first `most`.
pub async fn collect<P: DeserializeOwned, T: DeserializeOwned>(
    client: &ApiClient,
    path: &str,
    most: Option<usize>,
) -> Result<(P, Vec<T>), ClientError> {
    let answer = client.ask(path).await?;
    let first: P = answer.read()?;
    let mut rows = Vec::new();
    let mut page: ListPage<T> = answer.read()?;
    loop {
        rows.append(&mut page.data);
        let is_enough = most.is_some_and(|most| rows.len() >= most);
        match page.next_cursor.filter(|_| !is_enough) {
            Some(next) => page = client.get(&page_path(path, Some(&next))).await?,
            None => break,
        }
    }
    rows.truncate(most.unwrap_or(usize::MAX));
    Ok((first, rows))
}

/// The rows of all pages, or the first `most`.
pub async fn rows<T: DeserializeOwned>(
    client: &ApiClient,
    path: &str,
    most: Option<usize>,
) -> Result<Vec<T>, ClientError> {
    let (_, rows): (serde::de::IgnoredAny, _) = collect(client, path, most).await?;
    Ok(rows)
}

#[derive(Deserialize)]
#[serde(bound = "T: DeserializeOwned")]
struct ListPage<T> {
    data: Vec<T>,
    #[serde(default)]
    next_cursor: Option<String>,
}

/// The largest page for a list with pages.
pub fn page_limit(most: Option<usize>) -> u16 {
    most.and_then(|most| u16::try_from(most).ok())
        .map_or(PAGE_ROWS, |most| most.clamp(1, PAGE_ROWS))
}

fn page_path(path: &str, cursor: Option<&str>) -> String {
    let Some(cursor) = cursor else {
        return path.to_owned();
    };
    let query: String = form_urlencoded::Serializer::new(String::new())
        .append_pair("cursor", cursor)
        .finish();
    let joint = if path.contains('?') { '&' } else { '?' };
    format!("{path}{joint}{query}")
}
