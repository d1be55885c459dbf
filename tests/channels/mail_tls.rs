//! Mails over TLS, to a real mail server: whose certificate is trusted, whose is not, and when it does not matter
//! (channels.md, rule 19). The servers listen at 127.0.0.2, which is another host to farescan, and on Linux alone
//! an address without a setting.

#![cfg(target_os = "linux")]

use std::process::Command;

use serde_json::json;
use sqlx::PgPool;
use tempfile::TempDir;

use super::channel;
use super::mail_server::{MailServer, open};
use crate::faults::process::FarescanProcess;
use crate::support::reply::Reply;
use crate::support::upstream::fare;
use crate::worker::fixture::WorkerFixture;

const HOST: &str = "127.0.0.2";
/// The names of certificates.
const OWN: &str = "IP:127.0.0.2";
const OTHER: &str = "DNS:mail.example.com";
const LOGIN: &str = "me:p%40ss@";

/// A certificate of its own root, and its key: two files.
struct Certificate {
    certificate: String,
    key: String,
}

impl Certificate {
    fn of(folder: &TempDir, host: &str, file: &str) -> Self {
        let path = |ending: &str| format!("{}/{file}.{ending}", folder.path().display());
        let made = Self {
            certificate: path("crt"),
            key: path("key"),
        };
        let subject = format!("/CN={file}");
        let names = format!("subjectAltName={host}");
        let done = Command::new("openssl")
            .args([
                "req",
                "-x509",
                "-newkey",
                "ec",
                "-pkeyopt",
                "ec_paramgen_curve:P-256",
                "-nodes",
                "-days",
                "2",
            ])
            .args([
                "-subj",
                &subject,
                "-addext",
                &names,
                "-addext",
                "basicConstraints=critical,CA:FALSE",
            ])
            .args(["-keyout", &made.key, "-out", &made.certificate])
            .output()
            .expect("the program openssl");
        assert!(
            done.status.success(),
            "{}",
            String::from_utf8_lossy(&done.stderr)
        );
        made
    }

    fn serve(&self, mode: &str) -> Option<MailServer> {
        MailServer::start_with(HOST, &[mode, HOST, &self.certificate, &self.key])
    }
}

/// Makes the next try due.
async fn make_due(pool: &PgPool) {
    execute!(pool, "update deliveries set due_at = now()");
    execute!(pool, "update webhook_endpoints set next_at = now()");
}

/// A process that trusts one certificate, and makes its next try now.
async fn process(fixture: &WorkerFixture, url: &str, trusted: &Certificate) -> FarescanProcess {
    make_due(fixture.pool()).await;
    let settings = [
        ("FARESCAN_SMTP_URL", url),
        ("FARESCAN_SMTP_FROM", "fares@example.com"),
        ("SSL_CERT_FILE", &trusted.certificate),
    ];
    let process = FarescanProcess::start_with(fixture, 1, &settings);
    process.wait_for_log("listening").await;
    process
}

/// Waits for a try that fails for the server's certificate: no mail is lost.
async fn is_refused(fixture: &WorkerFixture, process: FarescanProcess, tries: i64, reason: &str) {
    let failed = "select count(*) from delivery_tries where error = 'unconnected'";
    fixture.wait_for_count(failed, tries).await;
    let log = process.wait_for_log("did not take a mail").await;
    let found = log["found"].as_str().unwrap();
    assert!(found.contains(reason), "{found}");
    process.kill();
    let waiting = "select count(*) from deliveries where status = 'pending' and due_at > now()";
    assert_eq!(fixture.count(waiting).await, 1, "it is tried again");
}

async fn a_mail_goes_to_a_trusted_server_alone(mode: &str, scheme: &str) {
    let folder = TempDir::new().unwrap();
    let of = |host: &str, file: &str| Certificate::of(&folder, host, file);
    let (own, foreign) = (of(OWN, "own"), of(OWN, "foreign"));
    let misnamed = of(OTHER, "misnamed");
    let (Some(server), Some(other)) = (own.serve(mode), misnamed.serve(mode)) else {
        return;
    };
    let before = format!("{scheme}://{LOGIN}");
    let (url, other_url) = (server.url(&before), other.url(&before));
    let fixture = WorkerFixture::new().await;
    let upstream = &fixture.upstream;
    upstream.answer(|call| Reply::json(json!([fare(90, &call.body)])));
    let first = process(&fixture, &url, &foreign).await;
    let scan = crate::worker::fixture::fares(1);
    assert_eq!(first.post("/v1/scans", &scan).await.status, 202);
    let ended = "select count(*) from scans where finished_at is not null";
    fixture.wait_for_count(ended, 1).await;
    let body = json!({"name": "mail", "kind": "email", "url": "reader@example.com"});
    assert_eq!(first.post("/v1/channels", &body).await.status, 201);
    is_refused(&fixture, first, 1, "UnknownIssuer").await;
    let second = process(&fixture, &other_url, &misnamed).await;
    is_refused(&fixture, second, 2, "not valid for name").await;

    let third = process(&fixture, &url, &own).await;
    let mail = server.mails(1).await.remove(0);
    assert_eq!(
        [&mail["tls"], &mail["login"], &mail["to"]],
        [&json!(true), &json!("me"), &json!(["reader@example.com"])]
    );
    let delivered = "select count(*) from deliveries where status = 'delivered' and tries = 3";
    fixture.wait_for_count(delivered, 1).await;
    other.mails(0).await;
    drop(third);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_mail_goes_by_starttls_to_a_trusted_server_alone() {
    a_mail_goes_to_a_trusted_server_alone("starttls", "smtp").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_mail_goes_by_implicit_tls_to_a_trusted_server_alone() {
    a_mail_goes_to_a_trusted_server_alone("implicit", "smtps").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_password_is_not_sent_without_tls_and_a_mail_without_one_goes_by_any_certificate() {
    let folder = TempDir::new().unwrap();
    let certificate = Certificate::of(&folder, OTHER, "unknown");
    let (Some(plain), Some(open_server)) = (certificate.serve("plain"), certificate.serve("open"))
    else {
        return;
    };
    let test = open().await;
    let running = MailServer::deliverer_by(plain.url(&format!("smtp://{LOGIN}")), &test);
    let body = json!({"name": "mail", "kind": "email", "url": "reader@example.com"});
    channel(&test, &body).await;
    let failed = "select count(*) from delivery_tries where error = 'unconnected'";
    test.wait_for_count(failed, 1).await;
    running.stop().await;
    plain.mails(0).await;
    make_due(test.pool()).await;
    let running = open_server.deliverer(&test);
    let mail = open_server.mails(1).await.remove(0);
    assert_eq!(mail["tls"], json!(true));
    running.stop().await;
    test.close().await;
}
