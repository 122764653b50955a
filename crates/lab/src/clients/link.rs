//! The trial's end of a connection to a client host.

use std::ffi::OsString;
use std::io::{BufRead, BufReader, Read};
use std::net::IpAddr;
use std::path::Path;
use std::process::Child;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::time::{Duration, Instant};

use plimsoll_core::clock::Clock;
use plimsoll_load::MonotonicClock;
use zeroize::Zeroizing;

use super::clock::{Offset, Ping};
use super::wire::{BEAT, ClientHello, FromClient, ToClient};
use crate::fleet::{Host, HostInput, Piped, Words, end_within, ssh, start_piped, why};

/// The host's verb.
const VERB: &str = "client";
/// A login takes no longer.
const LOGIN_LIMIT: Duration = Duration::from_secs(20);
/// Pings of one look at the clock, and how long all of them may take.
const PINGS: u32 = 50;
const PINGS_LIMIT: Duration = Duration::from_secs(10);
/// How long ssh may take to say why it ended.
const END_LIMIT: Duration = Duration::from_secs(5);
const POLL: Duration = Duration::from_millis(100);
/// No line is longer: a report of thousands of workers.
const LONGEST_LINE: u64 = 64 << 20;
/// So many lines wait to be read; a host that says more waits itself.
const MOST_WAITING: usize = 64;

/// A client host that is connected. Dropped, what runs there ends.
pub(super) struct Link {
    pub host: Host,
    pub hello: ClientHello,
    patience: Duration,
    child: Child,
    input: HostInput,
    came: Receiver<(u64, FromClient)>,
    /// When something came last, by the clock here.
    heard_ns: Arc<AtomicU64>,
    said: Option<Words>,
}

impl Link {
    /// Connects, and asks who is there.
    ///
    /// # Errors
    /// Why there is no `client`: what ssh said, with what to do about it.
    pub fn open(
        host: &Host,
        program: &Path,
        server: Option<IpAddr>,
        patience: Duration,
    ) -> Result<Self, String> {
        let command = [program.as_os_str().to_owned(), OsString::from(VERB)];
        let Piped {
            child,
            input,
            output,
            said,
        } = start_piped(ssh(host, &command))?;
        let said = Some(said);
        let beat = serde_json::to_string(&ToClient::Beat).unwrap_or_default();
        let input = HostInput::of(input, beat, BEAT);
        let heard_ns = Arc::new(AtomicU64::new(MonotonicClock.now_ns()));
        let (sender, came) = sync_channel(MOST_WAITING);
        let heard = heard_ns.clone();
        std::thread::spawn(move || read_all(output, &heard, &sender));
        let mut link = Self {
            host: host.clone(),
            hello: ClientHello::nobody(),
            patience: patience.max(LOGIN_LIMIT),
            child,
            input,
            came,
            heard_ns,
            said,
        };
        link.say(&ToClient::Greet {
            server,
            patience_ns: patience.as_nanos() as u64,
        });
        let is_hello = |line| match line {
            FromClient::Hello(hello) => Ok(*hello),
            other => Err(other),
        };
        link.hello = link.wait_for(LOGIN_LIMIT, is_hello)?;
        link.patience = patience;
        Ok(link)
    }

    /// Says a line. A host that is gone shows by its end or by silence.
    pub fn say(&self, line: &ToClient) {
        // It may hold a password.
        if let Ok(text) = serde_json::to_string(line).map(Zeroizing::new) {
            self.input.say(&text);
        }
    }

    /// What comes next, waited for a moment, with when it came. Beats are left out.
    ///
    /// # Errors
    /// Why the host is lost.
    pub fn next(&mut self) -> Result<Option<(u64, FromClient)>, String> {
        match self.came.recv_timeout(POLL) {
            Ok(came) => Ok(Some(came)),
            Err(RecvTimeoutError::Timeout) if self.silence() > self.patience => Err(format!(
                "it has said nothing for {} s",
                self.patience.as_secs()
            )),
            Err(RecvTimeoutError::Timeout) => Ok(None),
            Err(RecvTimeoutError::Disconnected) => Err(self.ended()),
        }
    }

    fn silence(&self) -> Duration {
        let heard_ns = self.heard_ns.load(Ordering::Relaxed);
        Duration::from_nanos(MonotonicClock.now_ns().saturating_sub(heard_ns))
    }

