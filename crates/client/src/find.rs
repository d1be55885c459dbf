//! `farescan find`: what the box in the head of each page finds. Ids are read before
//! ([`program`](super::program)): the command of their kind shows them.

use std::io::Write as _;

use farescan_contract::Scan;
use farescan_contract::monitors::Monitor;
use farescan_contract::visible_text::VisibleText;
use farescan_sheets::scan;

use super::Failure;
use super::client::ClientArgs;
use super::monitors;
use super::pages::{Query, page_limit, print_lines, print_nothing, rows};
use super::render::sheet::table;

/// What is looked for.
#[derive(Debug, clap::Args)]
pub struct FindArgs {
    /// An id, or a text in names, labels, tags, airports and hotels
    #[arg(value_name = "WORDS", required = true, num_args = 1..)]
    words: Vec<String>,
    /// The most monitors and the most scans, the newest of each
    #[arg(long, short = 'n', value_name = "NUMBER", default_value_t = 10)]
    limit: usize,
    #[command(flatten)]
    client: ClientArgs,
}

/// Prints the monitors and the scans that contain the words.
pub async fn run(args: FindArgs) -> Result<(), Failure> {
    let session = args.client.open()?;
    let text = args.words.join(" ");
    let most = Some(args.limit);
    let path = |list: &str| {
        let query = Query::new(list).with("text", Some(&text));
        query.with("limit", Some(page_limit(most))).path()
    };
    let (of_monitors, of_scans) = (path("/v1/monitors"), path("/v1/scans"));
    if session.json {
        print_lines(&session, &of_monitors).await?;
        return print_lines(&session, &of_scans).await;
    }
    let monitors: Vec<Monitor> = rows(&session.client, &of_monitors, most).await?;
    let scans: Vec<Scan> = rows(&session.client, &of_scans, most).await?;
    if monitors.is_empty() && scans.is_empty() {
        let text = VisibleText::one_line(text.as_str());
        let nothing = format!(
            "No scan or monitor has \"{text}\" in its name, label, tags, airports or hotel. `farescan ask '{text}'` asks for prices."
        );
        return print_nothing(&session.client, &nothing).await;
    }
    let mut out = anstream::stdout();
    if !monitors.is_empty() {
        writeln!(
            out,
            "{}",
            table(&monitors::table(&monitors), session.screen)
        )?;
    }
    if !scans.is_empty() {
        writeln!(
            out,
            "{}",
            table(&scan::table("Scans", &scans), session.screen)
        )?;
    }
    Ok(())
}
