//! A mail server of a few lines, for what a real one does not do.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use farescan::config::ChannelConfig;
use farescan::webhooks::{Mailer, Sender};
use secrecy::SecretString;
use serde_json::json;
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::{TcpListener, TcpStream};

use super::channel;
use super::mail_server::open;
use crate::webhooks::harness::{deliver, guard};

/// Accepts every message and never answers QUIT.
async fn converse(stream: TcpStream, messages: &AtomicUsize) -> std::io::Result<()> {
    let mut stream = BufReader::new(stream);
    stream.write_all(b"220 here\r\n").await?;
    let (mut line, mut is_data) = (String::new(), false);
    while stream.read_line(&mut line).await? > 0 {
        let reply = match line.trim_end() {
            "." if is_data => {
                is_data = false;
                messages.fetch_add(1, Ordering::Relaxed);
                "250 2.0.0 taken\r\n"
            }
            _ if is_data => "",
            "DATA" => {
                is_data = true;
                "354 go on\r\n"
            }
            "QUIT" => "",
            _ => "250 ok\r\n",
        };
        stream.write_all(reply.as_bytes()).await?;
        line.clear();
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn an_accepted_mail_is_delivered_whatever_follows() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let messages = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&messages);
    let serving = tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let counted = Arc::clone(&counted);
            tokio::spawn(async move { converse(stream, &counted).await });
        }
    });
    let settings = ChannelConfig {
        public_url: None,
        smtp_url: Some(SecretString::from(format!("smtp://127.0.0.1:{port}"))),
        smtp_from: Some("fares@example.com".to_owned()),
        apprise_url: None,
    };
    let mailer = Mailer::of_config(&settings).unwrap();
    let test = open().await;
    let sender = Sender::new(guard()).unwrap().with_mailer(mailer);
    let running = deliver(test.pool(), sender);
    let body = json!({"name": "mail", "kind": "email", "url": "reader@example.com"});
    channel(&test, &body).await;
    let delivered = "select count(*) from deliveries where status = 'delivered' and tries = 1";
    test.wait_for_count(delivered, 1).await;
    running.stop().await;
    assert_eq!(messages.load(Ordering::Relaxed), 1, "it was sent once");
    serving.abort();
    test.close().await;
}