    /// The line that `take` takes; others, which belong to what is over, are left out.
    ///
    /// # Errors
    /// Why the host is lost, cannot do it, or has not said it in time.
    pub fn wait_for<T>(
        &mut self,
        limit: Duration,
        take: impl Fn(FromClient) -> Result<T, FromClient>,
    ) -> Result<T, String> {
        let deadline = Instant::now() + limit;
        while Instant::now() < deadline {
            match self.next()?.map(|(_, line)| take(line)) {
                Some(Ok(taken)) => return Ok(taken),
                Some(Err(FromClient::Failed { reason, .. })) => return Err(reason),
                _ => {}
            }
        }
        Err(format!("it has not answered within {} s", limit.as_secs()))
    }

    /// Looks at its clock.
    ///
    /// # Errors
    /// Why the host is lost, or does not answer.
    pub fn offset(&mut self) -> Result<Offset, String> {
        let deadline = Instant::now() + PINGS_LIMIT;
        let mut pings = Vec::new();
        for asked in 0..PINGS {
            let asked_ns = MonotonicClock.now_ns();
            self.say(&ToClient::Ping(asked));
            loop {
                let next = self.next()?;
                if let Some((answered_ns, FromClient::Pong { id, clock_ns })) = next
                    && id == asked
                {
                    pings.push(Ping {
                        asked_ns,
                        there_ns: clock_ns,
                        answered_ns,
                    });
                    break;
                }
                if Instant::now() > deadline {
                    return Err("its clock cannot be read: it answers too late".into());
                }
            }
        }
        Offset::of(&pings).ok_or_else(|| "its clock cannot be read".to_owned())
    }

    /// Why the connection has ended.
    fn ended(&mut self) -> String {
        let code = match end_within(&mut self.child, END_LIMIT) {
            Some(status) => status.code(),
            None => return "its program closed its output and lives on: look at it there".into(),
        };
        let said = self.said.take().map(Words::said);
        why(&self.host, code, said.as_deref().unwrap_or_default())
    }
}

impl Drop for Link {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Reads lines, and when they came, until the host's output ends.
fn read_all(output: impl Read, heard_ns: &AtomicU64, sender: &SyncSender<(u64, FromClient)>) {
    let mut output = BufReader::with_capacity(64 << 10, output);
    loop {
        let mut text = Vec::new();
        let read = (&mut output)
            .take(LONGEST_LINE)
            .read_until(b'\n', &mut text);
        match read {
            Ok(read) if read > 0 && text.ends_with(b"\n") => {}
            Ok(read) if read as u64 == LONGEST_LINE => {
                let reason = format!("it said a line of more than {} MiB", LONGEST_LINE >> 20);
                let failed = FromClient::Failed {
                    client: None,
                    reason,
                };
                let _ = sender.send((MonotonicClock.now_ns(), failed));
                return;
            }
            _ => return,
        }
        let now_ns = MonotonicClock.now_ns();
        // A login may print something first, which is not a sign of life.
        let Ok(line) = serde_json::from_slice(&text) else {
            continue;
        };
        heard_ns.store(now_ns, Ordering::Relaxed);
        if !matches!(line, FromClient::Beat) && sender.send((now_ns, line)).is_err() {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A host that answers what nobody asked, and how much of it was read.
    struct Endless(Arc<AtomicU64>);

    impl Read for Endless {
        fn read(&mut self, into: &mut [u8]) -> std::io::Result<usize> {
            let line = b"{\"pong\":{\"id\":1,\"clock_ns\":1}}\n";
            let lines = into.len() / line.len();
            into[..lines * line.len()].copy_from_slice(&line.repeat(lines));
            let read = lines * line.len();
            self.0.fetch_add(read as u64, Ordering::SeqCst);
            Ok(read)
        }
    }

    /// It filled the memory here.
    #[test]
    fn a_client_host_that_says_more_than_is_read_waits() {
        let read = Arc::new(AtomicU64::new(0));
        let (sender, came) = sync_channel(MOST_WAITING);
        let output = Endless(read.clone());
        let reader = std::thread::spawn(move || read_all(output, &AtomicU64::new(0), &sender));
        let (_, first) = came.recv().unwrap();
        assert!(matches!(first, FromClient::Pong { id: 1, .. }), "{first:?}");
        std::thread::sleep(Duration::from_millis(300));
        let bytes = read.load(Ordering::SeqCst);
        assert!(bytes <= 2 * (64 << 10), "{bytes} bytes were read");
        drop(came);
        reader.join().unwrap();
    }
}
