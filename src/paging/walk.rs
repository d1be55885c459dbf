//! Whole lists, row by row, read page by page: what an export gives.
//!
//! Nothing of the database is held between two pages, no connection and no snapshot, however slowly the rows are taken: a page is read
//! by a task of its own, which ends by itself once it has begun. Not here: what a page is and where the next one begins (the lists).

use futures::{Stream, StreamExt as _, TryStreamExt as _, stream};
use tokio::sync::Semaphore;
use tokio_util::task::AbortOnDropHandle;
use tracing::Instrument as _;

use super::PageError;

/// How many pages of all walks of this process are read at a time. Walks wait for each other; what must be quick, recording answers
/// above all, finds the rest of the pool's connections free.
const MAX_READS: usize = 4;

static READS: Semaphore = Semaphore::const_new(MAX_READS);

/// The rows of a page, and where the next one begins; `None`: it was the last.
pub type Page<Row, Place> = Result<(Vec<Row>, Option<Place>), PageError>;

/// Every row from `begin` on. `page` reads one page; it is asked for the next when all rows of the one before have been taken. The first
/// error is the end. Dropped, the walk stops reading at once.
pub fn walk<Place, Row, Reading>(
    begin: Place,
    page: impl Fn(Place) -> Reading + Send + 'static,
) -> impl Stream<Item = Result<Row, PageError>> + Send + 'static
where
    Place: Send + 'static,
    Row: Send + 'static,
    Reading: Future<Output = Page<Row, Place>> + Send + 'static,
{
    let pages = stream::try_unfold(Some(begin), move |place| {
        // On the heap: what a page needs would be part of everything that holds the walk.
        let reading = place.map(|place| Box::pin(page(place)));
        async move {
            let Some(reading) = reading else {
                return Ok::<_, PageError>(None);
            };
            let (rows, next) = alone(reading).await?;
            Ok(Some((stream::iter(rows).map(Ok), next)))
        }
    });
    pages.try_flatten()
}

/// Reads in a task of its own, when it is its turn. A panic goes on in who asked.
async fn alone<T: Send + 'static>(
    reading: impl Future<Output = Result<T, PageError>> + Send + 'static,
) -> Result<T, PageError> {
    let in_turn = async move {
        let _turn = READS.acquire().await;
        reading.await
    };
    match AbortOnDropHandle::new(tokio::spawn(in_turn.in_current_span())).await {
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
    async fn pages_follow_each_other_to_the_last_and_none_is_read_ahead() {
        let read = Arc::new(AtomicU32::new(0));
        let reads = Arc::clone(&read);
        let mut rows = Box::pin(walk(0, move |place: u32| {
            reads.fetch_add(1, Ordering::Relaxed);
            async move {
                Ok((
                    vec![place; (place % 2 * 2) as usize],
                    (place < 3).then_some(place + 1),
                ))
            }
        }));
        assert_eq!(
            read.load(Ordering::Relaxed),
            0,
            "nothing is read before a row is wanted"
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
    async fn an_error_is_the_end() {
        let mut rows = Box::pin(walk(0, |place: u32| async move {
            if place == 0 {
                Ok((vec![place], Some(1)))
            } else {
                Err(PageError::Gone)
            }
        }));
        assert_eq!(rows.try_next().await.unwrap(), Some(0));
        assert!(matches!(rows.try_next().await, Err(PageError::Gone)));
    }

    #[tokio::test]
    async fn a_page_ends_by_itself_though_nobody_asks_for_it() {
        let (done, ended) = oneshot::channel::<()>();
        let done = std::sync::Mutex::new(Some(done));
        let mut rows = Box::pin(walk((), move |()| {
            let done = done.lock().unwrap().take();
            async move {
                tokio::task::yield_now().await;
                drop(done);
                Ok((vec![1], None::<()>))
            }
        }));
        // Asked once, then left alone.
        assert!(futures::poll!(rows.next()).is_pending());
        assert!(ended.await.is_err(), "the reader has come to its end");
        assert_eq!(rows.try_next().await.unwrap(), Some(1));
    }

    #[tokio::test]
    async fn a_walk_that_is_dropped_reads_no_further() {
        let (held, released) = oneshot::channel::<()>();
        let held = std::sync::Mutex::new(Some(held));
        let mut rows = Box::pin(walk((), move |()| {
            let held = held.lock().unwrap().take();
            async move {
                std::future::pending::<()>().await;
                drop(held);
                Ok((vec![1], None::<()>))
            }
        }));
        assert!(futures::poll!(rows.next()).is_pending());
        tokio::task::yield_now().await;
        drop(rows);
        assert!(released.await.is_err());
    }
}
