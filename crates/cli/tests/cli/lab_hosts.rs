//! Machines for tests: network namespaces of this one, each with an sshd and a folder of its own,
//! and a desk in a namespace that reaches them.

use std::fs::{self, File};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use plimsoll_testkit::{is_root, skip, write_script};

use crate::support::{Place, wait_until};

static LABS: AtomicU32 = AtomicU32::new(0);

/// Hosts `h1`, `h2`, ... and a desk. Dropped, everything of it ends.
pub struct Lab {
    pub place: Place,
    /// Names of namespaces begin so: several tests run at once.
    prefix: String,
    hosts: usize,
}

impl Lab {
    /// So many hosts with this program; `None`, with a reason, where that is not allowed.
    pub fn new(test: &str, hosts: usize) -> Option<Self> {
        Self::of(test, hosts, Place::new)
    }

    /// As [`Self::new`], where a sync takes its time.
    pub fn on_disk(test: &str, hosts: usize) -> Option<Self> {
        Self::of(test, hosts, Place::on_disk)
    }

    fn of(test: &str, hosts: usize, place: fn() -> Place) -> Option<Self> {
        let sshd = Path::new("/usr/sbin/sshd").exists();
        if !sshd {
            skip(test, "sshd is missing; `make deps` installs it");
            return None;
        }
        if !is_root() {
            skip(test, "only root may make network namespaces");
            return None;
        }
        let number = LABS.fetch_add(1, Ordering::SeqCst);
        let lab = Self {
            place: place(),
            prefix: format!("pl{}x{number}", std::process::id()),
            hosts,
        };
        let made = ip(&["netns", "add", &lab.desk()]);
        if !made.status.success() {
            let reason = String::from_utf8_lossy(&made.stderr).trim().to_owned();
            skip(test, &format!("no network namespaces here: {reason}"));
            return None;
        }
        fs::create_dir_all("/run/sshd").unwrap();
        lab.start();
        Some(lab)
    }

    pub fn desk(&self) -> String {
        format!("{}d", self.prefix)
    }

    pub fn namespace(&self, host: usize) -> String {
        format!("{}h{host}", self.prefix)
    }

    /// A folder of the host, below which everything of it is.
    pub fn dir(&self, host: usize) -> PathBuf {
        self.place.path(&format!("h{host}"))
    }

    fn start(&self) {
        let desk = self.desk();
        self.key("id");
        ok(&in_namespace(&desk, &["ip", "link", "set", "lo", "up"]));
        for line in [
            "ip link add br0 type bridge",
            "ip addr add 10.99.0.1/24 dev br0",
            "ip link set br0 up",
        ] {
            let words: Vec<&str> = line.split(' ').collect();
            ok(&in_namespace(&desk, &words));
        }
        let (mut known, mut config, mut list) = (String::new(), String::new(), String::new());
        for host in 1..=self.hosts {
            self.wire(host);
            let address = format!("10.99.0.1{host}");
            let public = self.key(&format!("key{host}"));
            known.push_str(&format!("{address} {public}\n"));
            config.push_str(&format!("Host h{host}\n  HostName {address}\n"));
            let dir = self.dir(host);
            fs::create_dir(&dir).unwrap();
            list.push_str(&format!(
                "[host.h{host}]\nssh = \"h{host}\"\nclass = \"test\"\ndir = \"{}\"\n",
                dir.display()
            ));
            self.start_sshd(host);
        }
        let path = |name: &str| self.place.path(name).display().to_string();
        // The quickest: each lab has the program copied to its hosts.
        config.push_str(&format!(
            "Host *\n  User root\n  IdentityFile {}\n  IdentitiesOnly yes\n  UserKnownHostsFile {}\n  \
             Ciphers aes128-gcm@openssh.com\n",
            path("id"),
            path("known")
        ));
        fs::write(self.place.path("known"), known).unwrap();
        fs::write(self.place.path("ssh_config"), config).unwrap();
        let head = "ssh_config = \"ssh_config\"\npatience = \"3s\"\n";
        fs::write(self.place.path("hosts.toml"), format!("{head}{list}")).unwrap();
    }

    fn wire(&self, host: usize) {
        let (desk, own) = (self.desk(), self.namespace(host));
        let veth = format!("v{host}");
        ok(&ip(&["netns", "add", &own]));
        let pair = [
            "link", "add", &veth, "netns", &desk, "type", "veth", "peer", "name", "eth0", "netns",
            &own,
        ];
        ok(&ip(&pair));
        ok(&in_namespace(
            &desk,
            &["ip", "link", "set", &veth, "master", "br0", "up"],
        ));
        let address = format!("10.99.0.1{host}/24");
        ok(&in_namespace(
            &own,
            &["ip", "addr", "add", &address, "dev", "eth0"],
        ));
        ok(&in_namespace(&own, &["ip", "link", "set", "eth0", "up"]));
        ok(&in_namespace(&own, &["ip", "link", "set", "lo", "up"]));
    }

