//! Channels (channels.md): where a person hears of alerts, such as a phone or a chat.
//!
//! Here: requests, responses, and the notices that a channel sends. Not here: which addresses are
//! allowed (`webhooks::Guard`), how a kind writes a notice (`notices`), deliveries ([`webhooks`]).
//!
//! [`webhooks`]: super::webhooks

mod notice;
mod request;
mod resource;

pub use notice::{ChannelAlerts, ChannelNotice, NoticeLink, NoticePriority};
pub use request::{
    CODE_ALPHABET, CODE_CHARS, ChannelConfirmation, ChannelName, ChannelPatch, ChannelRequest,
    ChannelToken, ChannelUrl, ChannelsQuery, ConfirmationCode,
};
pub use resource::{Channel, ChannelKind, ChannelPage, ChannelPause, ChannelStatus};
