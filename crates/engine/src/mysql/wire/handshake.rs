//! From the server's greeting to its consent.

use std::collections::HashMap;
use std::process;

use mysql::Opts;
use mysql_common::constants::CapabilityFlags;
use mysql_common::packets::{AuthPlugin, HandshakeResponse};
use mysql_common::proto::MySerialize;
use mysql_common::scramble::{scramble_native, scramble_sha256};

use super::error::WireError;
use super::fields::Fields;
use super::key;
use super::packets::Packets;
use crate::external::PROGRAM;

/// The longest packet that we take: the greatest there is.
const LONGEST_ANSWER: u32 = 1 << 30;
/// A nonce has so many bytes.
const NONCE_BYTES: usize = 20;
/// Greeting and consent apart, three messages are the most that our plugins need.
const MOST_MESSAGES: usize = 8;

/// The refusals that may mean: not without TLS.
const ACCESS_DENIED: u16 = 1045;
const TLS_REQUIRED: u16 = 3159;

/// What we ask of the server. Results come with both of their end marks; files are never sent.
const WANTED: [CapabilityFlags; 10] = [
    CapabilityFlags::CLIENT_PROTOCOL_41,
    CapabilityFlags::CLIENT_SECURE_CONNECTION,
    CapabilityFlags::CLIENT_LONG_PASSWORD,
    CapabilityFlags::CLIENT_LONG_FLAG,
    CapabilityFlags::CLIENT_TRANSACTIONS,
    CapabilityFlags::CLIENT_MULTI_STATEMENTS,
    CapabilityFlags::CLIENT_MULTI_RESULTS,
    CapabilityFlags::CLIENT_PS_MULTI_RESULTS,
    CapabilityFlags::CLIENT_PLUGIN_AUTH,
    CapabilityFlags::CLIENT_CONNECT_ATTRS,
];

pub(super) fn shake_hands(packets: &mut Packets, opts: &Opts) -> Result<(), WireError> {
    let mut message = Vec::new();
    packets.message(&mut message)?;
    let greeting = Greeting::parse(&message)?;
    // The server's default need not be the account's, which it will name in its turn.
    let plugin = Plugin::by_name(&greeting.plugin).unwrap_or(Plugin::Native);
    packets.send(&response(
        opts,
        greeting.capabilities,
        plugin,
        &greeting.nonce,
    ))?;
    authenticate(packets, opts, plugin, greeting.nonce)
        .map_err(|error| explain(error, greeting.capabilities))
}

/// How the account proves itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Plugin {
    Native,
    CachingSha2,
}

impl Plugin {
    fn by_name(name: &[u8]) -> Result<Self, WireError> {
        match AuthPlugin::from_bytes(name) {
            AuthPlugin::MysqlNativePassword => Ok(Self::Native),
            AuthPlugin::CachingSha2Password => Ok(Self::CachingSha2),
            _ => Err(unknown_plugin(&String::from_utf8_lossy(name))),
        }
    }

    fn known(self) -> AuthPlugin<'static> {
        match self {
            Self::Native => AuthPlugin::MysqlNativePassword,
            Self::CachingSha2 => AuthPlugin::CachingSha2Password,
        }
    }

    /// The proof; empty without a password.
    fn prove(self, password: &str, nonce: &[u8]) -> Vec<u8> {
        match self {
            Self::Native => scramble_native(nonce, password.as_bytes())
                .map_or_else(Vec::new, |proof| proof.to_vec()),
            Self::CachingSha2 => scramble_sha256(nonce, password.as_bytes())
                .map_or_else(Vec::new, |proof| proof.to_vec()),
        }
    }
}

fn unknown_plugin(name: &str) -> WireError {
    WireError::Unsupported(format!(
        "the account is authenticated with {name}, which this program does not speak; give it \
        mysql_native_password or caching_sha2_password"
    ))
}

/// What the server says first.
#[derive(Debug, PartialEq, Eq)]
struct Greeting {
    capabilities: CapabilityFlags,
    nonce: Vec<u8>,
    plugin: Vec<u8>,
}

impl Greeting {
    fn parse(message: &[u8]) -> Result<Self, WireError> {
        if message.first() != Some(&10) {
            return Err(WireError::Unsupported(
                "the server does not speak version 10 of the protocol; check that it is one"
                    .to_owned(),
            ));
        }
        let greeting = Self::read(message).ok_or(WireError::Malformed("half a greeting"))?;
        if !greeting.capabilities.contains(
            CapabilityFlags::CLIENT_PROTOCOL_41 | CapabilityFlags::CLIENT_SECURE_CONNECTION,
        ) {
            return Err(WireError::Unsupported(
                "the server is older than MySQL 4.1; take one of 5.5 or newer".to_owned(),
            ));
        }
        Ok(greeting)
    }

