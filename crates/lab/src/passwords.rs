//! The passwords of the servers that a plan gives: read where the plan says, once for a campaign,
//! and kept in memory alone.

use std::collections::BTreeMap;
use std::fs;
use std::io::IsTerminal;
use std::os::unix::fs::MetadataExt;

use plimsoll_core::plan::{ExternalServer, PasswordSource, Plan};
use plimsoll_engine::Password;
use plimsoll_engine::process::keep_from_children;

use crate::error::LabError;

/// By the servers' names in the plan.
#[derive(Debug, Default)]
pub(crate) struct Passwords {
    by_server: BTreeMap<String, Password>,
}

impl Passwords {
    /// Whether all can be read, as far as that goes without asking anybody.
    pub fn check(plan: &Plan) -> Result<(), LabError> {
        let servers = plan.cells.iter().filter_map(|cell| cell.server.as_ref());
        servers
            .filter(|server| server.password != PasswordSource::Prompt)
            .try_for_each(|server| read(server).map(drop))
    }

    /// Reads all of them, and asks at the terminal where the plan says so.
    pub fn of_plan(plan: &Plan) -> Result<Self, LabError> {
        keep_passwords_from_children(plan);
        let mut passwords = Self::default();
        for server in plan.cells.iter().filter_map(|cell| cell.server.as_ref()) {
            if passwords.by_server.contains_key(&server.label) {
                continue;
            }
            if let Some(password) = read(server)? {
                passwords.by_server.insert(server.label.clone(), password);
            }
        }
        Ok(passwords)
    }

    /// That of this server; `None` where the plan names none.
    pub fn get(&self, server: &ExternalServer) -> Option<Password> {
        self.by_server.get(&server.label).cloned()
    }
}

/// Keeps the environment variables that hold passwords from every child that is started from now
/// on: none needs them, clients of packages and build commands least of all. To be called as soon
/// as a plan is known.
pub fn keep_passwords_from_children(plan: &Plan) {
    for server in plan.cells.iter().filter_map(|cell| cell.server.as_ref()) {
        if let PasswordSource::Env(name) = &server.password {
            keep_from_children(name);
        }
    }
}

fn read(server: &ExternalServer) -> Result<Option<Password>, LabError> {
    read_source(server).map_err(|problem| {
        LabError::Usage(format!(
            "the password of [server.{}]: {problem}",
            server.label
        ))
    })
}

fn read_source(server: &ExternalServer) -> Result<Option<Password>, String> {
    let text = match &server.password {
        PasswordSource::None => return Ok(None),
        PasswordSource::File(path) => read_file(path)?,
        PasswordSource::Env(name) => std::env::var(name).map_err(|_| {
            format!(
                "the environment variable {name} is not set, or is not UTF-8; set it before the run"
            )
        })?,
        PasswordSource::Prompt => {
            if !std::io::stdin().is_terminal() {
                return Err(
                    "nobody is at a terminal to be asked; use password_file or password_env"
                        .to_owned(),
                );
            }
            rpassword::prompt_password(format!(
                "Password of {} at {} ([server.{}]): ",
                server.user, server.place, server.label
            ))
            .map_err(|error| {
                format!("failed to ask for it: {error}; use password_file or password_env")
            })?
        }
    };
    if text.is_empty() {
        return Err("it is empty; leave the key out where there is no password".to_owned());
    }
    Ok(Some(Password::new(text)))
}

/// The first line of a file that only its owner may read.
fn read_file(path: &str) -> Result<String, String> {
    let unreadable =
        |error| format!("{path} cannot be read: {error}; check its place and permissions");
    let mode = fs::metadata(path).map_err(unreadable)?.mode() & 0o777;
    if mode & 0o077 != 0 {
        return Err(format!(
            "{path} has mode {mode:03o} and others may get at it; run `chmod 600 {path}`"
        ));
    }
    let text = zeroize::Zeroizing::new(fs::read_to_string(path).map_err(unreadable)?);
    Ok(text.lines().next().unwrap_or_default().to_owned())
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use plimsoll_engine::process::child_command;

    use super::*;

    fn plan(source: &str) -> Plan {
        let text = format!(
            "name = \"t\"\nworkload = \"insert-benchmark\"\nbuilds = [\"mysql@prod\"]\nconfigs = \
            [\"a\", \"b\"]\n[server.prod]\n\
             dsn = \"mysql://bench@localhost/ib\"\n{source}\n"
        );
        Plan::parse("t.toml", &text).unwrap()
    }

    fn found(source: &str) -> Result<Option<Password>, String> {
        let plan = plan(source);
        let passwords = Passwords::of_plan(&plan).map_err(|error| error.to_string())?;
        Ok(passwords.get(plan.cells[1].server.as_ref().unwrap()))
    }

    #[test]
    fn a_file_must_be_its_owners_alone() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("password");
        let source = format!("password_file = \"{}\"", path.display());
        assert!(found(&source).unwrap_err().contains("cannot be read"));
        fs::write(&path, "geheim\n").unwrap();
        for (mode, is_fine) in [
            (0o600, true),
            (0o400, true),
            (0o640, false),
            (0o604, false),
            (0o644, false),
        ] {
            fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
            match found(&source) {
                Ok(password) => assert!(
                    is_fine && password == Some(Password::new("geheim".to_owned())),
                    "{mode:o}"
                ),
                Err(error) => {
                    assert!(
                        !is_fine
                            && error.contains(&format!("has mode {mode:03o}"))
                            && error.contains("chmod 600"),
                        "{error}"
                    );
                    assert!(
                        error.contains("[server.prod]") && !error.contains("geheim"),
                        "{error}"
                    );
                }
            }
        }
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
        fs::write(&path, "\n").unwrap();
        assert!(found(&source).unwrap_err().contains("it is empty"));
    }

    #[test]
    fn a_variable_is_read_and_kept_from_children() {
        assert!(
            found("password_env = \"PLIMSOLL_TEST_NO_SUCH_VARIABLE\"")
                .unwrap_err()
                .contains("is not set")
        );
        const VARIABLE: &str = "PLIMSOLL_TEST_PASSWORD";
        if std::env::var_os(VARIABLE).is_none() {
            // In a process that has the variable: this test again.
            let test = "passwords::tests::a_variable_is_read_and_kept_from_children";
            let again = std::process::Command::new(std::env::current_exe().unwrap())
                .args([test, "--exact"])
                .env(VARIABLE, "geheim")
                .output()
                .unwrap();
            let said = String::from_utf8(again.stdout).unwrap();
            assert!(
                again.status.success() && said.contains("1 passed"),
                "{said}"
            );
            return;
        }
        let plan = plan("password_env = \"PLIMSOLL_TEST_PASSWORD\"");
        let passwords = Passwords::of_plan(&plan).unwrap();
        assert_eq!(
            passwords.get(plan.cells[0].server.as_ref().unwrap()),
            Some(Password::new("geheim".to_owned()))
        );
        let output = child_command("sh")
            .args(["-c", "echo \"<$PLIMSOLL_TEST_PASSWORD>\""])
            .output()
            .unwrap();
        assert_eq!(String::from_utf8(output.stdout).unwrap(), "<>\n");
    }

    #[test]
    fn without_a_source_there_is_none() {
        assert_eq!(found("").unwrap(), None);
    }
}
