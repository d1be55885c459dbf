//! Which channels hear of a monitor's alerts.

use serde_json::{Map, Value, json};

use crate::Failure;
use crate::channels::active;
use crate::client::ServiceSession;
use crate::exit::CommandEnd;
use crate::wrap::note;
use farescan_contract::channels::{Channel, ChannelKind};
use farescan_contract::monitors::MAX_CHANNELS;

/// The shortest beginning of an id, with its prefix.
const MIN_ID_CHARS: usize = 8;

/// The channels of a monitor.
#[derive(Debug, Default, clap::Args)]
pub struct ChannelOptions {
    /// Channel that hears of the alerts: its name or its id; may be repeated [default of a new monitor: each active one]
    #[arg(long = "channel", value_name = "CHANNEL")]
    channels: Vec<String>,
    /// Of the active ones only those of this kind.
    #[arg(skip)]
    kind: Option<ChannelKind>,
    /// No channel hears of the alerts
    #[arg(long, conflicts_with = "channels")]
    no_channels: bool,
}

impl ChannelOptions {
    /// Each active channel of a kind; `None`: of any.
    pub fn of_kind(kind: Option<ChannelKind>) -> Self {
        Self {
            kind,
            ..Self::default()
        }
    }

    /// Names the channels in the body of a new monitor, and says which they are. A body that names some
    /// keeps them.
    pub(super) async fn name_in(
        self,
        session: &ServiceSession,
        body: &mut Map<String, Value>,
    ) -> Result<(), Failure> {
        if self.no_channels || (body.contains_key("channels") && self.channels.is_empty()) {
            return Ok(());
        }
        let mut all = active(session).await?;
        let chosen = if self.channels.is_empty() {
            all.retain(|channel| self.kind.is_none_or(|kind| channel.kind == kind));
            all.truncate(MAX_CHANNELS);
            all
        } else {
            chosen(all, &self.channels)?
        };
        let names: Vec<_> = chosen.iter().map(|channel| channel.name.as_str()).collect();
        if !names.is_empty() {
            note!("Alerts go to: {}.", names.join(", "));
            let ids = chosen.iter().map(|channel| json!(channel.id));
            body.insert("channels".to_owned(), ids.collect());
        } else if !body.contains_key("webhook_url") {
            note!(
                "Alerts stand in `farescan alerts`. `farescan channels phone` sends them to a phone."
            );
        }
        Ok(())
    }

    /// The channels of a changed monitor; `None` without a change.
    pub(super) async fn changed(self, session: &ServiceSession) -> Result<Option<Value>, Failure> {
        if self.no_channels {
            return Ok(Some(json!([])));
        }
        if self.channels.is_empty() {
            return Ok(None);
        }
        let chosen = chosen(active(session).await?, &self.channels)?;
        let ids = chosen.iter().map(|channel| json!(channel.id));
        Ok(Some(ids.collect()))
    }
}

/// The channels of these names or ids, each once. An id may be shortened while it is of one alone.
fn chosen(all: Vec<Channel>, wanted: &[String]) -> Result<Vec<Channel>, Failure> {
    let mut ids = Vec::new();
    for text in wanted {
        let named = |channel: &&Channel| channel.name.eq_ignore_ascii_case(text);
        let with_id = |channel: &&Channel| {
            text.len() >= MIN_ID_CHARS && channel.id.to_string().starts_with(text.as_str())
        };
        let mut found: Vec<_> = all.iter().filter(named).collect();
        if found.is_empty() {
            found = all.iter().filter(with_id).collect();
        }
        let [one] = found[..] else {
            return Err(unclear(&all, text));
        };
        ids.push(one.id);
    }
    Ok(all
        .into_iter()
        .filter(|channel| ids.contains(&channel.id))
        .collect())
}

/// None or several channels are meant.
fn unclear(all: &[Channel], text: &str) -> Failure {
    let names: Vec<_> = all.iter().map(|channel| channel.name.as_str()).collect();
    let names = if names.is_empty() {
        "none".to_owned()
    } else {
        names.join(", ")
    };
    CommandEnd::usage(format!(
        "`--channel`: found {text:?}; expected one active channel: {names}"
    ))
}
