//! Lists as files: every row of a list as CSV, NDJSON or Parquet, written while it is read.
//!
//! Here: which form a request wants ([`Wanted`]), and the answer that streams it. A row is written when the client has room for it, so
//! what is held is a chunk and the rest of a page, whatever the length of the list; of Parquet, whose columns lie apart, a row group. Not
//! here: how rows are read (`paging`, the lists).

mod cells;
mod parquet;
mod wanted;

use std::pin::Pin;

use axum::body::Body;
use axum::http::HeaderValue;
use axum::http::header::{CONTENT_DISPOSITION, CONTENT_TYPE, VARY};
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use futures::stream::{BoxStream, Peekable};
use futures::{Stream, StreamExt as _, stream};
use serde::Serialize;
use utoipa::ToSchema;

pub(super) use self::cells::Columns;
pub(super) use self::wanted::{JsonOnly, Wanted};
use super::bounds::Permit;
use super::error::ApiError;
use crate::paging::PageError;

/// How large a chunk of the body grows before it is sent.
const CHUNK_BYTES: usize = 32 * 1024;

/// The rows of a row group: enough for its dictionaries to pay, some megabytes while it is collected.
const GROUP_ROWS: usize = 10_000;
/// What a row group may hold of JSON before it is closed, however few rows that is: whole answers are large.
const GROUP_BYTES: usize = 8 * 1024 * 1024;

/// A form that is streamed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Form {
    /// RFC 4180, UTF-8, with a header row.
    Csv,
    /// One JSON object a line.
    Ndjson,
    /// Apache Parquet.
    Parquet,
}

impl Form {
    const fn media_type(self) -> &'static str {
        match self {
            Self::Csv => "text/csv",
            Self::Ndjson => "application/x-ndjson",
            Self::Parquet => "application/vnd.apache.parquet",
        }
    }

    const fn content_type(self) -> HeaderValue {
        match self {
            Self::Csv => HeaderValue::from_static("text/csv; charset=utf-8; header=present"),
            Self::Ndjson => HeaderValue::from_static("application/x-ndjson"),
            Self::Parquet => HeaderValue::from_static("application/vnd.apache.parquet"),
        }
    }

    const fn extension(self) -> &'static str {
        match self {
            Self::Csv => "csv",
            Self::Ndjson => "ndjson",
            Self::Parquet => "parquet",
        }
    }
}

/// An answer in the form that `Accept` asked for, so that caches do not give it to others.
pub(super) fn varied(answer: impl IntoResponse) -> Response {
    ([(VARY, HeaderValue::from_static("accept"))], answer).into_response()
}

/// Streams rows into a file `name` with the extension of its form. `columns` are those of CSV; `permits` are held until it has ended.
///
/// # Errors
/// What the first rows say: after that an error breaks the body off, so that what is not whole never looks so.
pub(super) async fn export<Row: Serialize + ToSchema + Send + 'static>(
    form: Form,
    name: &str,
    columns: Columns,
    rows: impl Stream<Item = Result<Row, PageError>> + Send + 'static,
    permits: [Permit; 2],
) -> Result<Response, ApiError> {
    let mut rows = rows.boxed().peekable();
    if let Some(Err(error)) = Pin::new(&mut rows).next_if(Result::is_err).await {
        return Err(error.into());
    }
    let sheet = match form {
        Form::Csv => Sheet::Csv {
            columns,
            begun: false,
        },
        Form::Ndjson => Sheet::Ndjson,
        Form::Parquet => Sheet::Parquet(Some(Box::new(
            parquet::Writer::of::<Row>().map_err(ApiError::internal)?,
        ))),
    };
    let file = File {
        rows,
        sheet,
        _permits: permits,
    };
    let body = stream::try_unfold(file, |mut file| async {
        let chunk = file
            .chunk()
            .await
            .inspect_err(|error| tracing::warn!(%error, "an export breaks off"))?;
        Ok::<_, WriteError>(chunk.map(|chunk| (chunk, file)))
    });
    // Ids and words of ours: a header takes them.
    let disposition = HeaderValue::try_from(format!(
        "attachment; filename=\"{name}.{}\"",
        form.extension()
    ))
    .ok();
    let mut answer = varied(Body::from_stream(body));
    answer
        .headers_mut()
        .insert(CONTENT_TYPE, form.content_type());
    answer
        .headers_mut()
        .extend(disposition.map(|disposition| (CONTENT_DISPOSITION, disposition)));
    Ok(answer)
}

/// Why a file is not written to its end. Its reader sees the connection break, the log the reason.
#[derive(Debug, thiserror::Error)]
enum WriteError {
    #[error(transparent)]
    Read(#[from] PageError),
    #[error(transparent)]
    Csv(#[from] csv::Error),
    #[error(transparent)]
    Json(#[from] serde_json::Error),
    #[error(transparent)]
    Parquet(#[from] ::parquet::errors::ParquetError),
    #[error("the program ends")]
    Ends(#[from] tokio::task::JoinError),
}

/// A file that is being written.
struct File<Row> {
    rows: Peekable<BoxStream<'static, Result<Row, PageError>>>,
    sheet: Sheet,
    _permits: [Permit; 2],
}

/// What it is written in, and how far it is.
enum Sheet {
    Csv {
        columns: Columns,
        /// Whether the header row is written.
        begun: bool,
    },
    Ndjson,
    /// None: the file is whole.
    Parquet(Option<Box<parquet::Writer>>),
}

impl<Row: Serialize> File<Row> {
    /// The next bytes; `None` at the end.
    async fn chunk(&mut self) -> Result<Option<Bytes>, WriteError> {
        if let Sheet::Parquet(writer) = &mut self.sheet {
            let Some(writer) = writer.take() else {
                return Ok(None);
            };
            return self.group(writer).await.map(Some);
        }
        let mut chunk = Vec::new();
        if let Sheet::Csv { columns, begun } = &mut self.sheet
            && !std::mem::replace(begun, true)
        {
            columns.write_names(&mut chunk)?;
        }
        while chunk.len() < CHUNK_BYTES {
            let Some(row) = self.rows.next().await.transpose()? else {
                break;
            };
            match &self.sheet {
                Sheet::Csv { columns, .. } => columns.write(&row, &mut chunk)?,
                Sheet::Ndjson | Sheet::Parquet(_) => {
                    serde_json::to_writer(&mut chunk, &row)?;
                    chunk.push(b'\n');
                }
            }
        }
        Ok((!chunk.is_empty()).then(|| chunk.into()))
    }

    /// The next row group; with the last one the footer.
    async fn group(&mut self, mut writer: Box<parquet::Writer>) -> Result<Bytes, WriteError> {
        let (mut rows, mut bytes) = (0, 0);
        while rows < GROUP_ROWS && bytes < GROUP_BYTES {
            let Some(row) = self.rows.next().await.transpose()? else {
                // Packing a group takes some milliseconds, which others' requests need not wait.
                return Ok(tokio::task::spawn_blocking(move || writer.finish()).await??);
            };
            bytes += writer.push(&serde_json::to_value(&row)?)?;
            rows += 1;
        }
        let (chunk, writer) = tokio::task::spawn_blocking(move || {
            let chunk = writer.close_group()?;
            Ok::<_, WriteError>((chunk, writer))
        })
        .await??;
        self.sheet = Sheet::Parquet(Some(writer));
        Ok(chunk)
    }
}
