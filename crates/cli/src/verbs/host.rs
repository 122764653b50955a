//! `host` and the internal `work`.

use std::path::Path;

use plimsoll_core::name::BuildName;
use plimsoll_core::units::{format_bytes, format_duration_ns};
use plimsoll_lab::fleet::{
    Desk, Host, Hosts, WorkPlaces, ask_for_host_key, check_host, clean_here, clean_host,
    default_hosts_file, machine_check, push_builds, push_program, receive_build, work_in_job,
};
use plimsoll_store::Fleet;

use crate::arguments::{HostVerb, HostsFile, OverHosts, Places, Work};
use crate::failure::{Failure, INCOMPLETE, MACHINE, VerbResult};
use crate::verbs::running::this_program;

const VERSION: &str = env!("CARGO_PKG_VERSION");

/// The hosts of the file that is named, or of the default one.
pub fn read_hosts(file: Option<&Path>) -> Result<Hosts, Failure> {
    let file = file
        .map(Path::to_owned)
        .map_or_else(default_hosts_file, Ok)?;
    Ok(Hosts::read(&file)?)
}

/// This end of connections to these hosts.
pub fn desk(hosts: &Hosts, allows_skew: bool) -> Result<Desk, Failure> {
    let desk = Desk::new(&this_program()?, VERSION, hosts.patience)?;
    Ok(Desk {
        allows_skew,
        ..desk
    })
}

/// The hosts that are named on the command line, and this end.
pub fn chosen(over: &OverHosts, names: &[String]) -> Result<(Vec<Host>, Desk), Failure> {
    let hosts = read_hosts(over.hosts_file.as_deref())?;
    Ok((hosts.choose(names)?, desk(&hosts, over.allow_skew)?))
}

/// What a campaign on these hosts says of them.
pub fn fleet_of(hosts: &[Host]) -> Fleet {
    Fleet::Hosts {
        names: hosts.iter().map(|host| host.name.clone()).collect(),
        class: hosts.first().and_then(|host| host.class.clone()),
    }
}

pub fn host(places: &Places, file: &HostsFile, verb: &HostVerb) -> VerbResult {
    let hosts = read_hosts(file.hosts_file.as_deref())?;
    let desk = || desk(&hosts, file.allow_skew);
    match verb {
        HostVerb::Add {
            name,
            ssh,
            class,
            dir,
        } => {
            let host = Host {
                name: name.clone(),
                ssh: ssh.clone(),
                class: class.clone(),
                dir: dir.clone(),
                ssh_config: hosts.ssh_config.clone(),
            };
            add(&hosts, &host, &desk()?)
        }
        HostVerb::Check { names } => {
            let desk = desk()?;
            each(&hosts, names, |host| check(&desk, host))
        }
        HostVerb::List => list(&hosts),
        HostVerb::Push { names, builds } => {
            let desk = desk()?;
            each(&hosts, names, |host| push(places, &desk, host, builds))
        }
        HostVerb::Clean { names, all } => {
            let desk = desk()?;
            each(&hosts, names, |host| {
                for line in clean_host(&desk, host, *all)? {
                    anstream::println!("{}: {line}", host.name);
                }
                Ok(())
            })
        }
    }
}

/// Does it for every host, and goes on where it fails for one.
fn each(
    hosts: &Hosts,
    names: &[String],
    mut act: impl FnMut(&Host) -> Result<(), Failure>,
) -> VerbResult {
    let chosen: Vec<&Host> = match names {
        [] => hosts.hosts.iter().collect(),
        names => names
            .iter()
            .map(|name| hosts.get(name))
            .collect::<Result<_, _>>()?,
    };
    if chosen.is_empty() {
        return Err(Failure::usage(format!(
            "{} has no host; `plimsoll host add NAME --ssh USER@ADDRESS` adds one",
            hosts.file.display()
        )));
    }
    let mut code = 0;
    for host in chosen {
        if let Err(failure) = act(host) {
            tell!("plimsoll: {failure}");
            code = failure.exit_code();
        }
    }
    Ok(code)
}

