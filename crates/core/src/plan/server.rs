//! Servers that a plan names instead of a build: they were there before us and stay after us.

use std::net::IpAddr;
use std::ops::Range;

use serde::{Deserialize, Serialize};
use toml::Spanned;
use url::Url;

use super::document;
use crate::engines::{Dsn, ENGINES, EngineName, SocketPath};
use crate::name::check_label;
use crate::suggest;

/// An external server. It is not ours: its settings, its logs and other people's tables
/// are left alone.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ExternalServer {
    /// What the plan calls it; builds refer to it as `ENGINE@LABEL`.
    pub label: String,
    /// What it is.
    pub engine: EngineName,
    /// Where it is.
    pub place: ServerPlace,
    /// Whom we come in as.
    pub user: String,
    /// The database, which is there, and empty or marked as ours.
    pub database: String,
    /// Where the password comes from. The password itself is in no plan, for plans are kept with
    /// their results.
    pub password: PasswordSource,
    /// How the way there is protected.
    pub tls: TlsMode,
    /// A file with the certificate of whoever signed the server's, in PEM. Without one, the public
    /// authorities that Mozilla trusts.
    pub tls_ca: Option<String>,
}

/// Where an external server listens.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ServerPlace {
    /// A host's name or address, and a port.
    Tcp {
        /// Without brackets.
        host: String,
        port: u16,
    },
    /// A unix socket: the socket itself for MySQL and MariaDB; for PostgreSQL the folder it is in,
    /// and the port that names it.
    Socket {
        path: String,
        /// Part of the name of PostgreSQL's socket.
        port: u16,
    },
}

impl ServerPlace {
    /// Whether nothing leaves this machine on the way there.
    pub fn is_local(&self) -> bool {
        match self {
            Self::Socket { .. } => true,
            Self::Tcp { host, .. } => {
                host == "localhost"
                    || host
                        .parse()
                        .is_ok_and(|address: IpAddr| address.is_loopback())
            }
        }
    }
}

impl std::fmt::Display for ServerPlace {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Tcp { host, port } if host.contains(':') => write!(f, "[{host}]:{port}"),
            Self::Tcp { host, port } => write!(f, "{host}:{port}"),
            Self::Socket { path, .. } => f.write_str(path),
        }
    }
}

/// Where a password comes from.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PasswordSource {
    /// There is none.
    None,
    /// The content of a file that nobody else may read.
    File(String),
    /// An environment variable.
    Env(String),
    /// Somebody at the terminal.
    Prompt,
}

/// How the way to a server is protected.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum TlsMode {
    /// Not at all.
    Off,
    /// TLS 1.2 or newer, with a certificate that is signed by somebody we trust and names the host.
    VerifyFull,
}

/// The longest path of a unix socket, in bytes.
const SOCKET_PATH_BYTES: usize = 107;

/// Databases that belong to the server itself.
const SYSTEM_DATABASES: &[&str] = &[
    "mysql",
    "sys",
    "information_schema",
    "performance_schema",
    "template0",
    "template1",
];

/// A problem and its place.
type Problem = (Range<usize>, String);

/// Checks `[server.LABEL]`.
pub(super) fn external_server(
    label: &Spanned<String>,
    server: &document::Server,
) -> Result<ExternalServer, Problem> {
    let at_label = |message: String| (label.span(), message);
    check_label(label.get_ref(), "server name").map_err(|error| at_label(error.to_string()))?;
    if !label
        .get_ref()
        .starts_with(|c: char| c.is_ascii_alphabetic())
    {
        return Err(at_label(format!(
            "server \"{}\" could be a version: begin its name with a letter",
            label.get_ref()
        )));
    }
    let dsn = server.dsn.get_ref();
    let at_dsn = |message: String| (server.dsn.span(), message);
    let (engine, place, user, database) = parse_dsn(dsn).map_err(at_dsn)?;
    let password = password_source(server)?;
    // A campaign may be resumed from another folder.
    if let Some(file) = [&server.password_file, &server.tls_ca]
        .into_iter()
        .flatten()
        .find(|file| !file.get_ref().starts_with('/'))
    {
        let message = format!("write the whole path of \"{}\", from / on", file.get_ref());
        return Err((file.span(), message));
    }
    let tls = tls_mode(server, &place)?;
    let tls_ca = server.tls_ca.as_ref().map(|file| file.get_ref().clone());
    Ok(ExternalServer {
        label: label.get_ref().clone(),
        engine,
        place,
        user,
        database,
        password,
        tls,
        tls_ca,
    })
}

