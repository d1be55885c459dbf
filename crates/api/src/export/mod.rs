//! Lists as files: all rows of a list as CSV, NDJSON or Parquet, written while they are read.
//!
//! Here: the format that a request accepts ([`RequestedFormat`]) and the response that streams it.
//! Rows are read as fast as the client reads, so memory is bounded by a chunk and the rest of a
//! page, for Parquet by a row group. Not here: reading rows (`paging`, the lists).

mod accept;
mod csv;
mod parquet;

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

pub(super) use self::accept::{JsonOnly, RequestedFormat};
pub(super) use self::csv::CsvColumns;
use farescan_core::app::concurrency::Permit;
use farescan_core::app::error::ApiError;
use farescan_core::paging::PageError;

/// The size at which a chunk of the body is sent.
const CHUNK_BYTES: usize = 32 * 1024;

/// The rows of a row group: enough for effective dictionaries, some megabytes of memory.
const ROW_GROUP_ROWS: usize = 10_000;
/// The JSON size at which a row group is closed early: whole answers are large.
const ROW_GROUP_BYTES: usize = 8 * 1024 * 1024;

/// Fields of rows that files do not have.
const JSON_ONLY: [&str; 2] = ["history_verdict", "confirming"];

/// A streamed format.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ExportFormat {
    /// RFC 4180, UTF-8, with a header row.
    Csv,
    /// One JSON object a line.
    Ndjson,
    /// Apache Parquet.
    Parquet,
}

impl ExportFormat {
    pub(super) const fn media_type(self) -> &'static str {
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

/// Adds `Vary: accept`, so that caches distinguish the formats.
pub(super) fn vary_on_accept(answer: impl IntoResponse) -> Response {
    ([(VARY, HeaderValue::from_static("accept"))], answer).into_response()
}

/// Streams rows as a file with this name and the extension of its format. `columns` are those of
/// CSV. `permits` are held until the end of the body.
///
/// # Errors
/// An error before the first row. A later error aborts the connection, so that a truncated
/// file never looks complete.
pub(super) async fn export<Row: Serialize + ToSchema + Send + 'static>(
    format: ExportFormat,
    name: &str,
    columns: CsvColumns,
    rows: impl Stream<Item = Result<Row, PageError>> + Send + 'static,
    permits: [Permit; 2],
) -> Result<Response, ApiError> {
    let mut rows = rows.boxed().peekable();
    if let Some(Err(error)) = Pin::new(&mut rows).next_if(Result::is_err).await {
        return Err(error.into());
    }
    let encoder = match format {
        ExportFormat::Csv => ExportEncoder::Csv {
            columns,
            header_written: false,
        },
        ExportFormat::Ndjson => ExportEncoder::Ndjson,
        ExportFormat::Parquet => ExportEncoder::Parquet(Some(Box::new(
            parquet::ParquetWriter::of::<Row>().map_err(ApiError::internal)?,
        ))),
    };
    let file = ExportFile {
        rows,
        encoder,
        _permits: permits,
    };
    let body = stream::try_unfold(file, |mut file| async {
        let chunk = file
            .chunk()
            .await
            .inspect_err(|error| tracing::warn!(%error, "export aborted"))?;
        Ok::<_, WriteError>(chunk.map(|chunk| (chunk, file)))
    });
    // Ids and fixed words of this service are valid header values.
    let disposition = HeaderValue::try_from(format!(
        "attachment; filename=\"{name}.{}\"",
        format.extension()
    ))
    .ok();
    let mut answer = vary_on_accept(Body::from_stream(body));
    answer
        .headers_mut()
        .insert(CONTENT_TYPE, format.content_type());
    answer
        .headers_mut()
        .extend(disposition.map(|disposition| (CONTENT_DISPOSITION, disposition)));
    Ok(answer)
}

/// Why an export was aborted. The client sees a broken connection; the log has the reason.
#[derive(Debug, thiserror::Error)]
enum WriteError {
    #[error(transparent)]
    Read(#[from] PageError),
    #[error(transparent)]
    Csv(#[from] ::csv::Error),
    #[error(transparent)]
    Json(#[from] serde_json::Error),
    #[error(transparent)]
    Parquet(#[from] ::parquet::errors::ParquetError),
    #[error("the process is shutting down")]
    Ends(#[from] tokio::task::JoinError),
}

/// An export in progress.
struct ExportFile<Row> {
    rows: Peekable<BoxStream<'static, Result<Row, PageError>>>,
    encoder: ExportEncoder,
    _permits: [Permit; 2],
}

/// The encoder of an export, and its state.
enum ExportEncoder {
    Csv {
        columns: CsvColumns,
        /// Whether the header row was written.
        header_written: bool,
    },
    Ndjson,
    /// `None`: the file is complete.
    Parquet(Option<Box<parquet::ParquetWriter>>),
}

impl<Row: Serialize> ExportFile<Row> {
    /// The next chunk; `None` at the end.
    async fn chunk(&mut self) -> Result<Option<Bytes>, WriteError> {
        if let ExportEncoder::Parquet(writer) = &mut self.encoder {
            let Some(writer) = writer.take() else {
                return Ok(None);
            };
            return self.group(writer).await.map(Some);
        }
        let mut chunk = Vec::new();
        if let ExportEncoder::Csv {
            columns,
            header_written,
        } = &mut self.encoder
            && !std::mem::replace(header_written, true)
        {
            columns.write_names(&mut chunk)?;
        }
        while chunk.len() < CHUNK_BYTES {
            let Some(row) = self.rows.next().await.transpose()? else {
                break;
            };
            match &self.encoder {
                ExportEncoder::Csv { columns, .. } => columns.write(&row, &mut chunk)?,
                ExportEncoder::Ndjson | ExportEncoder::Parquet(_) => {
                    serde_json::to_writer(&mut chunk, &row)?;
                    chunk.push(b'\n');
                }
            }
        }
        Ok((!chunk.is_empty()).then(|| chunk.into()))
    }

    /// The next row group; the last one includes the footer.
    async fn group(
        &mut self,
        mut writer: Box<parquet::ParquetWriter>,
    ) -> Result<Bytes, WriteError> {
        let (mut rows, mut bytes) = (0, 0);
        while rows < ROW_GROUP_ROWS && bytes < ROW_GROUP_BYTES {
            let Some(row) = self.rows.next().await.transpose()? else {
                // Compression takes milliseconds and would block the async thread.
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
        self.encoder = ExportEncoder::Parquet(Some(writer));
        Ok(chunk)
    }
}
