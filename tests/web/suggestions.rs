//! What forms offer while a database does not answer.

use std::net::TcpListener;
use std::time::Duration;

use sqlx::postgres::PgPoolOptions;

use super::{Browser, key};
use crate::support::app::TestApp;
use crate::support::{TestService, fares};

#[tokio::test]
async fn a_form_does_not_wait_for_a_silent_replica() {
    // Its connections are accepted, but nobody answers.
    let replica = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = replica.local_addr().unwrap();
    let pool = PgPoolOptions::new()
        .acquire_timeout(Duration::from_secs(600))
        .connect_lazy(&format!("postgres://farescan@{address}/farescan"))
        .unwrap();
    let app = TestApp::builder().state(move |app| app.with_replica(pool));
    let service = TestService::start_with(app).await;
    service.submit(&fares(1)).await;
    let browser = Browser::sign_in(&service, key()).await;
    let page = tokio::time::timeout(Duration::from_secs(20), browser.page("/scans/new")).await;
    let page = page.expect("the form is shown");
    assert!(page.contains("<option value=\"TLV\">"), "{page}");
}