/// The one place where the password comes from.
fn password_source(server: &document::Server) -> Result<PasswordSource, Problem> {
    if let Some(name) = &server.password_env
        && (name.get_ref().is_empty() || name.get_ref().contains(['=', '\0']))
    {
        let message = "this is not the name of an environment variable".to_owned();
        return Err((name.span(), message));
    }
    let file = server
        .password_file
        .as_ref()
        .map(|file| (file.span(), PasswordSource::File(file.get_ref().clone())));
    let env = server
        .password_env
        .as_ref()
        .map(|name| (name.span(), PasswordSource::Env(name.get_ref().clone())));
    let prompt = server
        .password_prompt
        .as_ref()
        .filter(|prompt| *prompt.get_ref())
        .map(|prompt| (prompt.span(), PasswordSource::Prompt));
    let mut sources = [file, env, prompt].into_iter().flatten();
    let first = sources.next();
    match sources.next() {
        Some((span, _)) => {
            let message = "there is more than one source of the password: keep one".to_owned();
            Err((span, message))
        }
        None => Ok(first.map_or(PasswordSource::None, |(_, source)| source)),
    }
}

/// As the plan says; else TLS where something leaves the machine.
fn tls_mode(server: &document::Server, place: &ServerPlace) -> Result<TlsMode, Problem> {
    let by_default = if place.is_local() {
        TlsMode::Off
    } else {
        TlsMode::VerifyFull
    };
    let tls = match (&server.tls, place) {
        (None, _) => by_default,
        (Some(tls), ServerPlace::Socket { .. }) if *tls.get_ref() == TlsMode::VerifyFull => {
            let message =
                "a unix socket does not leave the machine and has no TLS: leave out \"tls\"";
            return Err((tls.span(), message.to_owned()));
        }
        (Some(tls), _) => *tls.get_ref(),
    };
    match (&server.tls_ca, tls) {
        (Some(file), TlsMode::Off) => {
            let message =
                "\"tls_ca\" means nothing without TLS: set tls = \"verify-full\", or leave it out";
            Err((file.span(), message.to_owned()))
        }
        _ => Ok(tls),
    }
}

/// The engines that have servers.
fn servers() -> impl Iterator<Item = (EngineName, &'static Dsn)> {
    ENGINES
        .iter()
        .filter_map(|facts| Some((facts.name, facts.dsn.as_ref()?)))
}

/// How a dsn is written.
fn dsn_shape() -> String {
    let schemes: Vec<&str> = servers().map(|(_, server)| server.schemes[0]).collect();
    let (first, others) = (schemes[0], schemes[1..].join(", "));
    format!(
        "write {first}://USER@HOST:PORT/DATABASE (or {others}), or \
        {first}://USER@localhost/DATABASE?socket=/PATH"
    )
}

/// `ENGINE://USER@HOST[:PORT]/DATABASE[?socket=PATH]`.
fn parse_dsn(dsn: &str) -> Result<(EngineName, ServerPlace, String, String), String> {
    let shape = dsn_shape();
    // The text itself is in no error: it may hold a password.
    let url =
        Url::parse(dsn).map_err(|error| format!("the dsn cannot be read ({error}): {shape}"))?;
    if url.password().is_some() {
        return Err(
            "a password in a plan would be kept with its results: take it out of the dsn, and name \
            a password_file (mode 0600) or a password_env"
                .to_owned(),
        );
    }
    let (engine, server) = servers()
        .find(|(_, server)| server.schemes.contains(&url.scheme()))
        .ok_or_else(|| {
            let hint = suggest::hint(url.scheme(), servers().map(|(_, server)| server.schemes[0]));
            format!(
                "there are no servers of \"{}\"{hint}: {shape}",
                url.scheme()
            )
        })?;
    let user = decoded(url.username(), "user")?;
    let host = url
        .host_str()
        .unwrap_or_default()
        .trim_start_matches('[')
        .trim_end_matches(']')
        .to_owned();
    let database = decoded(url.path().trim_start_matches('/'), "database")?;
    if user.is_empty()
        || host.is_empty()
        || database.is_empty()
        || database.contains('/')
        || url.fragment().is_some()
    {
        return Err(format!(
            "the dsn needs a user, a host and a database: {shape}"
        ));
    }
    if SYSTEM_DATABASES.contains(&database.to_ascii_lowercase().as_str()) {
        return Err(format!(
            "the database {database} is the server's own: make an empty one for this, and name it"
        ));
    }
    let port = match url.port().unwrap_or(server.port) {
        0 => return Err(format!("the dsn's port is 0: {shape}")),
        port => port,
    };
    let mut place = ServerPlace::Tcp { host, port };
    for (key, value) in url.query_pairs() {
        if key != "socket" {
            return Err(format!(
                "the dsn has \"{key}\", and only \"socket\" is known there: TLS and passwords have \
                keys of their own"
            ));
        }
        if !place.is_local() {
            return Err("a unix socket is on this machine: write localhost as the host".to_owned());
        }
        place = socket(server.socket, &value, port)?;
    }
    Ok((engine, place, user, database))
}

