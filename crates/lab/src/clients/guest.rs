//! The body of the internal `client` verb: a client host runs the workers of its clients for a
//! trial that watches elsewhere.

use std::io::{self, Write};
use std::net::{IpAddr, UdpSocket};
use std::os::fd::AsFd;
use std::path::Path;
use std::process::exit;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use plimsoll_core::clock::Clock;
use plimsoll_core::units::SECOND_NS;
use plimsoll_engine::guest_server;
use plimsoll_engine::process::boot_id;
use plimsoll_host::{Cpus, Proc, capture_environment, machine_id};
use plimsoll_load::{Command, Control, MonotonicClock, PartLink, PartReport, StepError, run_part};
use plimsoll_workload::{ExtraCounts, SharedServer, WorkloadRun};
use rustix::time::{ClockId, clock_gettime};

use super::wire::{BEAT, ClientHello, FromClient, StepOrder, ToClient};
use crate::error::LabError;
use crate::input::{Input, wait_for_input};

/// Before the trial has said how long it may be silent.
const FIRST_PATIENCE: Duration = Duration::from_secs(60);
/// `select 1`, so often.
const ROUND_TRIPS: usize = 100;
/// ssh sets it: the address and port it comes from, and those it came to.
const SSH_CONNECTION: &str = "SSH_CONNECTION";
/// Nothing is sent there: the kernel is only asked which way it would go.
const ANY_PORT: u16 = 9;

impl ClientHello {
    /// Before anybody has said anything.
    pub(super) fn nobody() -> Self {
        Self {
            version: String::new(),
            server: IpAddr::from([0, 0, 0, 0]),
            own: IpAddr::from([0, 0, 0, 0]),
            machine_id: None,
            boot_id: String::new(),
            cpu_model: String::new(),
            cpus: 0,
        }
    }
}

/// Does what a trial says on standard input until that ends; then the process ends, whatever its
/// workers do: load that nobody watches is worthless.
///
/// # Errors
/// When what comes first is not a trial's greeting.
pub fn client(version: &str) -> Result<(), LabError> {
    let control = Arc::new(Mutex::new(Arc::new(Control::default())));
    let (sender, lines) = channel();
    let of_reader = control.clone();
    std::thread::spawn(move || listen(&of_reader, &sender));
    let Ok(ToClient::Greet { server, .. }) = lines.recv() else {
        return Err(LabError::Usage(
            "`client` is internal: `plimsoll run --clients` starts it".into(),
        ));
    };
    match hello(version, server) {
        Ok(hello) => say(&FromClient::Hello(Box::new(hello))),
        Err(reason) => say(&failed(reason)),
    }
    std::thread::spawn(|| {
        loop {
            say(&FromClient::Beat);
            std::thread::sleep(BEAT);
        }
    });
    while let Ok(line) = lines.recv() {
        if let ToClient::Step(order) = line {
            let of_step = Arc::new(Control::default());
            *control.lock().unwrap_or_else(PoisonError::into_inner) = of_step.clone();
            let done = step(&order, &of_step, &lines);
            say(&done.map_or_else(|failed| failed, |()| FromClient::Left));
        }
    }
    Ok(())
}

/// Reads the trial's lines. What cannot wait is done here: pings are answered, stops obeyed.
fn listen(control: &Mutex<Arc<Control>>, sender: &Sender<ToClient>) {
    let mut input = Input::default();
    let mut patience = FIRST_PATIENCE;
    let mut is_greeted = false;
    loop {
        while let Some(line) = input.whole_line() {
            match serde_json::from_slice(&line) {
                Ok(ToClient::Ping(id)) => say(&FromClient::Pong {
                    id,
                    clock_ns: MonotonicClock.now_ns(),
                }),
                Ok(ToClient::Stop) => control
                    .lock()
                    .unwrap_or_else(PoisonError::into_inner)
                    .give(Command::Stop),
                Ok(line) => {
                    if let ToClient::Greet { patience_ns, .. } = line {
                        patience = Duration::from_nanos(patience_ns);
                        is_greeted = true;
                    }
                    let _ = sender.send(line);
                }
                Err(_) => {}
            }
        }
        if !wait_for_input(io::stdin().as_fd(), patience) {
            eprintln!("the trial has said nothing for {} s", patience.as_secs());
            exit(1);
        }
        if !input.read().is_ok_and(|bytes| bytes > 0) {
            if !is_greeted {
                return;
            }
            exit(1);
        }
    }
}

/// That nobody listens shows on standard input.
fn say(line: &FromClient) {
    if let Ok(text) = serde_json::to_string(line) {
        let _ = writeln!(io::stdout(), "{text}");
    }
}

fn failed(reason: String) -> FromClient {
    FromClient::Failed {
        client: None,
        reason,
    }
}

fn hello(version: &str, server: Option<IpAddr>) -> Result<ClientHello, String> {
    let of_ssh = || {
        let connection = std::env::var(SSH_CONNECTION).ok()?;
        connection.split(' ').next()?.parse().ok()
    };
    let server = server.or_else(of_ssh).ok_or(
        "where the server will be is not known there: say it with --server-address ADDRESS",
    )?;
    let facts = capture_environment(Proc::new(), Path::new("/")).facts();
    Ok(ClientHello {
        version: version.to_owned(),
        server,
        own: own_address(server)
            .map_err(|error| format!("there is no way from there to {server}: {error}"))?,
        machine_id: machine_id().ok(),
        boot_id: boot_id(),
        cpu_model: facts.get("cpu_model").cloned().unwrap_or_default(),
        cpus: Cpus::allowed().map_or(1, |cpus| cpus.count() as u32),
    })
}

