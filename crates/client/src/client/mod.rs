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

use std::io::Write as _;

use reqwest::Method;
use serde::Serialize;
use serde::de::DeserializeOwned;

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

impl ServiceSession {
    /// What a response says; `None` if results are JSON, which is printed then.
    ///
    /// # Errors
    /// An unreadable response, or an output that is closed.
    pub fn read_or_print<T: DeserializeOwned>(
        &self,
        answer: &ServiceResponse,
    ) -> Result<Option<T>, Failure> {
        if self.json {
            writeln!(anstream::stdout(), "{}", answer.text.trim_end())?;
            return Ok(None);
        }
        Ok(Some(answer.read()?))
    }

    /// What a resource says, as by [`Self::read_or_print`].
    ///
    /// # Errors
    /// As [`ApiClient::send`], and an output that is closed.
    pub async fn read<T: DeserializeOwned>(&self, path: &str) -> Result<Option<T>, Failure> {
        self.read_or_print(&self.client.ask(path).await?)
    }

    /// Sends a body, and reads what the resource says then, as by [`Self::read_or_print`].
    ///
    /// # Errors
    /// As [`Self::read`].
    pub async fn change<T: DeserializeOwned>(
        &self,
        method: Method,
        path: &str,
        body: &impl Serialize,
    ) -> Result<Option<T>, Failure> {
        let answer = self.client.send(method, path, Some(body), None).await?;
        self.read_or_print(&answer)
    }

    /// Sends a body that the service carries out once, also if the request is repeated.
    ///
    /// # Errors
    /// As [`ApiClient::send`].
    pub async fn create(
        &self,
        path: &str,
        body: &impl Serialize,
    ) -> Result<ServiceResponse, ClientError> {
        let once = uuid::Uuid::now_v7().to_string();
        let (client, once) = (&self.client, Some(once.as_str()));
        client.send(Method::POST, path, Some(body), once).await
    }

    /// Deletes a resource.
    ///
    /// # Errors
    /// As [`ApiClient::send`].
    pub async fn delete(&self, path: &str) -> Result<(), ClientError> {
        let deleted = self.client.send(Method::DELETE, path, None::<&()>, None);
        deleted.await.map(drop)
    }

    /// Sends a command without a body. With `once` the service carries out a repetition of the
    /// request only once.
    ///
    /// # Errors
    /// As [`ApiClient::send`].
    pub async fn command(&self, path: &str, once: bool) -> Result<ServiceResponse, ClientError> {
        let once = once.then(|| uuid::Uuid::now_v7().to_string());
        let (client, none) = (&self.client, None::<&()>);
        client.send(Method::POST, path, none, once.as_deref()).await
    }
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