fn socket(shape: SocketPath, path: &str, port: u16) -> Result<ServerPlace, String> {
    if !path.starts_with('/') {
        return Err(format!(
            "write the whole path of the socket \"{path}\", from / on"
        ));
    }
    let path = path.trim_end_matches('/').to_owned();
    let socket_bytes = match shape {
        SocketPath::Folder { file } if path.contains(&format!("/{file}")) => {
            return Err(
                "write the folder of PostgreSQL's socket, without its name, which the port decides"
                    .to_owned(),
            );
        }
        SocketPath::Folder { file } => format!("{path}/{file}{port}").len(),
        SocketPath::File => path.len(),
    };
    if socket_bytes > SOCKET_PATH_BYTES {
        return Err(format!(
            "the socket's path has {socket_bytes} bytes and may have {SOCKET_PATH_BYTES}: link a \
            shorter one to it"
        ));
    }
    Ok(ServerPlace::Socket { path, port })
}

fn decoded(text: &str, what: &str) -> Result<String, String> {
    let decoded = percent_encoding::percent_decode_str(text).decode_utf8();
    let decoded =
        decoded.map_err(|_| format!("the dsn's {what} is not UTF-8 behind its % signs"))?;
    if decoded.chars().any(char::is_control) {
        return Err(format!("the dsn's {what} holds a control character"));
    }
    Ok(decoded.into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::{ConfigRef, Plan, SessionClient};

    fn plan(server: &str) -> String {
        format!(
            "name = \"t\"\nworkload = \"insert-benchmark\"\nbuilds = [\"mysql@prod\"]\nconfigs = \
            [\"as_is\"]\n[server.prod]\n{server}\n"
        )
    }

    fn external(server: &str) -> ExternalServer {
        Plan::parse("t.toml", &plan(server)).unwrap().cells[0]
            .server
            .clone()
            .unwrap()
    }

    fn error(text: &str) -> String {
        Plan::parse("t.toml", text).unwrap_err().to_string()
    }

    #[test]
    fn a_dsn_becomes_an_address() {
        let tcp = |host: &str, port| ServerPlace::Tcp {
            host: host.into(),
            port,
        };
        let socket = |path: &str, port| ServerPlace::Socket {
            path: path.into(),
            port,
        };
        for (dsn, engine, place, user, database) in [
            (
                "mysql://bench@db.example:3307/ib",
                EngineName::Mysql,
                tcp("db.example", 3307),
                "bench",
                "ib",
            ),
            (
                "mariadb://a%40b@[::1]/my%20db",
                EngineName::Mariadb,
                tcp("::1", 3306),
                "a@b",
                "my db",
            ),
            (
                "postgresql://u@10.0.0.7/ib",
                EngineName::Postgres,
                tcp("10.0.0.7", 5432),
                "u",
                "ib",
            ),
            (
                "mysql://u@localhost/ib?socket=/run/m.sock",
                EngineName::Mysql,
                socket("/run/m.sock", 3306),
                "u",
                "ib",
            ),
            (
                "postgres://u@localhost:5433/ib?socket=/run/pg/",
                EngineName::Postgres,
                socket("/run/pg", 5433),
                "u",
                "ib",
            ),
        ] {
            assert_eq!(
                parse_dsn(dsn),
                Ok((engine, place, user.into(), database.into())),
                "{dsn}"
            );
        }
        assert_eq!(tcp("::1", 5432).to_string(), "[::1]:5432");
    }

    #[test]
    fn tls_is_on_where_something_leaves_the_machine() {
        for (host, tls) in [
            ("db.example", TlsMode::VerifyFull),
            ("10.0.0.7", TlsMode::VerifyFull),
            ("localhost.example", TlsMode::VerifyFull),
            ("localhost", TlsMode::Off),
            ("127.0.0.2", TlsMode::Off),
            ("[::1]", TlsMode::Off),
        ] {
            assert_eq!(
                external(&format!("dsn = \"mysql://u@{host}/ib\"")).tls,
                tls,
                "{host}"
            );
        }
        assert_eq!(
            external("dsn = \"mysql://u@db.example/ib\"\ntls = \"off\"").tls,
            TlsMode::Off
        );
        let server = external(
            "dsn = \"mysql://u@localhost/ib\"\ntls = \"verify-full\"\ntls_ca = \"/etc/ca.pem\"",
        );
        assert_eq!(
            (server.tls, server.tls_ca.as_deref()),
            (TlsMode::VerifyFull, Some("/etc/ca.pem"))
        );
    }

    #[test]
    fn passwords_come_from_elsewhere() {
        for (line, source) in [
            ("", PasswordSource::None),
            ("password_prompt = false", PasswordSource::None),
            ("password_prompt = true", PasswordSource::Prompt),
            (
                "password_file = \"/etc/p\"",
                PasswordSource::File("/etc/p".into()),
            ),
            (
                "password_env = \"DB_PASSWORD\"",
                PasswordSource::Env("DB_PASSWORD".into()),
            ),
        ] {
            assert_eq!(
                external(&format!("dsn = \"mysql://u@localhost/ib\"\n{line}")).password,
                source,
                "{line}"
            );
        }
    }

    #[test]
    fn what_is_wrong_with_a_server_has_its_place() {
        let dsn = "dsn = \"mysql://u@localhost/ib\"";
        for (server, wanted) in [
            (
                "dsn = \"mysql://u:geheim@localhost/ib\"",
                "t.toml:6:7: a password in a plan would be kept with its results",
            ),
            (
                "dsn = \"mysql://u:geheim@local host/ib\"",
                "the dsn cannot be read",
            ),
            (
                "dsn = \"mysql://u@localhost\"",
                "t.toml:6:7: the dsn needs a user, a host and a database",
            ),
            ("dsn = \"mysql://localhost/ib\"", "the dsn needs a user"),
            (
                "dsn = \"mysq://u@localhost/ib\"",
                "there are no servers of \"mysq\" (did you mean \"mysql\"?)",
            ),
            ("dsn = \"u@localhost/ib\"", "the dsn cannot be read"),
            (
                "dsn = \"mysql://u@localhost/mysql\"",
                "the database mysql is the server's own",
            ),
            (
                "dsn = \"mysql://u@localhost/ib?ssl=1\"",
                "only \"socket\" is known there",
            ),
            (
                "dsn = \"mysql://u@db.example/ib?socket=/s\"",
                "write localhost as the host",
            ),
            (
                "dsn = \"mysql://u@localhost/ib?socket=s\"",
                "write the whole path of the socket",
            ),
            (
                &format!(
                    "dsn = \"mysql://u@localhost/ib?socket=/{}\"",
                    "x".repeat(107)
                ),
                "has 108 bytes and may have 107",
            ),
            (
                "dsn = \"postgres://u@localhost/ib\"",
                "builds say mysql@prod, and its dsn is one of postgres",
            ),
            (
                &format!("{dsn}\npassword_env = \"A\"\npassword_file = \"/a\""),
                "t.toml:7:16: there is more than one source",
            ),
            (
                &format!("{dsn}\npassword_file = \"a\""),
                "t.toml:7:17: write the whole path of \"a\"",
            ),
            (
                &format!("{dsn}\npassword_env = \"\""),
                "not the name of an environment variable",
            ),
            (
                &format!("{dsn}\npassword = \"geheim\""),
                "t.toml:7:1: a password in a plan would be kept with its results",
            ),
            (&format!("{dsn}\ntls = \"on\""), "unknown value \"on\""),
            (
                &format!("{dsn}\ntls_ca = \"/ca\""),
                "\"tls_ca\" means nothing without TLS",
            ),
            (
                "dsn = \"mysql://u@localhost/ib?socket=/s\"\ntls = \"verify-full\"",
                "has no TLS: leave out \"tls\"",
            ),
            (
                &format!("{dsn}\n[server.other]\n{dsn}"),
                "t.toml:7:9: [server.other] belongs to no cell",
            ),
            (
                &format!("{dsn}\n[server.9]\n{dsn}"),
                "server \"9\" could be a version",
            ),
        ] {
            let found = error(&plan(server));
            assert!(
                found.contains(wanted),
                "{server}\nwanted {wanted:?}\nfound  {found:?}"
            );
            assert!(!found.contains("geheim"), "{found}");
        }
    }

    #[test]
    fn a_external_server_has_no_settings_but_its_tables_engine() {
        let dsn = "dsn = \"mysql://u@localhost/ib\"\n[config.as_is]\n";
        for line in [
            "settings = { innodb_io_capacity = 100 }",
            "file = \"x.cnf\"",
            "prefix = [\"nice\"]",
            "env = { A = \"b\" }",
            "transport = \"tcp\"",
        ] {
            let found = error(&plan(&format!("{dsn}{line}")));
            assert!(
                found.contains(
                    "[config.as_is] would set up a server, and mysql@prod.as_is runs on an \
                    external one"
                ),
                "{line}: {found}"
            );
        }
        let plan = Plan::parse("t.toml", &plan(&format!("{dsn}engine = \"tokudb\""))).unwrap();
        assert_eq!(plan.cells[0].config.settings["storage_engine"], "tokudb");
    }

    #[test]
    fn a_config_chooses_the_client_of_its_sessions() {
        let plan = |build: &str, lines: &str| {
            format!(
                "name = \"t\"\nworkload = \"insert-benchmark\"\nbuilds = [\"{build}\"]\nconfigs = \
                [\"a\"]\n[config.a]\n{lines}\n"
            )
        };
        let config = |text: &str| Plan::parse("t.toml", text).unwrap().cells.remove(0).config;
        let local = "[server.prod]\ndsn = \"mysql://u@localhost/ib\"";
        let distant = "[server.prod]\ndsn = \"mysql://u@db.example/ib\"";
        let open = format!("{distant}\ntls = \"off\"");
        for (build, line, server, client) in [
            ("mysql@9.7", "", "", SessionClient::Thin),
            ("mysql@9.7", "client = \"thin\"", "", SessionClient::Thin),
            ("postgres@18", "client = \"full\"", "", SessionClient::Full),
            // As the transport, nothing to an embedded engine.
            ("sqlite", "client = \"full\"", "", SessionClient::Full),
            (
                "mysql@prod",
                "client = \"thin\"",
                local,
                SessionClient::Thin,
            ),
            (
                "mysql@prod",
                "client = \"thin\"",
                &open,
                SessionClient::Thin,
            ),
            (
                "mysql@prod",
                "client = \"full\"",
                local,
                SessionClient::Full,
            ),
            (
                "mysql@prod",
                "client = \"full\"",
                distant,
                SessionClient::Full,
            ),
            ("mysql@prod", "", distant, SessionClient::Thin),
        ] {
            let found = config(&plan(build, &format!("{line}\n{server}")));
            assert_eq!(found.client, client, "{build} {line} {server}");
            // A campaign that was made before there was a choice reads the same.
            let kept = toml::Table::try_from(&found).unwrap();
            assert_eq!(
                kept.contains_key("client"),
                client != SessionClient::Thin,
                "{kept:?}"
            );
            assert_eq!(kept.try_into::<ConfigRef>().unwrap(), found);
        }
        let found = error(&plan(
            "mysql@prod",
            &format!("client = \"thin\"\n{distant}"),
        ));
        assert!(
            found.contains(
                "t.toml:6:10: the sessions of mysql@prod.a are protected by TLS, which the thin \
                client"
            ),
            "{found}"
        );
        assert!(
            found.contains("set tls = \"off\" in [server.prod]"),
            "{found}"
        );
        let found = error(&plan("mysql@9.7", "client = \"thick\""));
        assert!(
            found.contains(
                "unknown value \"thick\" (did you mean \"thin\"?); known here: thin, full"
            ),
            "{found}"
        );
    }

    #[test]
    fn a_config_names_a_storage_engine_where_there_is_a_choice() {
        let plan = |build: &str, line: &str| {
            format!(
                "name = \"t\"\nworkload = \"insert-benchmark\"\nbuilds = [\"{build}\"]\nconfigs = \
                [\"a\"]\n[config.a]\n{line}\n"
            )
        };
        let settings = |line: &str| {
            Plan::parse("t.toml", &plan("mysql@5.6", line))
                .unwrap()
                .cells[0]
                .config
                .settings
                .clone()
        };
        assert_eq!(
            settings("engine = \"tokudb\""),
            settings("settings = { storage_engine = \"tokudb\" }")
        );
        for (build, line, wanted) in [
            (
                "sqlite",
                "engine = \"tokudb\"",
                "t.toml:6:10: cell sqlite.a: sqlite has no storage engines to choose from",
            ),
            (
                "postgres@16",
                "engine = \"tokudb\"",
                "postgres has no storage engines to choose from",
            ),
            (
                "mysql@5.6",
                "engine = \"toku db\"",
                "is not a storage engine: write one word",
            ),
            (
                "mysql@5.6",
                "engine = \"a\"\nsettings = { storage_engine = \"b\" }",
                "[config.a] names the storage engine twice",
            ),
        ] {
            let found = error(&plan(build, line));
            assert!(found.contains(wanted), "{line}: {found}");
        }
    }
}
