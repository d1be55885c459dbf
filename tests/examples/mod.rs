//! The examples of the description are what the service answers. A run of the service with a
//! sandbox behind it sends each request example and compares the answers with their examples and
//! schemas. With `FARESCAN_RECORD=1` it writes the examples instead (crates/api/src/openapi/examples.json).

mod errors;
mod recorder;
mod successes;

use self::recorder::Recorder;

#[tokio::test(flavor = "multi_thread")]
async fn each_example_is_what_the_service_answers() {
    let mut run = Recorder::start().await;
    let context = successes::send_all(&mut run).await;
    errors::provoke_all(&mut run, &context).await;
    successes::rotate_key(&mut run).await;
    run.finish();
}
