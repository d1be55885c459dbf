//! Whole lists as row streams, read page by page: the source of exports.
//!
//! Between two pages the stream holds no connection and no snapshot, however slowly the rows are
//! consumed: a task of its own reads each page to its end. Not here: the queries of a page (the
//! lists).

use futures::{Stream, StreamExt as _, TryStreamExt as _, stream};
use tokio::sync::Semaphore;
use tokio_util::task::AbortOnDropHandle;
use tracing::Instrument as _;

use super::PageError;

/// How many pages this process reads at a time, over all streams. The limit leaves connections of
/// the pool to work that must be quick, such as recording answers.
const MAX_PAGE_READS: usize = 4;

static PAGE_READS: Semaphore = Semaphore::const_new(MAX_PAGE_READS);

/// The rows of a page, and the position of the next page; `None`: it was the last.
pub type Page<Row, Position> = Result<(Vec<Row>, Option<Position>), PageError>;

/// Streams every row from `start` on. Calls `page` for the next page when all rows of the previous
/// one are consumed. Ends at the first error. Dropping the stream stops the reading at once.
pub fn stream_rows<Position, Row, PageFuture>(
    start: Position,
    page: impl Fn(Position) -> PageFuture + Send + 'static,
) -> impl Stream<Item = Result<Row, PageError>> + Send + 'static
where
    Position: Send + 'static,
    Row: Send + 'static,
    PageFuture: Future<Output = Page<Row, Position>> + Send + 'static,
{
    let pages = stream::try_unfold(Some(start), move |position| {
        // Boxed: otherwise the page's future would be part of every future that holds the stream.
        let reading = position.map(|position| Box::pin(page(position)));
        async move {
            let Some(reading) = reading else {
                return Ok::<_, PageError>(None);
            };
            let (rows, next) = read_in_task(reading).await?;
            Ok(Some((stream::iter(rows).map(Ok), next)))
        }
    });
    pages.try_flatten()
}

/// Reads in a task of its own, within [`MAX_PAGE_READS`]. A panic resumes in the caller.
async fn read_in_task<T: Send + 'static>(
    reading: impl Future<Output = Result<T, PageError>> + Send + 'static,
) -> Result<T, PageError> {
    let limited = async move {
        let _permit = PAGE_READS.acquire().await;
        reading.await
    };
    match AbortOnDropHandle::new(tokio::spawn(limited.in_current_span())).await {
        Ok(read) => read,
        Err(ended) => match ended.try_into_panic() {
            Ok(panic) => std::panic::resume_unwind(panic),
            // The program ends.
            Err(_) => Err(sqlx::Error::PoolClosed.into()),
        },
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicU32, Ordering};

    use tokio::sync::oneshot;

    use super::*;

    #[tokio::test]
    async fn pages_are_read_one_by_one_and_none_ahead() {
        let read = Arc::new(AtomicU32::new(0));
        let reads = Arc::clone(&read);
        let mut rows = Box::pin(stream_rows(0, move |position: u32| {
            reads.fetch_add(1, Ordering::Relaxed);
            async move {
                Ok((
                    vec![position; (position % 2 * 2) as usize],
                    (position < 3).then_some(position + 1),
                ))
            }
        }));
        assert_eq!(
            read.load(Ordering::Relaxed),
            0,
            "nothing is read before the first poll"
        );
        assert_eq!(rows.try_next().await.unwrap(), Some(1));
        assert_eq!(
            read.load(Ordering::Relaxed),
            2,
            "an empty page is not the end"
        );
        assert_eq!(rows.try_collect::<Vec<_>>().await.unwrap(), [1, 3, 3]);
    }

    #[tokio::test]
    async fn the_stream_ends_at_an_error() {
        let mut rows = Box::pin(stream_rows(0, |position: u32| async move {
            if position == 0 {
                Ok((vec![position], Some(1)))
            } else {
                Err(PageError::Gone)
            }
        }));
        assert_eq!(rows.try_next().await.unwrap(), Some(0));
        assert!(matches!(rows.try_next().await, Err(PageError::Gone)));
    }

    #[tokio::test]
    async fn a_started_page_is_read_without_polling() {
        let (done, ended) = oneshot::channel::<()>();
        let done = std::sync::Mutex::new(Some(done));
        let mut rows = Box::pin(stream_rows((), move |()| {
            let done = done.lock().unwrap().take();
            async move {
                tokio::task::yield_now().await;
                drop(done);
                Ok((vec![1], None::<()>))
            }
        }));
        // Polled once only.
        assert!(futures::poll!(rows.next()).is_pending());
        assert!(ended.await.is_err(), "the page task has ended");
        assert_eq!(rows.try_next().await.unwrap(), Some(1));
    }

    #[tokio::test]
    async fn dropping_the_stream_stops_the_reading() {
        let (guard, released) = oneshot::channel::<()>();
        let guard = std::sync::Mutex::new(Some(guard));
        let mut rows = Box::pin(stream_rows((), move |()| {
            let guard = guard.lock().unwrap().take();
            async move {
                std::future::pending::<()>().await;
                drop(guard);
                Ok((vec![1], None::<()>))
            }
        }));
        assert!(futures::poll!(rows.next()).is_pending());
        tokio::task::yield_now().await;
        drop(rows);
        assert!(released.await.is_err());
    }
}
