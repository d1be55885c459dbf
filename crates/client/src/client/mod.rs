//! The command line as a client of a running service: where it is, with which key, and what its
//! errors mean.

mod error;
mod events;
mod http;
pub mod profiles;
mod settings;

pub use error::{ClientError, root_cause};
pub use events::ScanChanges;
pub use http::{ApiClient, ServiceResponse};
pub use settings::{ConnectionArgs, checked_key};

use super::Failure;
use super::terminal::Screen;

/// The arguments of every command that calls the service.
#[derive(Debug, Clone, clap::Args)]
pub struct ClientArgs {
    #[command(flatten)]
    pub connection: ConnectionArgs,
    /// Print the JSON of the API as it came; a list as one object a line
    #[arg(long)]
    pub json: bool,
}

/// A service, and the terminal that shows its answers.
pub struct ServiceSession {
    pub client: ApiClient,
    pub screen: Screen,
    /// Whether results are printed as JSON.
    pub json: bool,
}

impl ClientArgs {
    /// Reads the settings of the connection. Sends nothing.
    ///
    /// # Errors
    /// An invalid address, an unreadable profile, or no key.
    pub fn open(&self) -> Result<ServiceSession, Failure> {
        let connection = self.connection.resolve()?;
        Ok(ServiceSession {
            client: connection.client()?,
            screen: Screen::detect(),
            json: self.json,
        })
    }
}
