//! `farescan ask`: a search in words. What was read, what is known of it already and what it costs come
//! first, then the question.

mod known;

use std::fmt::Write as _;

use farescan_ask::body::day_of_last_check;
use farescan_ask::{Checks, Question, Reading, RefusedWords};
use farescan_contract::visible_text::VisibleText;

use super::Failure;
use super::dates::{now, today};
use super::exit::CommandEnd;
use super::monitors::ChannelOptions;
use super::scan::FollowArgs;
use super::wrap::note;
use super::{monitors, scan};

/// What is done with a question; none is the cheapest way.
#[derive(Debug, clap::Args)]
struct AskWay {
    /// Search only what can still be the cheapest [default, if there is more than one search]
    #[arg(long, group = "way")]
    find: bool,
    /// Search everything
    #[arg(long, group = "way")]
    all: bool,
    /// Look each day, and alert below the amount; of a hotel in several markets compare them each Monday.
    /// With --find also search for the cheapest now
    #[arg(long, conflicts_with_all = ["all", "allow_overage", "detach", "csv"])]
    watch: bool,
}

/// Words, and what is done with them.
#[derive(Debug, clap::Args)]
pub struct AskArgs {
    /// Places, dates and limits: `tel aviv london march below 150`
    #[arg(value_name = "WORDS", required = true, num_args = 1..)]
    words: Vec<String>,
    #[command(flatten)]
    way: AskWay,
    /// Watch the markets of a hotel on dates that stay as many days ahead as those of the words
    #[arg(long, requires = "watch")]
    rolling: bool,
    #[command(flatten)]
    follow: FollowArgs,
}

impl AskArgs {
    /// The options that a suggested command keeps, each after a blank. Consent is not one: it was
    /// given to other words.
    fn suggested_options(&self) -> String {
        let options = [
            (self.way.find, " --find"),
            (self.way.all, " --all"),
            (self.way.watch, " --watch"),
            (self.rolling, " --rolling"),
            (self.follow.csv, " --csv"),
            (self.follow.detach, " --detach"),
        ];
        let given = options.into_iter().filter(|(is_given, _)| *is_given);
        given.map(|(_, option)| option).collect()
    }
}

/// Reads, says what was read, and does it.
pub async fn run(args: AskArgs) -> Result<(), Failure> {
    let text = args.words.join(" ");
    let reading = farescan_ask::read(&text, today());
    let options = args.suggested_options();
    note!("{}", chips(&reading, &options).trim_end());
    let question = match reading.result {
        Ok(question) => question,
        Err(refusals) => {
            let corrected = reading.corrected.as_deref();
            return Err(CommandEnd::usage(said(&refusals, corrected, &options)));
        }
    };
    say_known(&args.follow, &question).await;
    if args.way.find && question.compares_markets() {
        return Err(CommandEnd::usage(
            "--find searches only what can still be the cheapest, and markets are compared by all prices. Nothing was sent.",
        ));
    }
    if args.way.watch {
        let searches = u32::try_from(question.searches()).unwrap_or(u32::MAX);
        let body = question
            .parity_monitor(searches, day_of_last_check(now()), args.rolling)
            .or_else(|| {
                question
                    .monitor(searches, today())
                    .filter(|_| !args.rolling)
            });
        let body = body.ok_or_else(|| {
            CommandEnd::usage(if args.rolling {
                "--rolling needs a hotel with several markets, such as `hotel \"Arts\" us de`. Nothing was sent."
            } else {
                "--watch needs a price in the words, such as `below 150`, or a hotel with several markets. Nothing was sent."
            })
        })?;
        let channels = ChannelOptions::of_kind(question.via);
        let (confirmation, client) = (args.follow.confirmation, args.follow.client.clone());
        monitors::create_from(body, channels, confirmation, client).await?;
        if !args.way.find {
            return Ok(());
        }
        note!("The watch is made. The search for the cheapest follows.");
        // The watch has the amount: the search is for the cheapest.
        let cheapest = Question {
            below: None,
            ..question
        };
        return scan::submit(cheapest.find(), args.follow).await;
    }
    if question.below.is_some() || question.compares_markets() {
        let checks = question.watch_checks();
        let hears = match checks {
            Checks::Weekly(_) if question.compares_markets() => "reports",
            _ => "alerts",
        };
        note!(
            "--watch makes a monitor of these words, which looks {} and {hears}.",
            checks.words()
        );
    }
    let is_find = question.searches() > 1 && !question.compares_markets();
    let find = args.way.find || (!args.way.all && is_find);
    let body = if find {
        question.find()
    } else {
        question.scan()
    };
    scan::submit(body, args.follow).await
}

/// Says the cheapest price that is known already, where somebody is to decide by it. Whether the service can be
/// reached, and with which key, what follows says.
async fn say_known(follow: &FollowArgs, question: &Question) {
    let Ok(session) = follow.client.open() else {
        return;
    };
    if follow.confirmation.yes && !session.screen.interactive {
        return;
    }
    if let Some(known) = known::cheapest(&session.client, question).await {
        note!("{known}");
    }
}

/// Whether words are a question: all are read, or a part of them if the first is no mistyped command.
pub fn is_question(words: &str, begins_with_typo: bool) -> bool {
    let reading = farescan_ask::read(words, today());
    let is_part_read = reading.chips.iter().any(|chip| chip.words.is_some());
    reading.result.is_ok() || (is_part_read && !begins_with_typo)
}

/// A line for each part that was read.
fn chips(reading: &Reading, options: &str) -> String {
    let mut lines = String::new();
    for chip in &reading.chips {
        let from = match &chip.words {
            Some(words) => format!("from \"{}\"", visible(words)),
            None => "not said".to_owned(),
        };
        _ = writeln!(
            lines,
            "{:<9} {}, {from}",
            chip.kind.label(),
            visible(&chip.text)
        );
        let alone: Vec<_> = chip.alone.iter().map(|one| one.text.as_str()).collect();
        if let (Some(words), [_, ..]) = (&chip.words, alone.as_slice()) {
            let (codes, words) = (alone.join(", "), visible(words));
            _ = writeln!(
                lines,
                "{:<9} one alone: {codes} in place of \"{words}\"",
                ""
            );
        }
        for choice in &chip.choices {
            _ = writeln!(
                lines,
                "{:<9} or {}: {}",
                "",
                visible(&choice.text),
                command(&choice.question, options)
            );
        }
    }
    lines
}

/// Why there is no question, and the commands of what could be meant.
fn said(refusals: &[RefusedWords], corrected: Option<&str>, options: &str) -> String {
    let mut text = String::new();
    for refusal in refusals {
        if !refusal.words.is_empty() {
            _ = write!(text, "\"{}\": ", visible(&refusal.words));
        }
        _ = writeln!(text, "{}", refusal.says);
        for choice in &refusal.choices {
            let command = command(&choice.question, options);
            _ = writeln!(text, "  {}: {command}", visible(&choice.text));
        }
    }
    if let Some(corrected) = corrected {
        _ = writeln!(text, "All of it: {}", command(corrected, options));
    }
    text + "Nothing was sent."
}

/// Text of the caller, on one line.
fn visible(text: &str) -> VisibleText {
    VisibleText::one_line(text)
}

fn command(question: &str, options: &str) -> String {
    let words = question.replace('\'', r"'\''");
    format!("`farescan ask '{}'{options}`", visible(&words))
}