    /// A new key in place of an old one; its public half.
    pub fn key(&self, name: &str) -> String {
        let file = self.place.path(name);
        let _ = fs::remove_file(&file);
        let made = Command::new("ssh-keygen")
            .args(["-q", "-t", "ed25519", "-N", "", "-f"])
            .arg(&file)
            .stdin(Stdio::null())
            .output()
            .unwrap();
        ok(&made);
        let public = fs::read_to_string(file.with_extension("pub")).unwrap();
        public.split(' ').take(2).collect::<Vec<_>>().join(" ")
    }

    fn pid_file(&self, host: usize) -> PathBuf {
        self.place.path(&format!("sshd{host}.pid"))
    }

    /// Starts the host's sshd with the key that is there now, in a namespace of mounts that has
    /// what is mounted now.
    pub fn start_sshd(&self, host: usize) {
        self.start_sshd_in(host, &["-m"]);
    }

    /// The same in the namespaces that `unshare` makes by these options.
    pub fn start_sshd_in(&self, host: usize, namespaces: &[&str]) {
        let path = |name: &str| self.place.path(name).display().to_string();
        let config = self.place.path(&format!("sshd{host}"));
        let text = format!(
            "ListenAddress 10.99.0.1{host}\nHostKey {}\nPidFile {}\nAuthorizedKeysFile {}\n\
             StrictModes no\nUsePAM no\nPasswordAuthentication no\nKbdInteractiveAuthentication no\n",
            path(&format!("key{host}")),
            self.pid_file(host).display(),
            path("id.pub")
        );
        fs::write(&config, text).unwrap();
        // A machine of its own, where this one has an id.
        let id = self.place.path(&format!("machine-id{host}"));
        if !id.exists() {
            self.set_machine_id(host, host);
        }
        let line = format!(
            "test ! -e /etc/machine-id || mount --bind {} /etc/machine-id && \
             exec /usr/sbin/sshd -f {}",
            id.display(),
            config.display()
        );
        let words = [&["unshare"], namespaces, &["sh", "-c", &line]].concat();
        ok(&in_namespace(&self.namespace(host), &words));
        wait_until("sshd listens", || self.pid_file(host).exists());
    }

    /// Gives the host the id of a machine from now on.
    pub fn set_machine_id(&self, host: usize, machine: usize) {
        let id = self.place.path(&format!("machine-id{host}"));
        fs::write(id, format!("{machine:032x}\n")).unwrap();
    }

    /// Ends the host's sshd; connections that are open stay.
    pub fn stop_sshd(&self, host: usize) {
        if let Ok(pid) = fs::read_to_string(self.pid_file(host)) {
            kill("TERM", pid.trim());
            wait_until("sshd has ended", || !self.pid_file(host).exists());
        }
    }

    /// `plimsoll` with these arguments, at the desk.
    pub fn command(&self, arguments: &[&str]) -> Command {
        let inner = self.place.command(arguments);
        let mut command = Command::new("nsenter");
        command
            .arg(format!("--net=/run/netns/{}", self.desk()))
            .arg(inner.get_program())
            .args(inner.get_args())
            .current_dir(self.place.dir.path())
            .env("PLIMSOLL_HOSTS", self.place.path("hosts.toml"))
            .stdin(Stdio::null());
        command
    }

    pub fn run(&self, arguments: &[&str]) -> Output {
        self.command(arguments).output().unwrap()
    }

    pub fn spawn(&self, arguments: &[&str]) -> Child {
        let mut command = self.command(arguments);
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        command.spawn().unwrap()
    }

    /// Copies the program to all hosts.
    pub fn push(&self) {
        let pushed = self.run(&["host", "push"]);
        ok(&pushed);
    }

    /// Cuts the host off, or connects it again.
    pub fn link(&self, host: usize, state: &str) {
        let words = ["ip", "link", "set", "eth0", state];
        ok(&in_namespace(&self.namespace(host), &words));
    }

    /// Pids of processes of this program in the host's namespace, by a word of their command line.
    pub fn processes(&self, host: usize, word: &str) -> Vec<String> {
        self.matching(host, |line| {
            line.contains("/bin/plimsoll-") && line.contains(word)
        })
    }

    /// Pids of processes in the host's namespace whose command line is so.
    pub fn matching(&self, host: usize, is_so: impl Fn(&str) -> bool) -> Vec<String> {
        processes_in(&self.namespace(host), is_so)
    }

    /// Pids of processes in the desk's namespace whose command line is so.
    pub fn at_desk(&self, is_so: impl Fn(&str) -> bool) -> Vec<String> {
        processes_in(&self.desk(), is_so)
    }

    /// Pids of the desk's connections to a host.
    pub fn clients(&self, host: usize) -> Vec<String> {
        processes_in(&self.desk(), |line| {
            line.starts_with("ssh ") && line.contains(&format!(" h{host} "))
        })
    }

    /// Waits until nothing of a campaign runs on any host.
    pub fn wait_for_silence(&self) {
        wait_until("nothing runs on any host", || {
            (1..=self.hosts).all(|host| self.processes(host, " ").is_empty())
        });
    }

