//! `farescan channels`: where a person hears of alerts.

use std::io::Write as _;

use farescan_contract::FieldValue as _;
use farescan_contract::channels::{Channel, ChannelKind, ChannelPause, NoticePriority};
use farescan_contract::ids::ChannelId;
use farescan_contract::monitors::{MAX_CHANNELS, Monitor};
use farescan_contract::visible_text::escape_hidden;
use farescan_sheets::channel::{self, Hearing, hearing};
use farescan_sheets::numbers::counted;
use farescan_sheets::phone;
use reqwest::Method;
use serde_json::{Map, Value, json};

use super::Failure;
use super::client::{ClientArgs, ServiceSession};
use super::exit::CommandEnd;
use super::format::zone;
use super::ids;
use super::list::print_table;
use super::pages::{Query, page_limit, rows};
use super::question::Confirmation;
use super::render::sheet::table;
use super::test_message::send_test;
use crate::wrap::note;

/// Lists channels, or does something with one.
#[derive(Debug, clap::Args)]
#[command(args_conflicts_with_subcommands = true)]
pub struct ChannelsArgs {
    #[command(subcommand)]
    command: Option<ChannelsCommand>,
    #[command(flatten)]
    client: ClientArgs,
}

/// The subcommands.
#[derive(Debug, clap::Subcommand)]
enum ChannelsCommand {
    /// Add a channel: a topic of ntfy, an incoming webhook of Slack, or a mail address
    #[command(
        after_help = "Examples:\n  farescan channels add ntfy https://ntfy.sh/fares-3f9a2c71d0 --name \"my phone\"\n  farescan channels add slack - --quiet-hours 22:00-07:00 --timezone Europe/Madrid < url.txt\n  farescan channels add email me@example.com"
    )]
    Add(AddArgs),
    /// Make a topic of ntfy for your phone, and show it once, with its code for the phone's camera
    #[command(
        after_help = "Examples:\n  farescan channels phone\n  farescan channels phone --name \"my phone\" --quiet-hours 22:00-07:00 --timezone Europe/Madrid"
    )]
    Phone(PhoneArgs),
    /// Also use a channel for the monitors that exist, but those whose channels were chosen
    #[command(
        after_help = "Examples:\n  farescan channels use @last\n  farescan channels use chn_01a203c0e342"
    )]
    Use(OneChannel),
    /// Confirm a mail address with the code that was mailed to it
    #[command(
        after_help = "Examples:\n  farescan channels confirm @last K7QX-2MPT\n  farescan channels confirm chn_01a203c0e342"
    )]
    Confirm(ConfirmArgs),
    /// Send a test message and show what the receiver answered
    #[command(
        after_help = "Examples:\n  farescan channels test @last\n  farescan channels test chn_01a203c0e342 --json"
    )]
    Test(OneChannel),
    /// Change what is sent to a channel, and when
    #[command(
        after_help = "Examples:\n  farescan channels edit @last --quiet-hours 22:00-07:00 --timezone Europe/Madrid\n  farescan channels edit chn_01a203c0e342 --least-priority high"
    )]
    Edit(EditChannelArgs),
    /// Stop sending to a channel; its messages are stored as failed
    #[command(
        after_help = "Examples:\n  farescan channels pause @last\n  farescan channels pause chn_01a203c0e342 --json"
    )]
    Pause(OneChannel),
    /// Send to a paused channel again
    #[command(
        after_help = "Examples:\n  farescan channels resume @last\n  farescan channels resume chn_01a203c0e342 --json"
    )]
    Resume(OneChannel),
    /// Remove a channel that no monitor names
    #[command(
        after_help = "Examples:\n  farescan channels remove chn_01a203c0e342\n  farescan channels remove @last --yes"
    )]
    Remove(RemoveArgs),
}

/// A channel.
#[derive(Debug, clap::Args)]
struct OneChannel {
    /// Channel: its id, the beginning of it, or `@last`
    #[arg(value_name = "CHANNEL")]
    channel: String,
    #[command(flatten)]
    client: ClientArgs,
}

