//! The dashboard: pages for people, rendered on the server.
//!
//! A page reads through the same functions as the handlers of the API, as the caller whose key its
//! session holds and under the same limits. Files and streams are answers of the API itself
//! (`api_answer`). Each page is a file with a function `routes()`. Every
//! page works without JavaScript. With it, a running scan updates itself and times are shown in the
//! viewer's zone. No page loads anything from another host.
//!
//! Shared by the pages: the frame (`layout`), sessions (`session`), forms (`form`), errors
//! (`failure`), and small parts such as times and prices (`parts`).

mod activity;
mod alerts;
mod api_answer;
mod ask;
mod assets;
mod bulk;
mod channels;
mod charts;
mod deliveries;
mod error_pages;
mod failure;
mod find;
mod form;
mod front_page;
mod item;
mod layout;
mod links;
mod login;
mod monitors;
mod once;
mod overview;
mod parts;
mod price_table;
mod prices;
mod reported;
mod router;
mod scans;
mod session;
mod sheet;
mod suggestions;
mod unsubscribe;
mod usage;

pub use self::error_pages::with_error_pages;
pub use self::router::pages;
