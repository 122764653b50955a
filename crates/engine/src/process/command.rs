//! The one place where commands of children are made: none of them is given a password.

use std::ffi::OsStr;
use std::process::Command;
use std::sync::{Mutex, PoisonError};

/// Names of environment variables that hold passwords.
static SECRETS: Mutex<Vec<String>> = Mutex::new(Vec::new());

/// Keeps an environment variable from every child that is started from now on.
pub fn keep_from_children(variable: &str) {
    let mut secrets = SECRETS.lock().unwrap_or_else(PoisonError::into_inner);
    if !secrets.iter().any(|known| known == variable) {
        secrets.push(variable.to_owned());
    }
}

/// The command of a child. It has our environment without what [`keep_from_children`] names.
pub fn child_command(program: impl AsRef<OsStr>) -> Command {
    let mut command = Command::new(program);
    for variable in SECRETS
        .lock()
        .unwrap_or_else(PoisonError::into_inner)
        .iter()
    {
        command.env_remove(variable);
    }
    command
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_variable_that_is_kept_reaches_no_child() {
        // One that is always there when cargo runs tests, and that no other test asks for.
        let told = || {
            let output = child_command("/bin/sh")
                .args(["-c", "echo $CARGO_PKG_DESCRIPTION"])
                .output()
                .unwrap();
            String::from_utf8(output.stdout).unwrap().trim().to_owned()
        };
        assert_eq!(told(), env!("CARGO_PKG_DESCRIPTION"));
        keep_from_children("CARGO_PKG_DESCRIPTION");
        keep_from_children("CARGO_PKG_DESCRIPTION");
        assert_eq!(told(), "");
    }
}
