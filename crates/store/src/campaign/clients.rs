//! On whose machines the clients of a campaign's steps are, when that is not the server's.

use serde::{Deserialize, Serialize};

/// The member `client_hosts` of `campaign.json`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClientHostsHeader {
    /// As the user's file of hosts calls them, in the order in which clients are shared out.
    pub names: Vec<String>,
    /// The address at which they reach the server, if it was given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub server_address: Option<String>,
}

impl ClientHostsHeader {
    /// `cl1, cl2, which reach the servers at 10.0.0.11`
    pub fn in_words(&self) -> String {
        let names = self.names.join(", ");
        match &self.server_address {
            Some(address) => format!("{names}, which reach the servers at {address}"),
            None => names,
        }
    }
}
