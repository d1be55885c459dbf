//! From `farescan demo` in an empty folder to a mail about a price below an amount: real processes, a real mail
//! server, a real browser. `FARESCAN_SCREENSHOTS=1` writes the pictures of docs/first-alert.md and prints
//! the seconds that stand there.

use std::net::TcpListener;
use std::time::Instant;

use jiff::{ToSpan as _, Zoned};
use thirtyfour::{By, Key};

use super::chromium::Chromium;
use super::screenshots;
use crate::channels::mail_server::{MailServer, code, headers};
use crate::cli::terminal::Terminal;
use crate::operation::process::{farescan, program};
use crate::support::db::world_readable_folder;
use crate::support::text;

/// Below it there are prices in each month. The pictures have the amount of the story, below which there is one in
/// January.
fn amount() -> u32 {
    if screenshots::are_wanted() { 150 } else { 300 }
}

/// What a person has done so far.
struct Film {
    browser: Chromium,
    began: Instant,
    /// Activations of a link or button, and of Enter.
    activations: u32,
    scenes: u32,
}

impl Film {
    async fn press(&mut self, words: &str) {
        self.browser.press(words).await;
        self.activations += 1;
    }

    /// Types into the box of the page.
    async fn ask(&mut self, words: &str) {
        let field = self
            .browser
            .driver
            .find(By::Css("input[name=q]"))
            .await
            .unwrap();
        field.send_keys(words).await.unwrap();
        field.send_keys(Key::Enter + "").await.unwrap();
        self.activations += 1;
        self.browser.wait_for_path_under("/ask").await;
    }

    /// The next scene, once the page says this.
    async fn scene(&mut self, says: &str) {
        self.browser.wait_for_text(says).await;
        self.scenes += 1;
        screenshots::take_one(&self.browser, &format!("film-{}", self.scenes)).await;
        println!(
            "scene {}: {:.0} s, {} activations: {says}",
            self.scenes,
            self.began.elapsed().as_secs_f64(),
            self.activations
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn from_a_demo_in_an_empty_folder_to_a_mail() {
    let Some(mails) = MailServer::start() else {
        return;
    };
    let data = world_readable_folder();
    // Its mails have the address of its pages.
    let free = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = free.local_addr().unwrap();
    drop(free);
    let origin = format!("http://{address}");
    let mut command = farescan(&program(), &["demo", "--listen", &address.to_string()]);
    command
        .args(["--admin-listen", "127.0.0.1:0", "--public-url", &origin])
        .args([
            "--smtp-url",
            &mails.url("smtp://"),
            "--smtp-from",
            "Fares <fares@example.com>",
        ])
        .env("FARESCAN_DATA_DIR", data.path());
    let began = Instant::now();
    let mut demo = Terminal::start(&mut command, 100, 40);
    demo.expect("Ctrl-C").await;
    println!("demo: {:.0} s", began.elapsed().as_secs_f64());

    let mut film = Film {
        browser: Chromium::start(&origin).await,
        began: Instant::now(),
        activations: 0,
        scenes: 0,
    };
    film.browser.open("/overview").await;
    film.press("Continue with the sandbox key").await;
    film.scene("Home").await;

    let below = amount();
    let month = Zoned::now() + 2.months();
    let question = format!(
        "TLV to LHR {} below {below}",
        month.strftime("%B").to_string().to_lowercase()
    );
    film.ask(&question).await;
    film.scene(&format!("Tell me below {below} USD")).await;

    film.press("Add a channel").await;
    let address = film.browser.driver.find(By::Css("input[type=email]"));
    let address = address.await.unwrap();
    address.send_keys("reader@example.com").await.unwrap();
    film.press("Mail me a code").await;
    film.scene("waits for its code").await;
    let given = code(&mails.mails(1).await[0]);
    let field = film
        .browser
        .driver
        .find(By::Css("input[name=code]"))
        .await
        .unwrap();
    field.send_keys(given).await.unwrap();
    film.press("Confirm").await;
    film.browser.wait_for_count("input[name=code]", 0).await;
    film.scene("Back to “TLV to LHR").await;

    film.press("Back to").await;
    film.scene("Alerts go to My mail.").await;
    film.press("Tell me below").await;
    film.browser.wait_for_path_under("/monitors/mon_").await;
    film.press("Run now").await;
    film.press("Run now for").await;
    let alerted = mails.mails(2).await.remove(1);
    let subject = headers(&alerted, "subject").concat();
    println!(
        "mail: {:.0} s: {subject}\n{}",
        film.began.elapsed().as_secs_f64(),
        text(&alerted["text"])
    );
    assert!(subject.starts_with("TLV → LHR"), "{alerted}");
    // Its link leads to the alert.
    let body = text(&alerted["text"]);
    let (_, rest) = body.split_once(&origin).unwrap_or_else(|| panic!("{body}"));
    let path = rest.split_whitespace().next().unwrap().to_owned();
    film.browser.open(&path).await;
    film.scene(&format!("Price below {below} USD")).await;
    assert_eq!(film.activations, 9);
    film.browser.end().await;
    demo.interrupt();
    demo.end().await;
}