/// A channel, and its code.
#[derive(Debug, clap::Args)]
struct ConfirmArgs {
    /// Channel: its id, the beginning of it, or `@last`
    #[arg(value_name = "CHANNEL")]
    channel: String,
    /// The code of the newest mail; without it another one is mailed
    #[arg(value_name = "CODE")]
    code: Option<String>,
    #[command(flatten)]
    client: ClientArgs,
}

/// A channel, and the consent.
#[derive(Debug, clap::Args)]
struct RemoveArgs {
    /// Channel: its id, the beginning of it, or `@last`
    #[arg(value_name = "CHANNEL")]
    channel: String,
    #[command(flatten)]
    confirmation: Confirmation,
    #[command(flatten)]
    client: ClientArgs,
}

/// A new channel.
#[derive(Debug, clap::Args)]
struct AddArgs {
    /// What receives the messages
    #[arg(value_name = "KIND")]
    kind: ChannelKind,
    /// Where it is; `-` reads a line, because the URL may be a secret
    #[arg(value_name = "TARGET")]
    target: String,
    /// Read an access token from a line after the target, for a protected topic of ntfy
    #[arg(long)]
    token: bool,
    #[command(flatten)]
    settings: ChannelSettings,
    #[command(flatten)]
    client: ClientArgs,
}

/// A new topic.
#[derive(Debug, clap::Args)]
struct PhoneArgs {
    #[command(flatten)]
    settings: ChannelSettings,
    #[command(flatten)]
    client: ClientArgs,
}

/// A channel and what changes.
#[derive(Debug, clap::Args)]
struct EditChannelArgs {
    /// Channel: its id, the beginning of it, or `@last`
    #[arg(value_name = "CHANNEL")]
    channel: String,
    #[command(flatten)]
    settings: ChannelSettings,
    #[command(flatten)]
    client: ClientArgs,
}

/// What is sent to a channel, and when.
#[derive(Debug, clap::Args)]
struct ChannelSettings {
    /// Its name [default of a new one: the kind]
    #[arg(long, value_name = "TEXT")]
    name: Option<String>,
    /// Leave out alerts of a lower priority: `low`, `normal` or `high`
    #[arg(long, value_name = "PRIORITY")]
    least_priority: Option<NoticePriority>,
    /// Hours without messages; what fires in them is one message at their end
    #[arg(long, value_name = "FROM-UNTIL", value_parser = quiet_hours)]
    quiet_hours: Option<Value>,
    /// One message a day, at this time
    #[arg(long, value_name = "HH:MM")]
    digest_at: Option<String>,
    /// The time zone of these hours [default of a new one: UTC]
    #[arg(long, value_name = "ZONE")]
    timezone: Option<String>,
}

impl ChannelSettings {
    /// The fields that are given.
    fn fields(self) -> Map<String, Value> {
        let given = |fields: Vec<(&str, Option<Value>)>| -> Map<String, Value> {
            let fields = fields.into_iter();
            let given = fields.filter_map(|(name, value)| Some((name.to_owned(), value?)));
            given.collect()
        };
        let notify = given(vec![
            ("quiet_hours", self.quiet_hours),
            ("digest_at", self.digest_at.map(Value::from)),
        ]);
        given(vec![
            ("name", self.name.map(Value::from)),
            (
                "least_priority",
                self.least_priority.map(|priority| json!(priority)),
            ),
            ("timezone", self.timezone.map(Value::from)),
            ("notify", (!notify.is_empty()).then(|| notify.into())),
        ])
    }
}

/// Runs the command.
pub async fn run(args: ChannelsArgs) -> Result<(), Failure> {
    match args.command {
        None => list(args.client).await,
        Some(ChannelsCommand::Add(args)) => add(args).await,
        Some(ChannelsCommand::Phone(args)) => add_phone(args).await,
        Some(ChannelsCommand::Use(args)) => use_for_monitors(args).await,
        Some(ChannelsCommand::Confirm(args)) => confirm(args).await,
        Some(ChannelsCommand::Test(args)) => test(args).await,
        Some(ChannelsCommand::Edit(args)) => edit(args).await,
        Some(ChannelsCommand::Pause(args)) => set_status(args, "paused").await,
        Some(ChannelsCommand::Resume(args)) => set_status(args, "active").await,
        Some(ChannelsCommand::Remove(args)) => remove(args).await,
    }
}

