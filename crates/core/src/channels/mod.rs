//! Channels: where a person hears of alerts (channels.md; decision 58).
//!
//! ```text
//!  create, update, delete, test  ─► a channel and its endpoint
//!  confirm, unsubscribe, forbid  ─► whether the reader of an address wants its mails
//!  of_monitor                    ─► which channels a monitor names
//!  send                          ─► one message for each of them, in the transaction of the alerts
//! ```
//!
//! A message is a delivery: `webhooks` leases, sends, retries and records it. A message that may not
//! be sent yet (quiet hours, a daily message, too many in an hour) is held: later alerts join it
//! (`send`). Not here: what a message says (`notices`), HTTP.

mod confirm;
mod create;
mod delete;
mod of_monitor;
pub mod read;
mod send;
mod store;
mod test;
mod update;
mod validate;

pub use confirm::{confirm, forbid_codes, unsubscribe};
pub use create::{MAX_CHANNELS, create};
pub use delete::delete;
pub use of_monitor::{check_named, name_channels, named_by};
pub use send::{ChannelTarget, EVENT, send, targets};
pub use test::{TEST_EVENT, send_test};
pub use update::update;
