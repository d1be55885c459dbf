//! Background work in passes: each does what is due, and says how long there is nothing to do.

use std::time::Duration;

use futures::future::OptionFuture;
use tokio::sync::Notify;
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

/// Repeats `pass` until `stop`. Between two passes it sleeps as long as the first one says, or until
/// `wake`. A pass that has begun is finished.
pub async fn run<P: Future<Output = Duration>>(
    stop: &CancellationToken,
    wake: Option<&Notify>,
    mut pass: impl FnMut() -> P,
) {
    while !stop.is_cancelled() {
        let wait = pass().await;
        tokio::select! {
            () = sleep(wait) => {}
            Some(()) = OptionFuture::from(wake.map(Notify::notified)) => {}
            () = stop.cancelled() => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    const FOREVER: Duration = Duration::from_secs(1_000_000);

    #[tokio::test]
    async fn a_pass_that_has_begun_is_finished() {
        let (stop, ended) = (CancellationToken::new(), Cell::new(0));
        run(&stop, None, || async {
            stop.cancel();
            tokio::task::yield_now().await;
            ended.set(ended.get() + 1);
            FOREVER
        })
        .await;
        assert_eq!(ended.get(), 1);
    }

    #[tokio::test]
    async fn a_sleep_ends_after_its_time_and_when_woken() {
        let (stop, wake, passes) = (CancellationToken::new(), Notify::new(), Cell::new(0));
        run(&stop, Some(&wake), || async {
            passes.set(passes.get() + 1);
            match passes.get() {
                1 => return Duration::from_millis(1),
                2 => wake.notify_one(),
                _ => stop.cancel(),
            }
            FOREVER
        })
        .await;
        assert_eq!(passes.get(), 3);
    }
}
