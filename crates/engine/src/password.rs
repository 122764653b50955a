//! Passwords: they travel on pipes, and are in no argument, environment, file or error message.

use std::fmt;

use serde::{Deserialize, Serialize};
use zeroize::Zeroizing;

/// A password. Its memory is overwritten when it is dropped; client libraries keep copies that are
/// not. Its debug text is empty of it.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Password(Zeroizing<String>);

impl Password {
    /// Takes a password over.
    pub fn new(text: String) -> Self {
        Self(Zeroizing::new(text))
    }

    /// The password, for the client library.
    pub(crate) fn reveal(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Password {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Password")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_password_is_sent_and_not_shown() {
        let password = Password::new("geheim".to_owned());
        assert_eq!(
            format!("{password:?} {:?}", Some(&password)),
            "Password Some(Password)"
        );
        let sent = serde_json::to_string(&password).unwrap();
        assert_eq!(serde_json::from_str::<Password>(&sent).unwrap(), password);
    }
}
