//! `farescan settings`: what holds for all of the caller's work.

use std::io::Write as _;

use reqwest::Method;
use serde_json::json;

use super::Failure;
use super::client::ClientArgs;
use super::exit::CommandEnd;
use farescan_contract::account_settings::AccountSettings;

/// The API's path.
const PATH: &str = "/v1/account/settings";

/// Shows the settings, or sets some.
#[derive(Debug, clap::Args)]
#[command(args_conflicts_with_subcommands = true)]
pub struct SettingsArgs {
    #[command(subcommand)]
    command: Option<SettingsCommand>,
    #[command(flatten)]
    client: ClientArgs,
}

/// The subcommands.
#[derive(Debug, clap::Subcommand)]
enum SettingsCommand {
    /// Set what is named; the rest stays
    ///
    /// It reads the settings and then replaces all of them: a change that another makes in between is undone.
    #[command(
        after_help = "Examples:\n  farescan settings set --max-age 6h\n  farescan settings set --max-age 0s --record-searches true"
    )]
    Set(SetArgs),
}

/// New settings.
#[derive(Debug, clap::Args)]
struct SetArgs {
    /// Age of answers that scans take which name none: 90min, 6h, 3d; 0s for none
    #[arg(long, value_name = "AGE", value_parser = super::age::seconds)]
    max_age: Option<u32>,
    /// Store every complete answer of your single searches: `true` or `false`
    #[arg(long, value_name = "BOOL")]
    record_searches: Option<bool>,
    #[command(flatten)]
    client: ClientArgs,
}

/// Runs the command.
pub async fn run(args: SettingsArgs) -> Result<(), Failure> {
    let Some(SettingsCommand::Set(args)) = args.command else {
        let session = args.client.open()?;
        return print(session.read(PATH).await?);
    };
    if args.max_age.is_none() && args.record_searches.is_none() {
        return Err(CommandEnd::usage(
            "no setting is named; nothing was changed\n  next: `farescan settings set --max-age 6h`, or see `farescan settings set --help`",
        ));
    }
    let session = args.client.open()?;
    let before: AccountSettings = session.client.get(PATH).await?;
    let body = json!({
        "record_searches": args.record_searches.unwrap_or(before.record_searches),
        "max_age_seconds": args.max_age.or(before.max_age_seconds),
    });
    print(session.change(Method::PUT, PATH, &body).await?)
}

/// Without settings they are printed as JSON.
fn print(settings: Option<AccountSettings>) -> Result<(), Failure> {
    let Some(settings) = settings else {
        return Ok(());
    };
    let mut out = anstream::stdout();
    match settings.max_age_seconds {
        Some(age) => writeln!(
            out,
            "Scans that name no age take answers that are at most {} old.",
            in_words(age)
        )?,
        None => writeln!(out, "Scans that name no age search everything.")?,
    }
    let stored = if settings.record_searches {
        "Complete answers of single searches are stored."
    } else {
        "Single searches are stored only with `--max-age` (`Cache-Control: max-age`)."
    };
    writeln!(out, "{stored}")?;
    Ok(())
}

/// An age in its largest unit that is exact: `6 h`, `90 min`, `3 d`.
fn in_words(seconds: u32) -> String {
    let units = [(86_400, "d"), (3_600, "h"), (60, "min"), (1, "s")];
    let exact = units
        .into_iter()
        .find(|(unit, _)| seconds.is_multiple_of(*unit));
    let (unit, name) = exact.unwrap_or((1, "s"));
    format!("{} {name}", seconds / unit)
}

#[cfg(test)]
mod tests {
    use super::in_words;

    #[test]
    fn an_age_is_exact_in_words() {
        for (seconds, expected) in [
            (21_600, "6 h"),
            (5_400, "90 min"),
            (259_200, "3 d"),
            (93_600, "26 h"),
            (61, "61 s"),
        ] {
            assert_eq!(in_words(seconds), expected);
        }
    }
}
