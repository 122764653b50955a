//! Logging in: who asks for which database, and how the server wants that proven.

use std::io::IoSlice;
use std::net::IpAddr;
use std::time::{Duration, Instant};

use bytes::BytesMut;
use postgres_protocol::authentication::md5_hash;
use postgres_protocol::authentication::sasl::{ChannelBinding, SCRAM_SHA_256, ScramSha256};
use postgres_protocol::message::frontend;

use super::connection::{Connection, Header};
use super::fault::Fault;
use crate::Password;
use crate::external::PROGRAM;
use crate::wire::Place;

/// A message of the login is short.
const LONGEST: usize = 32 << 10;

/// Where to log in, and as whom. The debug text is empty of the password.
#[derive(Clone, Debug)]
pub(in crate::postgres) struct Login {
    /// Where the server listens.
    pub place: Place,
    pub user: String,
    pub database: String,
    /// The role's, where it has one.
    pub password: Option<Password>,
}

/// How far the proof of who we are has come.
enum Proof {
    /// The server has said nothing yet.
    Unasked,
    /// It has the password, or what is made of it.
    Given,
    /// Its challenge is awaited.
    Begun(ScramSha256),
    /// It has the proof, and owes its own.
    Proven(ScramSha256),
    /// It has shown that it knows the password too.
    Mutual,
    /// It has let us in.
    Accepted,
}

impl Login {
    /// Logs in on a fresh connection. No wait begins after `patience` is over.
    pub(super) fn perform(
        &self,
        connection: &mut Connection,
        patience: Duration,
    ) -> Result<(), Fault> {
        let deadline = Instant::now() + patience;
        let parameters = [
            ("client_encoding", "UTF8"),
            ("user", self.user.as_str()),
            ("database", self.database.as_str()),
            ("application_name", PROGRAM),
        ];
        send(connection, |out| frontend::startup_message(parameters, out))?;
        let mut proof = Proof::Unasked;
        while Instant::now() < deadline {
            let header = connection.header()?;
            match (header.kind, &proof) {
                (b'R', _) if (4..=LONGEST).contains(&header.length) => {
                    let body = connection.take(header.length, <[u8]>::to_vec)?;
                    proof = self.prove(proof, &body, connection)?;
                }
                (b'Z', Proof::Accepted) => return connection.skip(header.length),
                (b'E', _) => return Err(refusal(connection.complaint(header.length)?)),
                // The key for cancelling, which nobody uses here, and what the protocol's newer
                // versions would have.
                (b'K' | b'v', _) => connection.skip(header.length)?,
                _ if header.is_aside() => connection.skip(header.length)?,
                _ => return Err(header.unexpected()),
            }
        }
        Err(Fault::late())
    }

