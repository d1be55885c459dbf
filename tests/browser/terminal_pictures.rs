//! What the command line prints on a terminal fits its width and keeps to its 16 colours.
//! `FARESCAN_SCREENSHOTS=1` writes it into the folder `docs/images`, as `terminal-*.png`.

use std::fmt::Write as _;
use std::path::Path;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use farescan::contract::Endpoint;
use serde_json::{Value, json};

use super::chromium::Chromium;
use super::filled::reply;
use super::screenshots;
use crate::cli::Client;
use crate::cli::terminal::Terminal;
use crate::support::TestService;

/// The widths of a small terminal and of a wide one.
const COLUMNS: [u16; 2] = [80, 140];

/// One command: the name of its picture, its arguments and a part of what it prints.
struct PicturedCommand {
    name: &'static str,
    args: Vec<String>,
    says: &'static str,
}

/// Characters of one style.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct TextStyle {
    is_bold: bool,
    is_dim: bool,
    /// One of the 16 colours.
    colour: Option<u8>,
}

/// The lines of a terminal's output as parts of one style each.
///
/// # Panics
/// At any control sequence but the 16 colours, bold and dim: output that is not redrawn needs no
/// other one.
fn styled_lines(output: &str) -> Vec<Vec<(TextStyle, String)>> {
    let mut lines = Vec::new();
    let mut style = TextStyle::default();
    for line in output.trim_end().split("\r\n") {
        let mut parts = Vec::new();
        let mut pieces = line.split("\u{1b}[");
        parts.push((style.clone(), pieces.next().unwrap().to_owned()));
        for piece in pieces {
            let (codes, text) = piece.split_once('m').expect("a style ends with m");
            style = style.after(codes);
            parts.push((style.clone(), text.to_owned()));
        }
        assert!(
            parts
                .iter()
                .all(|(_, text)| !text.contains(char::is_control)),
            "{line:?}"
        );
        lines.push(parts);
    }
    lines
}

impl TextStyle {
    fn after(mut self, codes: &str) -> Self {
        let codes: Vec<u8> = codes
            .split(';')
            .map(|code| code.parse().unwrap_or(0))
            .collect();
        match codes[..] {
            [0] => self = Self::default(),
            [1] => self.is_bold = true,
            [2] => self.is_dim = true,
            [22] => (self.is_bold, self.is_dim) = (false, false),
            [39] => self.colour = None,
            [38, 5, colour @ 0..16] => self.colour = Some(colour),
            [code @ 30..=37] => self.colour = Some(code - 30),
            [code @ 90..=97] => self.colour = Some(code - 82),
            _ => panic!("{codes:?} is none of the 16 colours"),
        }
        self
    }

    fn classes(&self) -> String {
        let mut classes = self
            .colour
            .map_or_else(String::new, |colour| format!("c{colour}"));
        for (is_so, class) in [(self.is_bold, " bold"), (self.is_dim, " dim")] {
            if is_so {
                classes.push_str(class);
            }
        }
        classes
    }
}

async fn ended_scan(service: &TestService, body: &Value) -> String {
    let id = service.submit(body).await;
    service.wait_until_ended(&id).await;
    id
}

/// Two months of fares, and stays of some lengths.
async fn sessions(service: &TestService) -> Vec<PicturedCommand> {
    service.upstream.answer(|call| reply(call, 0));
    service.accept_key().await;
    let stays = json!({
        "endpoint": "flights/roundtrip", "request": {"from_airport": "TLV", "to_airport": "CDG"},
        "sweep": {"departure_date": {"from": "2030-02-01", "to": "2030-02-10"}, "nights": [5, 6, 7, 8, 9, 10]}
    });
    let stays = ended_scan(service, &stays).await;
    let fares = json!({
        "endpoint": "flights/oneway", "request": {"from_airport": "TLV", "to_airport": "LHR"},
        "sweep": {"departure_date": {"from": "2030-02-01", "to": "2030-03-31"}}
    });
    ended_scan(service, &fares).await;
    let command = |name, args: &[&str], says| PicturedCommand {
        name,
        args: args.iter().map(|arg| (*arg).to_owned()).collect(),
        says,
    };
    vec![
        command("calendar", &["scans", "show", "@last"], "February 2030"),
        command("matrix", &["scans", "show", &stays], "10 n"),
        command("why", &["why", "2030-02-09"], "blocked_page"),
        command("quota", &["quota"], "11,240"),
    ]
}