    /// Lets what the host's `work` says pass through a line of Perl, which changes it.
    pub fn filter(&self, host: usize, line: &str) {
        let (program, real) = self.set_aside(host);
        let perl = self.place.path(&format!("filter{host}.pl"));
        let trace = self.place.path(&format!("filtered{host}"));
        let text = format!(
            "BEGIN {{ binmode STDIN; binmode STDOUT; $| = 1 }}\n\
             my $before = $_; {line};\n\
             if ($_ ne $before) {{ open my $f, '>', '{}'; close $f }}\n",
            trace.display()
        );
        fs::write(&perl, text).unwrap();
        // Only what answers to a desk: a build that is taken and a check say other things.
        let script = format!(
            "[ \"$#\" = 3 ] && [ \"$1\" = work ] || exec {real} \"$@\"\n\
             {real} \"$@\" | perl -p {perl}",
            real = real.display(),
            perl = perl.display()
        );
        write_script(&program, &script);
    }

    /// Lets what the host's `client` hears and what it says pass through a line of Perl each.
    pub fn filter_client(&self, host: usize, heard: &str, said: &str) {
        let (program, real) = self.set_aside(host);
        let perl = |name: &str, line: &str| {
            let file = self.place.path(&format!("{name}{host}.pl"));
            fs::write(&file, format!("BEGIN {{ $| = 1 }}\n{line};\n")).unwrap();
            file.display().to_string()
        };
        let script = format!(
            "[ \"$*\" = client ] || exec {real} \"$@\"\n\
             perl -p {heard} | {real} client | perl -p {said}",
            real = real.display(),
            heard = perl("heard", heard),
            said = perl("said", said),
        );
        write_script(&program, &script);
    }

    /// Where the host's program was, and where it is now.
    fn set_aside(&self, host: usize) -> (PathBuf, PathBuf) {
        let bin = self.dir(host).join("bin");
        let program = fs::read_dir(&bin).unwrap().next().unwrap();
        let (program, real) = (program.unwrap().path(), bin.join("plimsoll-real"));
        fs::rename(&program, &real).unwrap();
        (program, real)
    }

    /// Whether the filter of a host has changed anything.
    pub fn is_filtered(&self, host: usize) -> bool {
        self.place.path(&format!("filtered{host}")).exists()
    }

    /// The host's own program again.
    pub fn unfilter(&self, host: usize) {
        let bin = self.dir(host).join("bin");
        let entries = fs::read_dir(&bin).unwrap();
        let mut paths = entries.map(|entry| entry.unwrap().path());
        let program = paths.find(|path| !path.ends_with("plimsoll-real")).unwrap();
        fs::rename(bin.join("plimsoll-real"), program).unwrap();
    }

    /// Replaces the program of a host by a script.
    pub fn replace_program(&self, host: usize, script: &str) {
        let program = fs::read_dir(self.dir(host).join("bin"))
            .unwrap()
            .next()
            .unwrap();
        let program = program.unwrap().path();
        fs::remove_file(&program).unwrap();
        fs::write(&program, script).unwrap();
        fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
        File::open(&program).unwrap().sync_all().unwrap();
    }
}

impl Drop for Lab {
    fn drop(&mut self) {
        for host in 1..=self.hosts {
            if let Ok(pid) = fs::read_to_string(self.pid_file(host)) {
                kill("TERM", pid.trim());
            }
            // Only what runs in a namespace of this lab.
            let pids = ip(&["netns", "pids", &self.namespace(host)]);
            for pid in String::from_utf8_lossy(&pids.stdout).lines() {
                kill("KILL", pid);
            }
        }
        std::thread::sleep(Duration::from_millis(100));
        for name in (1..=self.hosts)
            .map(|host| self.namespace(host))
            .chain([self.desk()])
        {
            ip(&["netns", "del", &name]);
        }
    }
}

pub fn kill(signal: &str, pid: &str) {
    let _ = Command::new("kill")
        .args(["-s", signal, pid])
        .stderr(Stdio::null())
        .status();
}

fn processes_in(namespace: &str, is_so: impl Fn(&str) -> bool) -> Vec<String> {
    let pids = ip(&["netns", "pids", namespace]);
    let pids = String::from_utf8_lossy(&pids.stdout).into_owned();
    let is_of = |pid: &&str| {
        let line = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        is_so(&String::from_utf8_lossy(&line).replace('\0', " "))
    };
    pids.lines().filter(is_of).map(str::to_owned).collect()
}

fn ip(arguments: &[&str]) -> Output {
    Command::new("ip").args(arguments).output().unwrap()
}

pub fn in_namespace(name: &str, words: &[&str]) -> Output {
    Command::new("nsenter")
        .arg(format!("--net=/run/netns/{name}"))
        .args(words)
        .stdin(Stdio::null())
        .output()
        .unwrap()
}

pub fn ok(output: &Output) {
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
}