/// Where packets to the server come from.
fn own_address(server: IpAddr) -> io::Result<IpAddr> {
    let any: IpAddr = match server {
        IpAddr::V4(_) => [0, 0, 0, 0].into(),
        IpAddr::V6(_) => [0_u16; 8].into(),
    };
    let socket = UdpSocket::bind((any, 0))?;
    socket.connect((server, ANY_PORT))?;
    Ok(socket.local_addr()?.ip())
}

/// Runs the workers of this host's clients in a step. The error is the answer to the trial.
fn step(
    order: &StepOrder,
    control: &Arc<Control>,
    lines: &Receiver<ToClient>,
) -> Result<(), FromClient> {
    let refused = |error: plimsoll_engine::EngineError| failed(format!("failed to {error}"));
    let server = guest_server(&order.guest).map_err(refused)?;
    let server: SharedServer = Arc::new(server);
    let (query_rtt_min_ns, query_rtt_p50_ns) = round_trips(&server).map_err(failed)?;
    let mut run = WorkloadRun::new(&order.workload, server, order.seed).map_err(refused)?;
    run.restore(order.state.clone());
    let (first, last) = order.clients;
    let tasks = run
        .tasks_of(&order.step, &(first..=last))
        .map_err(refused)?;
    let mut link = ToTrial {
        lines,
        counts: tasks.counts.clone(),
        ready: FromClient::Ready {
            query_rtt_min_ns,
            query_rtt_p50_ns,
        },
        warm_up_ns: tasks.options.warm_up_ns,
        cpu_begin_ns: Arc::new(AtomicU64::new(u64::MAX)),
        late_by_ns: None,
    };
    let ran = run_part(
        &Arc::new(MonotonicClock),
        tasks.tasks,
        order.interval_s,
        control,
        &tasks.options,
        &mut link,
    );
    match (ran, link.late_by_ns) {
        (Ok(()), None) => Ok(()),
        (Ok(()), Some(late_ns)) => Err(failed(format!(
            "it heard of the start {:.1} ms after it: the network, or the machine, is too busy",
            late_ns as f64 / 1e6
        ))),
        (Err(StepError::Open { client, message }), _) => Err(FromClient::Failed {
            client: Some(client),
            reason: message,
        }),
        (Err(error), _) => Err(failed(error.to_string())),
    }
}

/// The shortest and the median time of `select 1`, in nanoseconds.
fn round_trips(server: &SharedServer) -> Result<(u64, u64), String> {
    let failed = |error: &dyn std::fmt::Display| format!("failed to reach the server: {error}");
    let mut session = server.connect().map_err(|error| failed(&error))?;
    let mut times = Vec::new();
    for _ in 0..ROUND_TRIPS {
        let begin = Instant::now();
        session
            .query_integer("select 1")
            .map_err(|error| failed(&error))?;
        times.push(begin.elapsed().as_nanos() as u64);
    }
    times.sort_unstable();
    Ok((times[0], times[ROUND_TRIPS / 2]))
}

/// CPU time of this process so far.
fn cpu_ns() -> u64 {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    time.tv_sec as u64 * SECOND_NS + time.tv_nsec as u64
}

/// Where the workers' reports go.
struct ToTrial<'a> {
    lines: &'a Receiver<ToClient>,
    counts: ExtraCounts,
    ready: FromClient,
    warm_up_ns: u64,
    /// The process's CPU time when operations began to count; `u64::MAX` before.
    cpu_begin_ns: Arc<AtomicU64>,
    /// How long after the start it was heard of.
    late_by_ns: Option<u64>,
}

impl ToTrial<'_> {
    /// Waits for what `take` takes; a step that is given up before is `None`.
    fn wait_for<T>(&self, take: impl Fn(&ToClient) -> Option<T>) -> Option<T> {
        while let Ok(line) = self.lines.recv() {
            if let Some(taken) = take(&line) {
                return Some(taken);
            }
            if matches!(line, ToClient::Leave) {
                return None;
            }
        }
        None
    }

    /// What a warm-up takes is not the step's, like its operations.
    fn count_cpu_from(&self, begin_ns: u64) {
        let warm_up_ns = self.warm_up_ns;
        if warm_up_ns == 0 {
            self.cpu_begin_ns.store(cpu_ns(), Ordering::Relaxed);
            return;
        }
        let cpu_begin_ns = self.cpu_begin_ns.clone();
        std::thread::spawn(move || {
            MonotonicClock.sleep_until_ns(begin_ns.saturating_add(warm_up_ns));
            cpu_begin_ns.store(cpu_ns(), Ordering::Relaxed);
        });
    }
}

impl PartLink for ToTrial<'_> {
    fn connected(&mut self) -> Option<u64> {
        say(&self.ready);
        let start = |line: &ToClient| match line {
            ToClient::Start { at_ns } => Some(*at_ns),
            _ => None,
        };
        let at_ns = self.wait_for(start)?;
        let now_ns = MonotonicClock.now_ns();
        if now_ns >= at_ns {
            self.late_by_ns = Some(now_ns - at_ns);
            return None;
        }
        say(&FromClient::Begun {
            margin_ns: at_ns - now_ns,
        });
        self.count_cpu_from(at_ns);
        Some(at_ns)
    }

    fn report(&mut self, report: PartReport) {
        say(&FromClient::Report(report));
    }

    fn ended(&mut self) {
        say(&FromClient::Counted {
            counts: self.counts.part(),
            cpu_ns: cpu_ns().saturating_sub(self.cpu_begin_ns.load(Ordering::Relaxed)),
        });
        self.wait_for(|line| matches!(line, ToClient::Leave).then_some(()));
    }
}