    fn read(message: &[u8]) -> Option<Self> {
        let mut fields = Fields(message);
        let _protocol = fields.byte()?;
        let _version = fields.zero_ended()?;
        let _thread = fields.u32()?;
        let mut nonce = fields.bytes(8)?.to_vec();
        let _zero = fields.byte()?;
        let low = fields.u16()?;
        let _charset = fields.byte()?;
        let _status = fields.u16()?;
        let high = fields.u16()?;
        let nonce_bytes = fields.byte()?;
        let _reserved = fields.bytes(10)?;
        let capabilities =
            CapabilityFlags::from_bits_truncate(u32::from(low) | u32::from(high) << 16);
        if capabilities.contains(CapabilityFlags::CLIENT_SECURE_CONNECTION) {
            nonce.extend(fields.bytes(usize::from(nonce_bytes.saturating_sub(8).max(13)))?);
        }
        // A zero ends it, which is not part of it.
        nonce.resize(NONCE_BYTES, 0);
        // Old servers do not end the name.
        let plugin = fields.0.split(|&byte| byte == 0).next()?.to_vec();
        Some(Self {
            capabilities,
            nonce,
            plugin,
        })
    }
}

/// Who we are and what we want, in the character set that the session's first statement then
/// replaces.
fn response(opts: &Opts, offered: CapabilityFlags, plugin: Plugin, nonce: &[u8]) -> Vec<u8> {
    const UTF8MB4_SINCE: (u16, u16, u16) = (5, 5, 3);
    let capabilities = WANTED
        .into_iter()
        .fold(CapabilityFlags::empty(), |all, one| all | one)
        & offered;
    let proof = plugin.prove(opts.get_pass().unwrap_or_default(), nonce);
    let attributes = || {
        let pairs = [
            ("_client_name", PROGRAM.to_owned()),
            ("program_name", PROGRAM.to_owned()),
            ("_pid", process::id().to_string()),
        ];
        pairs
            .into_iter()
            .map(|(name, value)| (name.to_owned(), value))
            .collect::<HashMap<_, _>>()
    };
    let response = HandshakeResponse::new(
        Some(proof),
        UTF8MB4_SINCE,
        opts.get_user().map(str::as_bytes),
        opts.get_db_name()
            .filter(|name| !name.is_empty())
            .map(str::as_bytes),
        capabilities
            .contains(CapabilityFlags::CLIENT_PLUGIN_AUTH)
            .then(|| plugin.known()),
        capabilities,
        capabilities
            .contains(CapabilityFlags::CLIENT_CONNECT_ATTRS)
            .then(attributes),
        LONGEST_ANSWER,
    );
    let mut bytes = Vec::new();
    response.serialize(&mut bytes);
    bytes
}

/// Answers the server until it consents.
fn authenticate(
    packets: &mut Packets,
    opts: &Opts,
    mut plugin: Plugin,
    mut nonce: Vec<u8>,
) -> Result<(), WireError> {
    let password = opts.get_pass().unwrap_or_default();
    let mut message = Vec::new();
    for _ in 0..MOST_MESSAGES {
        packets.message(&mut message)?;
        match (message.as_slice(), plugin) {
            ([0x00, ..], _) => return Ok(()),
            ([0xfe], _) => return Err(unknown_plugin("mysql_old_password")),
            ([0xfe, request @ ..], _) => {
                let mut fields = Fields(request);
                let name = fields
                    .zero_ended()
                    .ok_or(WireError::Malformed("half a change of the authentication"))?;
                plugin = Plugin::by_name(name)?;
                nonce = fields.0.strip_suffix(&[0]).unwrap_or(fields.0).to_vec();
                packets.send(&plugin.prove(password, &nonce))?;
            }
            // The server knows the password's hash, and consents next.
            ([0x01, 0x03], Plugin::CachingSha2) => {}
            ([0x01, 0x04], Plugin::CachingSha2) => tell_password(packets, password, &nonce)?,
            _ => {
                return Err(WireError::Malformed(
                    "an unknown step of the authentication",
                ));
            }
        }
    }
    Err(WireError::Malformed("an authentication without end"))
}