    /// Answers a message about authentication: its kind in four bytes, and what belongs to it.
    fn prove(
        &self,
        proof: Proof,
        body: &[u8],
        connection: &mut Connection,
    ) -> Result<Proof, Fault> {
        let out_of_turn = || {
            Header {
                kind: b'R',
                length: body.len(),
            }
            .unexpected()
        };
        let (kind, data) = body.split_first_chunk().ok_or_else(out_of_turn)?;
        // The second half says what has been proved so far: a server that skips a step, or asks
        // twice, is out of turn and gets nothing.
        Ok(match (u32::from_be_bytes(*kind), proof) {
            (0, Proof::Unasked | Proof::Given | Proof::Mutual) => Proof::Accepted,
            (3, Proof::Unasked) => {
                if !self.is_local() {
                    return Err(Fault::refused(
                        "the server asks for the password in clear text over a network; let it ask \
                        for scram-sha-256 in pg_hba.conf, or go through TLS",
                    ));
                }
                let password = self.password()?;
                send(connection, |out| frontend::password_message(password, out))?;
                Proof::Given
            }
            (5, Proof::Unasked) => {
                let salt = data.try_into().map_err(|_| out_of_turn())?;
                let hash = md5_hash(self.user.as_bytes(), self.password()?, salt);
                send(connection, |out| {
                    frontend::password_message(hash.as_bytes(), out)
                })?;
                Proof::Given
            }
            (10, Proof::Unasked) => {
                if !data
                    .split(|&byte| byte == 0)
                    .any(|mechanism| mechanism == SCRAM_SHA_256.as_bytes())
                {
                    let offered = String::from_utf8_lossy(data)
                        .trim_end_matches('\0')
                        .replace('\0', ", ");
                    return Err(unspoken(&format!("sasl ({offered})")));
                }
                // Without TLS there is no channel to bind to.
                let scram = ScramSha256::new(self.password()?, ChannelBinding::unsupported());
                send(connection, |out| {
                    frontend::sasl_initial_response(SCRAM_SHA_256, scram.message(), out)
                })?;
                Proof::Begun(scram)
            }
            (11, Proof::Begun(mut scram)) => {
                scram.update(data).map_err(|error| {
                    Fault::nonsense(format!("its challenge of scram-sha-256: {error}"))
                })?;
                send(connection, |out| {
                    frontend::sasl_response(scram.message(), out)
                })?;
                Proof::Proven(scram)
            }
            (12, Proof::Proven(mut scram)) => {
                // The server proves that it, too, knows the password.
                scram.finish(data).map_err(|error| {
                    Fault::nonsense(format!("its proof of scram-sha-256: {error}"))
                })?;
                Proof::Mutual
            }
            (2, Proof::Unasked) => return Err(unspoken("krb5")),
            (6, Proof::Unasked) => return Err(unspoken("scm credentials")),
            (7, Proof::Unasked) => return Err(unspoken("gss")),
            (9, Proof::Unasked) => return Err(unspoken("sspi")),
            _ => return Err(out_of_turn()),
        })
    }

    fn password(&self) -> Result<&[u8], Fault> {
        let password = self
            .password
            .as_ref()
            .map(|password| password.reveal().as_bytes());
        password.ok_or_else(|| {
            Fault::refused(
                "the server asks for a password, and there is none; name a password_file or a \
                password_env",
            )
        })
    }

    /// Whether what is sent stays on this machine.
    fn is_local(&self) -> bool {
        match &self.place {
            Place::Unix(_) => true,
            Place::Tcp(host, _) => {
                host == "localhost"
                    || host
                        .parse()
                        .is_ok_and(|address: IpAddr| address.is_loopback())
            }
        }
    }
}

/// Sends a message. A text with a zero byte in it is refused.
fn send(
    connection: &mut Connection,
    encode: impl FnOnce(&mut BytesMut) -> std::io::Result<()>,
) -> Result<(), Fault> {
    let mut out = BytesMut::new();
    encode(&mut out)
        .map_err(|error| Fault::refused(format!("the name or password cannot be sent: {error}")))?;
    connection.send_on(&mut [IoSlice::new(&out)])
}

/// A method of authentication that is not spoken here.
fn unspoken(method: &str) -> Fault {
    Fault::refused(format!(
        "the server asks for authentication by {method}, which this program does not speak; let it \
        ask for scram-sha-256, md5, peer or trust in pg_hba.conf"
    ))
}

/// The server does not let us in.
fn refusal(fault: Fault) -> Fault {
    if wants_tls(fault.sqlstate(), fault.message()) {
        fault.advised(TLS_ADVICE)
    } else {
        fault
    }
}

/// What to do about a server that takes nothing but TLS.
pub(in crate::postgres) const TLS_ADVICE: &str = "if it has only hostssl lines for us in \
                                                 pg_hba.conf, set tls = \"verify-full\" in the \
                                                 plan's table of the server";

/// Whether a server may have refused us for the lack of TLS: no line of its `pg_hba.conf` fits, and
/// it says that this is not an encrypted connection.
pub(in crate::postgres) fn wants_tls(sqlstate: &str, message: &str) -> bool {
    // In words until PostgreSQL 13 and from 14.
    sqlstate == "28000" && (message.contains("SSL off") || message.contains("no encryption"))
}