/// The active channels of a caller, all of them: a monitor that is to tell somebody names them.
pub async fn active(session: &ServiceSession) -> Result<Vec<Channel>, Failure> {
    let path = Query::new("/v1/channels")
        .with("status", Some("active"))
        .with("limit", Some(page_limit(None)))
        .path();
    Ok(rows(&session.client, &path, None).await?)
}

async fn list(client: ClientArgs) -> Result<(), Failure> {
    let session = client.open()?;
    let nothing = "No channels. `farescan channels phone` sends alerts to a phone.";
    let query = Query::new("/v1/channels");
    print_table(&session, query, None, nothing, async |rows| {
        Ok(channel::list(rows))
    })
    .await
}

fn print(session: &ServiceSession, channels: &[Channel]) -> Result<(), Failure> {
    let list = channel::list(channels);
    writeln!(anstream::stdout(), "{}", table(&list, session.screen))?;
    note!("Times in {}.", zone());
    Ok(())
}

async fn add(args: AddArgs) -> Result<(), Failure> {
    let session = args.client.open()?;
    let target = match args.target.as_str() {
        "-" => line("the URL of the channel")?,
        given => given.to_owned(),
    };
    let mut body = args.settings.fields();
    body.entry("name")
        .or_insert_with(|| channel::kind_words(args.kind).into());
    if args.token {
        body.insert("token".to_owned(), line("the access token")?.into());
    }
    create(&session, body, args.kind, target).await.map(drop)
}

/// Creates a channel and says what can be done with it; whether that was said, and not printed as JSON.
async fn create(
    session: &ServiceSession,
    mut body: Map<String, Value>,
    kind: ChannelKind,
    target: String,
) -> Result<bool, Failure> {
    body.insert("kind".to_owned(), json!(kind));
    body.insert("url".to_owned(), target.into());
    let answer = session.create("/v1/channels", &body).await?;
    let Some(channel) = session.read_or_print::<Channel>(&answer)? else {
        return Ok(false);
    };
    writeln!(anstream::stdout(), "{}  {}", channel.id, channel.name)?;
    if channel.status_reason == Some(ChannelPause::Unconfirmed) {
        note!("A mail with a code is on its way: `farescan channels confirm @last CODE`.");
    } else {
        note!(
            "`farescan channels test @last` sends a message. New monitors name the channel; `farescan channels use @last` adds it to those that exist."
        );
    }
    Ok(true)
}

async fn add_phone(args: PhoneArgs) -> Result<(), Failure> {
    let session = args.client.open()?;
    let mut body = args.settings.fields();
    body.entry("name").or_insert_with(|| "My phone".into());
    let url = phone::topic(rand::random());
    // As JSON the answer shows no topic.
    note!("{url}\nShown once: whoever knows it reads your alerts.");
    if create(&session, body, ChannelKind::Ntfy, url.clone()).await? {
        for (number, step) in phone::STEPS.iter().enumerate() {
            note!("{}. {step}", number + 1);
        }
        if let Some(code) = phone::blocks(&phone::app_link(&url)).filter(|_| session.screen.live) {
            eprintln!("{code}");
        }
    }
    Ok(())
}

/// Adds a channel to the monitors that exist. One whose channels were changed at the same moment has those that were read, and this one:
/// the list is shown.
async fn use_for_monitors(args: OneChannel) -> Result<(), Failure> {
    let (session, id) = ids::open::<ChannelId>(&args.client, &args.channel).await?;
    let active = active(&session).await?;
    let Some(added) = active.iter().find(|channel| channel.id == id) else {
        return Err(CommandEnd::usage(format!(
            "{id} is paused; nothing was changed\n  next: `farescan channels resume {id}`"
        )));
    };
    let path = Query::new("/v1/monitors")
        .with("limit", Some(page_limit(None)))
        .path();
    let monitors: Vec<Monitor> = rows(&session.client, &path, None).await?;
    let (mut count, mut others) = (0_u64, Vec::new());
    for monitor in &monitors {
        match hearing(added, &active, monitor) {
            Hearing::Hears => {}
            Hearing::Full | Hearing::Chosen => others.push(monitor),
            Hearing::Joins => {
                let channels: Vec<_> = monitor.channels.iter().chain([&id]).collect();
                let (path, body) = (
                    format!("/v1/monitors/{}", monitor.id),
                    json!({"channels": channels}),
                );
                session
                    .change::<Monitor>(Method::PATCH, &path, &body)
                    .await?;
                count += 1;
            }
        }
    }
    note!(
        "{} added to {}.",
        escape_hidden(&added.name),
        counted(count, "monitor")
    );
    if !others.is_empty() {
        note!(
            "Other channels were chosen for these, or they have {MAX_CHANNELS}. `farescan monitors edit MONITOR --channel NAME` chooses:"
        );
        for monitor in others {
            note!("  {}  {}", monitor.id, escape_hidden(&monitor.name));
        }
    }
    Ok(())
}