/// The server has forgotten the password's hash since it was started. Others on the way must not
/// learn the password.
fn tell_password(packets: &mut Packets, password: &str, nonce: &[u8]) -> Result<(), WireError> {
    const SEND_KEY: u8 = 2;
    let mut secret = password.as_bytes().to_vec();
    secret.push(0);
    if packets.socket.is_private() {
        return packets.send(&secret);
    }
    packets.send(&[SEND_KEY])?;
    let mut message = Vec::new();
    packets.message(&mut message)?;
    let [0x01, key @ ..] = message.as_slice() else {
        return Err(WireError::Malformed("no public key where one was due"));
    };
    packets.send(&key::encrypt(secret, nonce, key)?)
}

/// Adds to a refusal what it may mean.
fn explain(error: WireError, offered: CapabilityFlags) -> WireError {
    match error {
        WireError::Server {
            code: TLS_REQUIRED,
            message,
        } => WireError::Server {
            code: TLS_REQUIRED,
            message: format!("{message}; set tls = \"verify-full\" for the server"),
        },
        WireError::Server {
            code: ACCESS_DENIED,
            message,
        } if offered.contains(CapabilityFlags::CLIENT_SSL) => WireError::Server {
            code: ACCESS_DENIED,
            message: format!(
                "{message}; an account that demands TLS is refused like this too: then set tls = \
                \"verify-full\""
            ),
        },
        error => error,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn greeting(capabilities: u32, nonce_bytes: u8, tail: &[u8]) -> Vec<u8> {
        let mut message = vec![10];
        message.extend(b"99999.1.1-x\0\x01\0\0\0abcdefgh\0");
        message.extend(&capabilities.to_le_bytes()[..2]);
        message.extend([45, 2, 0]);
        message.extend(&capabilities.to_le_bytes()[2..]);
        message.push(nonce_bytes);
        message.extend([0; 10]);
        message.extend(tail);
        message
    }

    #[test]
    fn greetings_are_read_whole_or_refused() {
        let flags = CapabilityFlags::CLIENT_PROTOCOL_41 | CapabilityFlags::CLIENT_SECURE_CONNECTION;
        let full = greeting(flags.bits(), 21, b"ijklmnopqrst\0caching_sha2_password\0");
        let parsed = Greeting::parse(&full).unwrap();
        assert_eq!(
            (parsed.capabilities, &*parsed.nonce, &*parsed.plugin),
            (
                flags,
                &b"abcdefghijklmnopqrst"[..],
                &b"caching_sha2_password"[..]
            )
        );
        // Any length of a nonce that the server may claim.
        for claimed in 0..=255 {
            let message = greeting(flags.bits(), claimed, &[b'n'; 300]);
            assert_eq!(
                Greeting::parse(&message).unwrap().nonce.len(),
                NONCE_BYTES,
                "{claimed}"
            );
        }
        // A plugin's name without its end, and none.
        assert_eq!(
            Greeting::parse(&greeting(flags.bits(), 21, b"ijklmnopqrst\0mysql_native"))
                .unwrap()
                .plugin,
            b"mysql_native"
        );
        assert_eq!(
            Greeting::parse(&greeting(flags.bits(), 0, b"ijklmnopqrst\0"))
                .unwrap()
                .plugin,
            b""
        );
        let fixed = full.len() - b"caching_sha2_password\0".len();
        for cut in 1..fixed {
            assert!(
                matches!(Greeting::parse(&full[..cut]), Err(WireError::Malformed(_))),
                "{cut}"
            );
        }
        let old = Greeting::parse(&greeting(
            CapabilityFlags::CLIENT_PROTOCOL_41.bits(),
            0,
            b"",
        ))
        .unwrap_err();
        assert!(
            matches!(&old, WireError::Unsupported(why) if why.contains("older than MySQL 4.1")),
            "{old:?}"
        );
        let other = Greeting::parse(b"\x09something").unwrap_err();
        assert!(
            matches!(&other, WireError::Unsupported(why) if why.contains("version 10")),
            "{other:?}"
        );
    }

    #[test]
    fn plugins_are_known_or_named() {
        assert_eq!(
            Plugin::by_name(b"mysql_native_password").unwrap(),
            Plugin::Native
        );
        assert_eq!(
            Plugin::by_name(b"caching_sha2_password").unwrap(),
            Plugin::CachingSha2
        );
        for name in [
            "client_ed25519",
            "parsec",
            "sha256_password",
            "mysql_clear_password",
            "mysql_old_password",
            "auth_gssapi_client",
        ] {
            let error = Plugin::by_name(name.as_bytes()).unwrap_err();
            assert!(
                matches!(&error, WireError::Unsupported(why) if why.contains(name)),
                "{error:?}"
            );
        }
        assert_eq!(Plugin::Native.prove("", &[1; 20]), b"");
        assert_eq!(Plugin::CachingSha2.prove("geheim", &[1; 20]).len(), 32);
    }
}