/// The key is looked at by the user once, and ssh keeps it. What fails leaves the file as it was.
fn add(hosts: &Hosts, host: &Host, desk: &Desk) -> VerbResult {
    hosts.check_new(host)?;
    if let Err(error) = push_program(desk, host) {
        let is_asked = std::io::IsTerminal::is_terminal(&std::io::stdin());
        if !is_asked || !error.to_string().contains("does not know the host's key") {
            return Err(error.into());
        }
        ask_for_host_key(host)?;
        push_program(desk, host)?;
    }
    check(desk, host)?;
    hosts.add(host)?;
    anstream::println!("added {} to {}", host.name, hosts.file.display());
    Ok(0)
}

fn check(desk: &Desk, host: &Host) -> Result<(), Failure> {
    let reach = check_host(desk, host)?;
    let hello = &reach.hello;
    anstream::println!(
        "{}: {} CPUs ({}), {} free in {}; greeted after {}, clock {:+.1} s",
        host.name,
        hello.cpus,
        hello.cpu_model,
        format_bytes(hello.free_bytes),
        host.dir.display(),
        format_duration_ns(reach.greeted_after.as_nanos() as u64),
        reach.skew_s,
    );
    for id in &hello.spooled {
        anstream::println!("  has trials of {id} that no desk has: `plimsoll resume {id}`");
    }
    let checks = machine_check(desk, host)?;
    let is_worth_a_line = |line: &&str| !line.starts_with("ok") && !line.trim().is_empty();
    for line in checks.lines().filter(is_worth_a_line) {
        anstream::println!("  {line}");
    }
    Ok(())
}

fn list(hosts: &Hosts) -> VerbResult {
    let width = |text: fn(&Host) -> &str| {
        hosts
            .hosts
            .iter()
            .map(|host| text(host).len())
            .max()
            .unwrap_or(0)
    };
    let class = |host: &Host| host.class.clone().unwrap_or_else(|| "-".into());
    let (name, ssh) = (width(|host| &host.name), width(|host| &host.ssh));
    for host in &hosts.hosts {
        anstream::println!(
            "{:name$}  {:ssh$}  {}  {}",
            host.name,
            host.ssh,
            class(host),
            host.dir.display()
        );
    }
    if hosts.hosts.is_empty() {
        tell!("{} has no host", hosts.file.display());
    }
    Ok(0)
}

fn push(places: &Places, desk: &Desk, host: &Host, names: &[BuildName]) -> Result<(), Failure> {
    let program = push_program(desk, host)?;
    anstream::println!("{}: {}", host.name, program.display());
    push_builds(desk, host, &places.builds()?, names)?;
    for name in names {
        anstream::println!("{}: {name}", host.name);
    }
    Ok(())
}

/// The body of `work`: over ssh, in a job of Slurm, or for `host push` and `host clean`.
pub fn work(places: &Places, arguments: &Work) -> VerbResult {
    let program = this_program()?;
    let mut folders = WorkPlaces::below(&arguments.dir);
    if let Some(name) = &arguments.take_build {
        receive_build(&folders, name, std::io::stdin().lock())?;
        return Ok(0);
    }
    if arguments.clean {
        for line in clean_here(&arguments.dir, &program, arguments.all)? {
            anstream::println!("{line}");
        }
        return Ok(0);
    }
    let in_job = (
        &arguments.campaign,
        arguments.block,
        &arguments.host,
        &arguments.job,
    );
    if let (Some(campaign), Some(block), Some(host), Some(job)) = in_job {
        folders.builds = places.cache_dir()?;
        let of = (block, host.as_str(), job.as_str());
        let is_done = work_in_job(&folders, &program, VERSION, campaign, of)?;
        return Ok(if is_done { 0 } else { INCOMPLETE });
    }
    // The desk knows already what is wrong.
    match plimsoll_lab::fleet::work(&folders, &program, VERSION) {
        Ok(()) => Ok(0),
        Err(error) => {
            tell!("plimsoll: {error}");
            Ok(MACHINE)
        }
    }
}

/// The internal `client`: the trial knows already what is wrong.
pub fn client() -> VerbResult {
    plimsoll_lab::clients::client(VERSION)?;
    Ok(0)
}
