//! A real mail server beside a test (`smtp.py`).

use std::io::{BufRead as _, BufReader};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};

use farescan::config::ChannelConfig;
use farescan::webhooks::{Mailer, Sender};
use secrecy::SecretString;
use serde_json::Value;

use crate::alerts::AlertTest;
use crate::support::app::TestApp;
use crate::support::{TestService, wait_until};
use crate::webhooks::harness::{RunningDeliverer, deliver, guard};

pub struct MailServer {
    child: Child,
    address: String,
    mails: Arc<Mutex<Vec<Value>>>,
}

impl Drop for MailServer {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl MailServer {
    /// Without TLS and login; `None`: it could not be installed.
    pub fn start() -> Option<Self> {
        Self::start_with("127.0.0.1", &[])
    }

    /// With the arguments of `smtp.py`.
    pub fn start_with(host: &str, arguments: &[&str]) -> Option<Self> {
        let python =
            std::env::var("FARESCAN_AIOSMTPD_PYTHON").unwrap_or_else(|_| "python3".to_owned());
        if python == "none" {
            eprintln!("left out: aiosmtpd could not be installed (script/setup aiosmtpd)");
            return None;
        }
        let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/channels/smtp.py");
        let mut child = Command::new(python)
            .arg(script)
            .args(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("python3, or the program that FARESCAN_AIOSMTPD_PYTHON names");
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let port = lines
            .next()
            .expect("Python with aiosmtpd (script/setup aiosmtpd)");
        let address = format!("{host}:{}", port.unwrap());
        let mails = Arc::new(Mutex::new(Vec::new()));
        let kept = Arc::clone(&mails);
        std::thread::spawn(move || {
            for line in lines.map_while(Result::ok) {
                kept.lock()
                    .unwrap()
                    .push(serde_json::from_str(&line).unwrap());
            }
        });
        Some(Self {
            child,
            address,
            mails,
        })
    }

    /// Its URL; `before` the address: the scheme, and the login if there is one.
    pub fn url(&self, before: &str) -> String {
        format!("{before}{}", self.address)
    }

    pub fn deliverer(&self, test: &TestService) -> RunningDeliverer {
        Self::deliverer_by(self.url("smtp://"), test)
    }

    /// The same with another URL.
    pub fn deliverer_by(url: String, test: &TestService) -> RunningDeliverer {
        let mailer = Mailer::of_config(&settings(url)).unwrap();
        deliver(
            test.pool(),
            Sender::new(guard()).unwrap().with_mailer(mailer),
        )
    }

    /// The accepted mails, once there are this many.
    pub async fn mails(&self, count: usize) -> Vec<Value> {
        wait_until(&format!("{count} mails"), async || {
            self.mails.lock().unwrap().len() >= count
        })
        .await;
        let mails = self.mails.lock().unwrap().clone();
        assert_eq!(mails.len(), count, "{mails:#?}");
        mails
    }
}

/// An operator's settings for the mail server of a URL.
fn settings(url: String) -> ChannelConfig {
    ChannelConfig {
        public_url: Some("https://fares.example.com".to_owned()),
        smtp_url: Some(SecretString::from(url)),
        smtp_from: Some("Fares <fares@example.com>".to_owned()),
        apprise_url: None,
    }
}

/// A service whose operator has a mail server.
pub async fn open() -> AlertTest {
    let builder = TestApp::builder().state(|app| app.with_webhook_guard(guard().with_mail(true)));
    let test = AlertTest::of(TestService::start_with(builder).await);
    test.accept_key().await;
    test
}

/// The values of a header.
pub fn headers<'a>(mail: &'a Value, name: &str) -> Vec<&'a str> {
    let all = mail["headers"].as_array().unwrap().iter();
    all.filter(|header| header[0].as_str().unwrap().eq_ignore_ascii_case(name))
        .map(|header| header[1].as_str().unwrap())
        .collect()
}

/// The code of a confirmation mail.
pub fn code(mail: &Value) -> String {
    let text = mail["text"].as_str().unwrap();
    let (_, rest) = text
        .split_once("Code: ")
        .unwrap_or_else(|| panic!("{text}"));
    rest.split(' ').next().unwrap().to_owned()
}