/// A line of standard input.
fn line(what: &str) -> Result<String, Failure> {
    let mut text = String::new();
    std::io::stdin().read_line(&mut text)?;
    match text.trim() {
        "" => Err(CommandEnd::usage(format!(
            "expected {what} as a line of standard input"
        ))),
        text => Ok(text.to_owned()),
    }
}

/// `22:00-07:00`.
fn quiet_hours(text: &str) -> Result<Value, String> {
    let (from, until) = text
        .split_once('-')
        .ok_or("expected two times, such as 22:00-07:00")?;
    Ok(json!({"from": from.trim(), "until": until.trim()}))
}

async fn confirm(args: ConfirmArgs) -> Result<(), Failure> {
    let (session, id) = ids::open::<ChannelId>(&args.client, &args.channel).await?;
    let asks = args.code.is_none();
    let code = args.code.map(|code| ("code".to_owned(), json!(code)));
    let fields: Map<String, Value> = code.into_iter().collect();
    let path = format!("/v1/channels/{id}/confirm");
    let confirmed = session.change::<Channel>(Method::POST, &path, &fields);
    if let Some(channel) = confirmed.await? {
        print(&session, &[channel])?;
        if asks {
            note!("A mail with another code is on its way.");
        }
    }
    Ok(())
}

async fn test(args: OneChannel) -> Result<(), Failure> {
    let (session, id) = ids::open::<ChannelId>(&args.client, &args.channel).await?;
    let next = "`farescan channels` has its state";
    send_test(&session, &format!("/v1/channels/{id}/test"), next).await
}

async fn edit(args: EditChannelArgs) -> Result<(), Failure> {
    let mut fields = args.settings.fields();
    if fields.is_empty() {
        return Err(CommandEnd::usage(
            "no change is named; nothing was changed\n  next: `farescan channels edit --help`",
        ));
    }
    let (session, id) = ids::open::<ChannelId>(&args.client, &args.channel).await?;
    // A new `notify` replaces the old one as a whole.
    if let Some(Value::Object(changed)) = fields.get_mut("notify") {
        let channel: Channel = session.client.get(&format!("/v1/channels/{id}")).await?;
        let old = channel.notify.map(|notify| notify.to_value());
        if let Some(Value::Object(mut whole)) = old {
            whole.append(changed);
            *changed = whole;
        }
    }
    change(&session, id, &fields).await
}

async fn set_status(args: OneChannel, status: &str) -> Result<(), Failure> {
    let fields = Map::from_iter([("status".to_owned(), json!(status))]);
    let (session, id) = ids::open::<ChannelId>(&args.client, &args.channel).await?;
    change(&session, id, &fields).await
}

async fn change(
    session: &ServiceSession,
    id: ChannelId,
    fields: &Map<String, Value>,
) -> Result<(), Failure> {
    let path = format!("/v1/channels/{id}");
    match session.change(Method::PATCH, &path, fields).await? {
        Some(channel) => print(session, &[channel]),
        None => Ok(()),
    }
}

async fn remove(args: RemoveArgs) -> Result<(), Failure> {
    let (session, id) = ids::open::<ChannelId>(&args.client, &args.channel).await?;
    let path = format!("/v1/channels/{id}");
    let channel: Channel = session.client.get(&path).await?;
    let question = format!("Remove {:?} for good?", channel.name);
    args.confirmation.ask(session.screen, &question).await?;
    session.delete(&path).await?;
    note!("{id} is removed");
    Ok(())
}