#[tokio::test(flavor = "multi_thread")]
async fn terminal_output_fits_80_and_140_columns() {
    let client = Client::start().await;
    let worker = client.start_worker(8);
    let pictured = std::env::var_os("FARESCAN_SCREENSHOTS").is_some();
    let browser = if pictured {
        Some(Chromium::start(client.url()).await)
    } else {
        None
    };
    let sessions = sessions(&client).await;
    for session in &sessions {
        for columns in COLUMNS {
            let args: Vec<_> = session.args.iter().map(String::as_str).collect();
            let mut terminal = Terminal::start(&mut client.command(&args), columns, 50);
            let code = terminal.end().await;
            assert!(
                matches!(code, Some(0 | 3)),
                "{args:?}: {code:?}, {}",
                terminal.shown()
            );
            terminal.expect(session.says).await;
            let lines = styled_lines(&terminal.shown());
            for line in &lines {
                // An address is not broken: a terminal opens it as a whole.
                if line.iter().any(|(_, text)| text.contains("https://")) {
                    continue;
                }
                let width: usize = line.iter().map(|(_, text)| text.chars().count()).sum();
                assert!(
                    width <= columns.into(),
                    "{args:?}, {columns}: {width} columns, {line:?}"
                );
            }
            if let Some(browser) = &browser {
                let file = format!("terminal-{}-{columns}.png", session.name);
                picture(browser, &args, &lines, columns, &file).await;
            }
        }
    }
    assert_eq!(
        client
            .upstream
            .calls()
            .iter()
            .filter(|call| call.endpoint == Some(Endpoint::FlightsOneway))
            .count(),
        60,
        "the key's, and each date once"
    );
    worker.stop().await;
    if let Some(browser) = browser {
        // It opened no page of the service.
        browser.driver.clone().quit().await.unwrap();
    }
}

/// A terminal in the browser; colours as most terminals with a dark ground have them.
const STYLE: &str = "
    body { margin: 0; background: #0f1216; }
    pre { margin: 0; padding: 18px 22px; width: max-content; color: #d5dae1;
          font: 14px/16px 'DejaVu Sans Mono', monospace; }
    .prompt { color: #9aa4b0; } .typed, .bold { font-weight: 700; } .dim { color: #8a94a0; }
    .c1, .c9 { color: #ff9a91; } .c2, .c10 { color: #6fd3ac; } .c3, .c11 { color: #f2bf6b; }
    .c4, .c12 { color: #6ea8fe; } .c5, .c13 { color: #c3a6ff; } .c6, .c14 { color: #7fd4e0; } .c8 { color: #8a94a0; }";

async fn picture(
    browser: &Chromium,
    args: &[&str],
    lines: &[Vec<(TextStyle, String)>],
    columns: u16,
    file: &str,
) {
    let mut html = format!(
        "<span class=prompt>$</span> <span class=typed>farescan {}</span>\n",
        args.join(" ")
    );
    for line in lines {
        for (style, text) in line {
            let text = text.replace('&', "&amp;").replace('<', "&lt;");
            write!(html, "<span class='{}'>{text}</span>", style.classes()).unwrap();
        }
        html.push('\n');
    }
    // The picture is as wide as the terminal, whatever was printed.
    let ruler = " ".repeat(columns.into());
    let page = json!({"style": STYLE, "html": format!("{html}{ruler}")}).to_string();
    browser.driver.goto("about:blank").await.unwrap();
    let show = format!(
        "const page = {page};
         document.head.innerHTML = `<style>${{page.style}}</style>`;
         document.body.innerHTML = `<pre>${{page.html}}</pre>`;
         const box = document.querySelector('pre').getBoundingClientRect();
         return [Math.ceil(box.width), Math.ceil(box.height)];"
    );
    let size = browser.script(&show).await;
    let clip = json!({"x": 0, "y": 0, "width": size[0], "height": size[1], "scale": 1.5});
    let shot = json!({"format": "png", "captureBeyondViewport": true, "clip": clip});
    let shot = browser.devtools("Page.captureScreenshot", shot).await;
    let png = BASE64_STANDARD
        .decode(shot["data"].as_str().unwrap())
        .unwrap();
    let target = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("docs/images")
        .join(file);
    std::fs::write(&target, png).unwrap();
    screenshots::reduce(&target);
}
