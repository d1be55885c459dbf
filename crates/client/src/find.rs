//! `farescan find`: what the box in the head of each page finds. The command of its kind shows an id.

use std::io::Write as _;

use clap::{FromArgMatches as _, Subcommand as _};
use farescan_contract::Scan;
use farescan_contract::monitors::Monitor;
use farescan_contract::visible_text::VisibleText;
use farescan_sheets::draft::shell_word;
use farescan_sheets::scan;

use super::client::ClientArgs;
use super::pages::{Query, page_limit, print_lines, print_nothing, rows};
use super::render::sheet::table;
use super::{ClientCommand, Failure, ids, monitors};

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

impl FindArgs {
    /// The command that shows what the only word names, an id, with the same connection and output.
    fn command_of_id(&self) -> Option<ClientCommand> {
        let [word] = self.words.as_slice() else {
            return None;
        };
        let of = &self.client.connection;
        let options = [("url", &of.url), ("profile", &of.profile)];
        let options = options
            .into_iter()
            .filter_map(|(name, value)| Some(format!("--{name}={}", value.as_deref()?)));
        let json = self.client.json.then(|| "--json".to_owned());
        let words = ids::command_of(word)?.into_iter().map(str::to_owned);
        let words = words.chain(options).chain(json);
        let program = clap::Command::new("farescan").no_binary_name(true);
        let program = ClientCommand::augment_subcommands(program);
        let read = program.try_get_matches_from(words);
        ClientCommand::from_arg_matches(&read.ok()?).ok()
    }
}

/// Prints what an id names, or the monitors and the scans that contain the words. `program` is the whole
/// command line.
pub async fn run(args: FindArgs, program: clap::Command) -> Result<(), Failure> {
    match args.command_of_id() {
        Some(command) => Box::pin(command.run(program)).await,
        None => containing(args).await,
    }
}

async fn containing(args: FindArgs) -> Result<(), Failure> {
    let session = args.client.open()?;
    let text = args.words.join(" ");
    let most = Some(args.limit);
    let path = |list: &str| {
        let query = Query::new(list).with("text", Some(&text));
        query.with("limit", Some(page_limit(most))).path()
    };
    let (of_monitors, of_scans) = (path("/v1/monitors"), path("/v1/scans"));
    if session.json {
        print_lines(&session, &of_monitors, most).await?;
        return print_lines(&session, &of_scans, most).await;
    }
    let monitors: Vec<Monitor> = rows(&session.client, &of_monitors, most).await?;
    let scans: Vec<Scan> = rows(&session.client, &of_scans, most).await?;
    if monitors.is_empty() && scans.is_empty() {
        let text = VisibleText::one_line(text.as_str()).to_string();
        let word = shell_word(&text);
        let nothing = format!(
            "No scan or monitor has \"{text}\" in its name, label, tags, airports or hotel. `farescan ask {word}` asks for prices."
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

#[cfg(test)]
mod tests {
    use clap::Parser as _;

    use super::*;

    #[derive(Debug, clap::Parser)]
    struct Program {
        #[command(flatten)]
        find: FindArgs,
    }

    #[test]
    fn an_id_is_shown_by_its_command_whatever_the_place_of_the_options() {
        for typed in [
            "scn_01a203c0e342",
            "scn_01a203c0e342 -n 5",
            "--json scn_01a203c0e342",
            "--url http://x.test -n 5 scn_01a203c0e342 --profile work --json",
        ] {
            let line = format!("find {typed}");
            let find = Program::parse_from(line.split(' ')).find;
            let shown = format!("{:?}", find.command_of_id().unwrap());
            assert!(shown.contains("scan: \"scn_01a203c0e342\""), "{shown}");
            let client = format!("{:?}", find.client);
            assert!(shown.contains(&client), "{shown} has {client}");
        }
        for typed in ["spring", "scn_01a203c0e342 spring", "scn_1"] {
            let line = format!("find {typed}");
            let find = Program::parse_from(line.split(' ')).find;
            assert!(find.command_of_id().is_none(), "{typed}");
        }
    }
}
