//! The argument table.

use std::ffi::OsString;
use std::net::IpAddr;
use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};
use plimsoll_analysis::{GateMetric, StepThreshold};
use plimsoll_core::name::BuildName;
use plimsoll_store::DEFAULT_STORE;

/// What a newcomer types first.
const START_HERE: &str = "\
Start here:
  plimsoll run     # compares two configs of SQLite, in about 90 s
  plimsoll init    # writes a plan for what you have";

/// Finds performance regressions in database engines.
///
/// Runs benchmarks over builds x configs of an engine and reports the throughput, latency, CPU and
/// I/O of each step relative to a base.
#[derive(Debug, Parser)]
#[command(
    name = "plimsoll",
    version,
    before_help = START_HERE,
    max_term_width = 110,
    subcommand_required = true,
    arg_required_else_help = true
)]
pub struct Arguments {
    #[command(flatten)]
    pub places: Places,
    #[command(subcommand)]
    pub verb: Verb,
}

/// Where things are.
#[derive(Debug, Args)]
pub struct Places {
    /// Folder that holds the campaigns
    #[arg(
        long,
        global = true,
        value_name = "DIR",
        help_heading = "Folders",
        default_value = DEFAULT_STORE
    )]
    pub store: PathBuf,
    /// Folder for data directories; must be new, empty or made by Plimsoll
    /// [default: plimsoll/data in the user's cache folder, for root in /var/cache]
    #[arg(long, global = true, value_name = "DIR", help_heading = "Folders")]
    pub data: Option<PathBuf>,
    /// Folder that holds the builds of engines
    /// [default: builds in $PLIMSOLL_CACHE, else plimsoll/builds in the user's cache folder, for
    /// root in /var/cache]
    #[arg(long, global = true, value_name = "DIR", help_heading = "Folders")]
    pub cache: Option<PathBuf>,
}

#[derive(Debug, Subcommand)]
pub enum Verb {
    /// Run a plan and write the report: verdicts where the plan asks for them, else one run per cell
    Run(Run),
    /// Write a commented plan for what you have: versions, builds of your own, or a server; asks at
    /// a terminal
    Init(Init),
    /// Finish an interrupted campaign: keep complete trials, run the others again
    Resume {
        /// Id, start of an id, or path [default: the newest]
        campaign: Option<String>,
        /// Do not fetch missing builds
        #[arg(long)]
        offline: bool,
        #[command(flatten)]
        over: OverHosts,
    },
    /// Print the tables of a campaign
    Show(Show),
    /// Write a report
    Report(Report),
    /// Write the post about a campaign that its author would publish: text, tables and figures; or
    /// check the numbers of a text
    Post(Post),
    /// Compare two builds, cells, campaigns or folders of results
    Compare(Compare),
    /// Explain why a step differs: rank per-operation metrics by how far they moved, and say what
    /// such a pattern usually means
    Explain(Explain),
    /// Show releases and stored campaigns as a series: one step, or a gradual loss?
    History(History),
    /// Pass or fail candidates in CI, of a campaign or after measuring a plan: exit code 0 is a
    /// pass, 1 a regression, 4 no decision
    Gate(Gate),
    /// Measure unusual steps again and give verdicts: interleave all candidates on copies of the
    /// same data, and run the base twice
    Confirm(Confirm),
    /// Find the builds at which a step got slower, between a good and a bad one: measure all three
    /// interleaved until every step is at one build with a probability of 95 %
    Bisect(Bisect),
    /// Import results of other tools into the store
    Import(Import),
    /// Export results in the file formats of the original tools
    Export(Export),
    /// Fetch, list and check builds of engines; nothing is installed into the system
    Build {
        #[command(subcommand)]
        verb: BuildVerb,
    },
    /// Check or explain a plan; no build is needed
    Plan {
        #[command(subcommand)]
        verb: PlanVerb,
    },
    /// List, show and check workloads
    Workload {
        #[command(subcommand)]
        verb: WorkloadVerb,
    },
    /// Say what on this machine disturbs measuring, the command that mends it, and what verdicts
    /// suffer from the rest
    Doctor {
        /// Print one JSON value
        #[arg(long)]
        json: bool,
    },
    /// Check whether this machine is fit for benchmarks
    Machine {
        #[command(subcommand)]
        verb: MachineVerb,
    },
    /// Add, check, list, push to and clean the hosts that `run --hosts` uses
    Host {
        #[command(flatten)]
        file: HostsFile,
        #[command(subcommand)]
        verb: HostVerb,
    },
    /// Run a plan as jobs of Slurm, one block per job; nobody needs to stay logged in
    Submit(Submit),
    /// Print the completions of a shell, to be sourced by it
    Completions {
        /// Which shell
        shell: clap_complete::Shell,
    },
    /// Internal: write the manual's pages
    #[command(hide = true)]
    Manual {
        /// Where to
        folder: PathBuf,
    },
    /// Internal: run one trial
    #[command(hide = true)]
    Trial {
        /// Descriptor that holds the order which an earlier image of this process left
        #[arg(long, hide = true)]
        continued: Option<u32>,
    },
    /// Internal: run a command and end every process it leaves behind
    #[command(hide = true)]
    Guard {
        /// The process whose death ends the guard
        #[arg(long)]
        parent: u32,
        /// The command
        #[arg(last = true)]
        command: Vec<OsString>,
    },
    /// Internal: run blocks of a campaign on this host
    #[command(hide = true)]
    Work(Work),
    /// Internal: run clients of a trial on this host
    #[command(hide = true)]
    Client,
    /// Internal: load an engine's library and try it in an empty folder
    #[command(hide = true)]
    ProbeLibrary {
        /// The engine
        engine: BuildName,
        /// The library
        library: PathBuf,
        /// The folder
        folder: PathBuf,
        /// Folder with libraries that it needs and this machine may lack
        companions: Option<PathBuf>,
    },
}

#[derive(Debug, Args)]
pub struct Run {
    /// A plan file or the name of a shipped plan
    /// [default: quick, about 90 s on SQLite]
    pub plan: Option<String>,
    /// Seed for schedule and data [default: the plan's, else taken from the clock and recorded]
    #[arg(long, value_name = "N")]
    pub seed: Option<u64>,
    /// Look at what the servers' sessions wait for, this often while they work
    #[arg(long, value_name = "RATE", num_args = 0..=1, default_missing_value = "10Hz")]
    pub waits: Option<String>,
    /// Run each cell once, without verdicts, whatever the plan asks for
    #[arg(long)]
    pub screen: bool,
    /// Fetch nothing: use only builds in the cache
    #[arg(long)]
    pub offline: bool,
    /// Finish the newest campaign of this plan instead of starting a new one
    #[arg(long, conflicts_with = "seed")]
    pub resume: bool,
    #[command(flatten)]
    pub over: OverHosts,
    #[command(flatten)]
    pub away: ClientsAway,
}

/// Clients on other machines than the server.
#[derive(Debug, Args)]
pub struct ClientsAway {
    /// Run the clients of each step on these hosts, shared out evenly; the servers stay here
    #[arg(
        long,
        value_name = "A,B",
        value_delimiter = ',',
        conflicts_with = "hosts",
        help_heading = "Hosts"
    )]
    pub clients: Vec<String>,
    /// Address of this machine that the client hosts connect to
    /// [default: the one that ssh comes from]
    #[arg(
        long,
        value_name = "ADDRESS",
        requires = "clients",
        help_heading = "Hosts"
    )]
    pub server_address: Option<IpAddr>,
}

/// Which file names the hosts.
#[derive(Debug, Args)]
pub struct HostsFile {
    /// File that lists hosts
    /// [default: $PLIMSOLL_HOSTS, else plimsoll/hosts.toml in the user's folder of configurations]
    #[arg(long, value_name = "FILE", global = true)]
    pub hosts_file: Option<PathBuf>,
    /// Accept a host whose clock is more than a second from this machine's
    #[arg(long, global = true)]
    pub allow_skew: bool,
}

/// Blocks on other machines.
#[derive(Debug, Default, Args)]
pub struct OverHosts {
    /// Run the blocks on these hosts, one block on each at a time; `class=C` means all of a class
    #[arg(
        long,
        value_name = "A,B",
        value_delimiter = ',',
        help_heading = "Hosts"
    )]
    pub hosts: Vec<String>,
    /// File that lists hosts
    /// [default: $PLIMSOLL_HOSTS, else plimsoll/hosts.toml in the user's folder of configurations]
    #[arg(long, value_name = "FILE", help_heading = "Hosts")]
    pub hosts_file: Option<PathBuf>,
    /// Accept a host whose clock is more than a second from this machine's
    #[arg(long, help_heading = "Hosts")]
    pub allow_skew: bool,
}

#[derive(Debug, Subcommand)]
pub enum HostVerb {
    /// Add a host: look at its key, copy this program there, check the machine
    #[command(after_help = "\
Example:
  plimsoll host add db1 --ssh bench@db1.lab --class m5.metal")]
    Add {
        /// What to call it
        name: String,
        /// What ssh connects to: what follows `ssh`
        #[arg(long, value_name = "DESTINATION")]
        ssh: String,
        /// Its machine type; a campaign runs on hosts of one class
        #[arg(long, value_name = "C")]
        class: Option<String>,
        /// Folder there for the program, builds, data and trials until they are fetched
        #[arg(long, value_name = "DIR", default_value = "/var/lib/plimsoll")]
        dir: PathBuf,
    },
    /// Connect to hosts and check program, clock, disk, and whether the machine is fit
    Check {
        /// Which [default: all]
        names: Vec<String>,
    },
    /// List the hosts of the file
    List,
    /// Copy this program, and builds, to hosts
    Push {
        /// Which [default: all]
        names: Vec<String>,
        /// Builds of the cache to copy, too; `run --hosts` copies those it needs
        #[arg(long, value_name = "A,B", value_delimiter = ',')]
        builds: Vec<BuildName>,
    },
    /// Remove data, older programs and finished campaigns from hosts
    Clean {
        /// Which [default: all]
        names: Vec<String>,
        /// Remove trials that were not fetched, too
        #[arg(long)]
        all: bool,
    },
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  plimsoll submit my.toml --slurm --partition perf --constraint m5
  plimsoll submit my.toml --slurm --dry-run     # prints the scripts
  plimsoll submit --again 20261125T090000Z-my --slurm

Store, builds (--cache) and this program must be on paths that all nodes have.")]
pub struct Submit {
    /// A plan file or the name of a shipped plan
    #[arg(required_unless_present = "again")]
    pub plan: Option<String>,
    /// Submit to Slurm
    #[arg(long, required = true)]
    pub slurm: bool,
    /// Partition of the jobs [default: Slurm's]
    #[arg(long, value_name = "P")]
    pub partition: Option<String>,
    /// Features that nodes must have, so that all are of one type
    #[arg(long, value_name = "F")]
    pub constraint: Option<String>,
    /// How long a block may take, as Slurm writes times
    #[arg(long, value_name = "TIME")]
    pub time: Option<String>,
    /// Folder on each node for data directories, and for trials until they are moved to the store
    #[arg(long, value_name = "DIR", default_value = "/tmp/plimsoll-work")]
    pub spool: String,
    /// Submit what is not complete of this campaign
    #[arg(long, value_name = "CAMPAIGN", conflicts_with_all = ["plan", "seed", "screen"])]
    pub again: Option<String>,
    /// Print the scripts and submit nothing
    #[arg(long)]
    pub dry_run: bool,
    /// Seed for schedule and data [default: the plan's, else taken from the clock and recorded]
    #[arg(long, value_name = "N")]
    pub seed: Option<u64>,
    /// Run each cell once, without verdicts, whatever the plan asks for
    #[arg(long)]
    pub screen: bool,
    /// Fetch nothing: use only builds in the cache
    #[arg(long)]
    pub offline: bool,
}

#[derive(Debug, Args)]
pub struct Work {
    /// The host's folder
    #[arg(long)]
    pub dir: PathBuf,
    /// Take a build from standard input
    #[arg(long, conflicts_with_all = ["clean", "campaign"])]
    pub take_build: Option<String>,
    /// Remove what is not needed
    #[arg(long, conflicts_with = "campaign")]
    pub clean: bool,
    /// With --clean: trials that were not fetched, too
    #[arg(long, requires = "clean")]
    pub all: bool,
    /// In a job: the campaign
    #[arg(long, requires_all = ["block", "host", "job"])]
    pub campaign: Option<PathBuf>,
    /// In a job: the block
    #[arg(long)]
    pub block: Option<u32>,
    /// In a job: the node's name
    #[arg(long)]
    pub host: Option<String>,
    /// In a job: its number
    #[arg(long)]
    pub job: Option<String>,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  plimsoll init                                   # asks
  plimsoll init --builds mysql@8.0.33,mysql@9.7
  plimsoll init --basedir /opt/pg17,/opt/pg17-patched --out patch.toml
  plimsoll init --server prod=postgres://bench@db.example/empty_db")]
pub struct Init {
    /// File to write
    #[arg(long, value_name = "FILE", default_value = "plan.toml")]
    pub out: PathBuf,
    /// Builds to compare, the base first: `plimsoll build list` shows what can be fetched
    #[arg(long, value_name = "A,B", value_delimiter = ',')]
    pub builds: Vec<BuildName>,
    /// Folders of builds of your own; they are registered under the folders' names
    #[arg(long, value_name = "DIR,DIR", value_delimiter = ',')]
    pub basedir: Vec<PathBuf>,
    /// A server that runs already; its database must be empty. May be given several times
    #[arg(long, value_name = "NAME=DSN")]
    pub server: Vec<String>,
    /// A workload, or the file of your own
    #[arg(long, value_name = "NAME|FILE", default_value = "sysbench-2025")]
    pub workload: String,
    /// Sysbench: only these tests
    #[arg(long, value_name = "A,B", value_delimiter = ',')]
    pub tests: Vec<String>,
    /// How many clients
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub clients: u32,
    /// Rows per table, or per client; a workload file has its own [default: 100K]
    #[arg(long, value_name = "N")]
    pub rows: Option<String>,
    /// How long all of it may take
    #[arg(
        long,
        value_name = "D",
        default_value = "10m",
        allow_hyphen_values = true
    )]
    pub budget: String,
    /// Overwrite the file
    #[arg(long)]
    pub force: bool,
}

#[derive(Debug, Args)]
pub struct Selection {
    /// Cell that relative tables divide by [default: the plan's]
    #[arg(long, value_name = "CELL")]
    pub base: Option<String>,
    /// Show only these builds or cells
    #[arg(long, value_name = "A,B", value_delimiter = ',')]
    pub builds: Vec<String>,
}

/// The campaign that a verb is about, with or without the option that `explain` has.
#[derive(Debug, Args)]
pub struct Which {
    /// Id, start of an id, or path [default: the newest]
    campaign: Option<String>,
    #[arg(
        long = "campaign",
        value_name = "CAMPAIGN",
        conflicts_with = "campaign",
        hide = true
    )]
    named: Option<String>,
}

impl Which {
    /// As it was given; none for the newest.
    pub fn campaign(&self) -> Option<&str> {
        self.campaign.as_deref().or(self.named.as_deref())
    }
}

#[derive(Debug, Args)]
pub struct Show {
    #[command(flatten)]
    pub which: Which,
    #[command(flatten)]
    pub selection: Selection,
    /// Print one JSON value instead of tables
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, Args)]
pub struct Report {
    /// Ids, starts of ids, or paths [default: the newest]
    pub campaigns: Vec<String>,
    #[command(flatten)]
    pub selection: Selection,
    /// Output format
    #[arg(long, value_enum, default_value_t = Format::Html)]
    pub format: Format,
    /// File to write [default: report/index.html in the campaign for html, else standard output]
    #[arg(long, value_name = "FILE")]
    pub out: Option<PathBuf>,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  plimsoll post                                    # of the newest campaign
  plimsoll post dec25 --base my5651 --base my8044  # a second set of tables and figures
  plimsoll post dec25 --telling 'writes=update-index'
  plimsoll post dec25 --check draft.md             # which numbers of a text are in the data")]
pub struct Post {
    #[command(flatten)]
    pub which: Which,
    /// What ratios divide by. May be given several times: text, tables and figures use the first,
    /// each other one has tables and figures of its own
    /// [default: the oldest version, then the one from which on most is stable]
    #[arg(long, value_name = "CELL")]
    pub base: Vec<String>,
    /// Write about these builds or cells only
    #[arg(long, value_name = "A,B", value_delimiter = ',')]
    pub builds: Vec<String>,
    /// Explain a group by the costs of this test, not by the one that the rule finds
    #[arg(long, value_name = "GROUP=TEST", value_parser = telling)]
    pub telling: Vec<(String, String)>,
    /// Write all files, or print the text alone
    #[arg(long, value_enum, default_value_t = PostFormat::Files)]
    pub format: PostFormat,
    /// Folder to write [default: post in the campaign]
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
    /// Write nothing: look for each number of this text in the campaign; exit code 3 if one is not
    /// there
    #[arg(long, value_name = "FILE", conflicts_with_all = ["out", "format"])]
    pub check: Option<PathBuf>,
    /// With --check: print one JSON value
    #[arg(long, requires = "check")]
    pub json: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum PostFormat {
    /// Markdown, a page, and tables as Markdown, TSV and CSV
    Files,
    /// Markdown on standard output
    Md,
}

/// `writes=insert`
fn telling(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((group, test)) if !group.is_empty() && !test.is_empty() => {
            Ok((group.to_owned(), test.to_owned()))
        }
        _ => Err(format!(
            "\"{text}\" is not a group and its test, such as 'writes=insert'"
        )),
    }
}

#[derive(Debug, Args)]
pub struct Compare {
    /// The base: a cell, a build or the part of its name before the first `_`, a campaign, or a
    /// folder of results
    pub a: String,
    /// What to compare with the base
    pub b: String,
    /// Campaign that has both, if they are builds or cells [default: the newest]
    #[arg(long, value_name = "CAMPAIGN")]
    pub campaign: Option<String>,
    /// Output format
    #[arg(long, value_enum, default_value_t = CompareFormat::Text)]
    pub format: CompareFormat,
    /// Print one JSON value
    #[arg(long)]
    pub json: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum CompareFormat {
    /// Aligned text
    Text,
    /// A line per step
    Csv,
    /// One JSON value
    Json,
    /// Markdown, to paste into an issue
    Md,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  # Unusual steps of the newest campaign, by slices if all servers fit in memory
  plimsoll confirm
  # Every step within 45 minutes, as precise as that allows
  plimsoll confirm --all --budget 45m --reads 1% --writes 4%
  # One step, 60 s of slices over 5 starts
  plimsoll confirm --step point-query --time 60s
  # Every step, one server at a time, at most 12 times each
  plimsoll confirm --all --blocks 12")]
pub struct Confirm {
    /// Id, start of an id, or path; or a plan, which needs no campaign before
    /// [default: the newest that is neither imported nor a confirm campaign]
    #[arg(value_name = "CAMPAIGN|PLAN")]
    pub campaign: Option<String>,
    /// Confirm all steps, not only the unusual ones
    #[arg(long, conflicts_with = "step")]
    pub all: bool,
    /// Confirm these steps
    #[arg(long, value_name = "S", value_delimiter = ',')]
    pub step: Vec<String>,
    /// Confirm these cells or builds [default: all]; if the plan's base is not listed, the first
    /// one is the base
    #[arg(long, value_name = "A,B", value_delimiter = ',')]
    pub cells: Vec<String>,
    /// Run one trial at a time, each cell at most N times; stop early at a planned look (12, 18 or
    /// 24 blocks) if everything is decided
    #[arg(long, value_name = "N", conflicts_with_all = ["slices", "starts"])]
    pub blocks: Option<u32>,
    /// Run all servers at the same time, in turns of D; the second D is for steps that write
    /// [default: 5ms,50ms]
    #[arg(long, value_name = "D[,D]", num_args = 0..=1, default_missing_value = "5ms,50ms")]
    pub slices: Option<String>,
    /// Slices: end within this time, loading included; all servers are restarted on restored data
    /// until every step is known as well as --reads and --writes ask [default: the plan's, or 45m]
    #[arg(
        long,
        value_name = "D",
        allow_hyphen_values = true,
        conflicts_with_all = ["time", "starts", "blocks"]
    )]
    pub budget: Option<String>,
    /// Slices: a step that reads has been measured enough when its 95 % intervals are within this
    /// share to either side [default: the plan's, or 1%]
    #[arg(long, value_name = "P", value_parser = parse_share, conflicts_with_all = ["time", "starts", "blocks"])]
    pub reads: Option<f64>,
    /// Slices: the same for a step that writes [default: the plan's, or 4%]
    #[arg(long, value_name = "P", value_parser = parse_share, conflicts_with_all = ["time", "starts", "blocks"])]
    pub writes: Option<f64>,
    /// Slices: time per step over all starts, in place of a budget [default with --starts: 60s];
    /// blocks: length of a step [default: the plan's, at most 60s]
    #[arg(long, value_name = "D", allow_hyphen_values = true)]
    pub time: Option<String>,
    /// Slices: how many times to restart all servers on restored data, in place of a budget
    /// [default with --time: 5]
    #[arg(long, value_name = "N")]
    pub starts: Option<u32>,
    /// How often to load the data of each cell; starts or blocks take one load after the other
    /// [default: 2; with a budget up to 16, in a sixth of it, or up to 8, in a third]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=16))]
    pub loads: Option<u32>,
    /// Steps that write: let each server be written to for this long in each start or block before
    /// anything counts, so that its log has filled and its background work goes on
    #[arg(long, value_name = "D")]
    pub age: Option<String>,
    /// CPUs for clients and for servers, such as 0/1-3, or `none`; given several times, starts or
    /// blocks take one after the other [default: disjoint sets for slices of servers, else none]
    #[arg(long, value_name = "C/S")]
    pub placement: Vec<String>,
    /// Afterwards profile each candidate's server with perf, this long per step, to show which
    /// functions changed
    #[arg(long, value_name = "D", num_args = 0..=1, default_missing_value = "5s")]
    pub perf: Option<String>,
    /// Look at what the servers' sessions wait for, this often while they work
    #[arg(long, value_name = "RATE", num_args = 0..=1, default_missing_value = "10Hz")]
    pub waits: Option<String>,
    /// Of a plan: use only builds in the cache
    #[arg(long)]
    pub offline: bool,
    /// Print one JSON value
    #[arg(long)]
    pub json: bool,
    #[command(flatten)]
    pub over: OverHosts,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  # Among the cells of the newest campaign
  plimsoll bisect --good mysql@5.6.24 --bad mysql@9.7 --step qp100
  # Among these builds, with a plan of your own
  plimsoll bisect --good postgres@12 --bad postgres@18 --step point-query \\
    --plan plans/my.toml --builds postgres@12,postgres@14,postgres@16,postgres@18
  # Among commits, each built when it is probed
  plimsoll bisect --good v1.0 --bad main --step point-query \\
    --plan my.toml --command './build.sh {commit}' --commits commits.txt
  # Among the commits of a checkout, each compiled by a recipe
  plimsoll bisect --good REL_17_0 --bad REL_18_0 --step point-query \\
    --plan my.toml --recipe postgres --source ~/postgres

Exit code 0 if every step is found at one build, 4 if not.")]
pub struct Bisect {
    /// Campaign that provides the builds (its cells) or the plan
    /// [default: the newest that is neither imported nor a confirm campaign]
    pub campaign: Option<String>,
    /// The older build, which is fast: a cell, a build or a commit
    #[arg(long, value_name = "A")]
    pub good: String,
    /// The newer build, which is slow
    #[arg(long, value_name = "B")]
    pub bad: String,
    /// The step that got slower
    #[arg(long, value_name = "S")]
    pub step: String,
    /// Builds to use instead of the campaign's cells; config and workload are those of its first
    /// cell of their engine
    #[arg(
        long,
        value_name = "A,B,...",
        value_delimiter = ',',
        conflicts_with = "command"
    )]
    pub builds: Vec<BuildName>,
    /// Plan to use instead of a campaign: a file or the name of a shipped plan
    #[arg(long, value_name = "PLAN", conflicts_with = "campaign")]
    pub plan: Option<String>,
    /// Shell command that builds `{commit}`; its last line of output must be the build's folder
    #[arg(long, value_name = "COMMAND", requires = "commits")]
    pub command: Option<String>,
    /// File with one commit per line, oldest first
    #[arg(long, value_name = "FILE", requires = "command")]
    pub commits: Option<PathBuf>,
    /// Compile the commits from good to bad by the recipe of this engine, as `build make` does
    #[arg(long, value_name = "ENGINE", requires = "source",
        conflicts_with_all = ["command", "builds"])]
    pub recipe: Option<BuildName>,
    /// The git checkout that the commits are in
    #[arg(long, value_name = "DIR", requires = "recipe")]
    pub source: Option<PathBuf>,
    /// Flag set to compile them with [default: the recipe's, o2nofp]
    #[arg(long, value_name = "SET", requires = "recipe")]
    pub flags: Option<String>,
    /// Maximum blocks per probe [default: 4]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub blocks: Option<u32>,
    /// Use slices instead of blocks, and restart the servers this many times per probe
    #[arg(long, value_name = "STARTS", num_args = 0..=1, default_missing_value = "2",
        conflicts_with = "blocks",
        value_parser = clap::value_parser!(u32).range(1..))]
    pub slices: Option<u32>,
    /// Blocks: length of the step [default: the plan's, at most 60s]; slices: its maximum time over
    /// all starts [default: 60s]
    #[arg(long, value_name = "D")]
    pub time: Option<String>,
    /// Maximum number of probes [default: 4 for each time the builds can be halved]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub probes: Option<u32>,
    /// Continue the newest search of the same builds and step, with its own blocks, slices and time
    #[arg(long)]
    pub resume: bool,
    /// Fetch nothing: use only builds in the cache
    #[arg(long)]
    pub offline: bool,
    /// Print one JSON value
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, Args)]
pub struct Explain {
    /// The step to explain
    pub step: String,
    /// The base: a cell or a build [default: the campaign's]
    pub a: Option<String>,
    /// What to compare with the base [default: the cell that differs most in the step]
    pub b: Option<String>,
    /// Id, start of an id, or path [default: the newest]
    #[arg(long, value_name = "CAMPAIGN")]
    pub campaign: Option<String>,
    /// Print one JSON value
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, Args)]
pub struct History {
    #[command(flatten)]
    pub which: Which,
    /// Any metric of the report, such as server_cpu_us_per_op [default: the step's throughput]
    #[arg(long, value_name = "M")]
    pub metric: Option<String>,
    /// Show only this step [default: all]
    #[arg(long, value_name = "S")]
    pub step: Option<String>,
    /// Print one JSON value
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  # The newest campaign
  plimsoll gate --candidate mysql+candidate --max-regression 5%
  # Measure until all is decided, at most for 20 minutes
  plimsoll gate ci.toml --candidate mysql+candidate --max-regression 5% --budget 20m
  # Two candidates, reads alone, and a threshold of its own for one step
  plimsoll gate --candidate mysql+a,mysql+b --exclude 'update-*,write-*' --max-regression 3% \\
    --threshold 'scan=8%'

Exit code 0 if all steps pass, 1 for a regression, 4 without a decision.")]
pub struct Gate {
    /// Id, start of an id, or path of a campaign [default: the newest]; or a plan (a file or the
    /// name of a shipped one), which is measured first
    #[arg(value_name = "CAMPAIGN|PLAN")]
    pub campaign: Option<String>,
    /// The base: a cell or a build [default: the campaign's]
    #[arg(long, value_name = "B")]
    pub base: Option<String>,
    /// The cells or builds that must not be slower
    #[arg(long, value_name = "C,...", value_delimiter = ',', required = true)]
    pub candidate: Vec<String>,
    /// How much throughput a candidate may lose in each step: 5% or 0.05
    #[arg(long, value_name = "P", value_parser = parse_share, allow_hyphen_values = true)]
    pub max_regression: f64,
    /// Another share for some steps, such as 'update-*=8%' or writes=5%; the last that fits counts
    #[arg(long, value_name = "S=P", value_delimiter = ',', value_parser = parse_threshold)]
    pub threshold: Vec<StepThreshold>,
    /// Losses that are accepted: a file with `STEPS SHARE REASON` on each line
    #[arg(long, value_name = "FILE")]
    pub accept: Option<PathBuf>,
    /// Judge only these steps; * and ? are wildcards, reads and writes are classes
    #[arg(long, value_name = "S,...", value_delimiter = ',')]
    pub step: Vec<String>,
    /// Leave these steps out
    #[arg(long, value_name = "S,...", value_delimiter = ',')]
    pub exclude: Vec<String>,
    /// What is judged: throughput, cpu, p99, max, stalls, or another companion such as server_wpq
    #[arg(long, value_name = "M", default_value = "throughput")]
    pub metric: GateMetric,
    /// Do not pass a step that is unfit for its threshold
    #[arg(long)]
    pub strict: bool,
    /// Plans: how long to measure at most, loads included [default: the plan's, or 45m]
    #[arg(long, value_name = "D", allow_hyphen_values = true)]
    pub budget: Option<String>,
    /// Plans: use only builds in the cache
    #[arg(long)]
    pub offline: bool,
    /// Also write the answer as Markdown, for a comment on a pull request
    #[arg(long, value_name = "FILE")]
    pub comment: Option<PathBuf>,
    /// Also write the answer as JUnit XML
    #[arg(long, value_name = "FILE")]
    pub junit: Option<PathBuf>,
    /// Print one JSON value
    #[arg(long)]
    pub json: bool,
}

/// `update-*=8%`.
fn parse_threshold(text: &str) -> Result<StepThreshold, String> {
    let (steps, share) = text
        .rsplit_once('=')
        .ok_or_else(|| "write steps and their share, such as update-*=8%".to_owned())?;
    Ok(StepThreshold {
        steps: steps.trim().to_owned(),
        max_regression: parse_share(share)?,
    })
}

/// `5%` or `0.05`: a share above 0 and below 1.
fn parse_share(text: &str) -> Result<f64, String> {
    let (number, unit) = text
        .trim()
        .strip_suffix('%')
        .map_or((text.trim(), 1.0), |number| (number.trim(), 100.0));
    let share = number
        .parse::<f64>()
        .ok()
        .map(|number| number / unit)
        .filter(|share| *share > 0.0 && *share < 1.0);
    share.ok_or_else(|| "write a share between 0 and 1, or percent: 0.05 or 5%".to_owned())
}

#[derive(Debug, Args)]
pub struct Import {
    /// Files or trees of results
    #[arg(required = true, value_name = "PATH")]
    pub paths: Vec<PathBuf>,
    /// Build or folder that relative tables divide by [default: the oldest version]
    #[arg(long, value_name = "DIR")]
    pub base: Option<String>,
    /// Device that holds the databases, or part of its name, if iostat lists several
    #[arg(long, value_name = "NAME")]
    pub device: Option<String>,
    /// Print one JSON value
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, Args)]
pub struct Export {
    #[command(flatten)]
    pub which: Which,
    /// Folder for the files; created if it does not exist
    #[arg(long, value_name = "OUT")]
    pub classic: PathBuf,
    /// Only these builds or cells; `-` starts a new group with its own base
    #[arg(
        long,
        value_name = "A,B",
        value_delimiter = ',',
        allow_hyphen_values = true
    )]
    pub builds: Vec<String>,
    /// Cell that relative tables divide by [default: the campaign's]
    #[arg(long, value_name = "CELL")]
    pub base: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// One offline page with everything
    Html,
    /// Markdown, to paste into an issue
    Md,
    /// One line for each cell, step and metric
    Csv,
    /// The same, separated by tabs
    Tsv,
    /// The same as JSON
    Json,
}

#[derive(Debug, Subcommand)]
pub enum BuildVerb {
    /// Fetch builds, or register one of your own
    Add(AddBuild),
    /// Compile a build from source, here, with one compiler and the flags you choose
    Make(MakeBuild),
    /// List the builds that recipes offer and those in the cache, one per line, name first
    List {
        /// ENGINE[@VERSION][+SOURCE] of those that are wanted [default: all]
        name: Option<BuildName>,
        /// Those alone that are in the cache
        #[arg(long)]
        here: bool,
        /// Print one JSON value
        #[arg(long)]
        json: bool,
    },
    /// Show a build's version, package, compiler, flags, hash and files
    Show {
        /// ENGINE[@VERSION][+SOURCE], or ENGINE+LABEL for one of your own
        name: BuildName,
        /// Print one JSON value
        #[arg(long)]
        json: bool,
    },
    /// Remove builds from the cache; of your own builds only the record is removed
    Remove {
        /// ENGINE[@VERSION][+SOURCE], or ENGINE+LABEL for one of your own
        #[arg(required = true, value_name = "NAME")]
        names: Vec<BuildName>,
    },
    /// Remove what failed and interrupted builds and fetches left, and what is kept for the next
    /// commits; no build is touched
    Clean {
        /// Remove all sources and what ccache keeps, too; they are fetched and compiled again when
        /// they are needed
        #[arg(long)]
        all: bool,
    },
    /// Check that builds are unchanged: hash each server and ask for its version; exit code 3 if
    /// one differs
    Check {
        /// ENGINE[@VERSION][+SOURCE] or ENGINE+LABEL [default: all in the cache]
        names: Vec<BuildName>,
        /// Print one JSON value
        #[arg(long)]
        json: bool,
    },
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  plimsoll build add mysql@5.7 mysql@8.0.33 mariadb@10.11 postgres@15+debian
  plimsoll build add rocksdb@6.29.5 rocksdb@8.9.1 rocksdb@11.8.1
  # Your own build; plans call it mysql+my8035_rel_native_lto
  plimsoll build add --basedir /opt/my8035 --label my8035_rel_native_lto
  # Your own library; plans call it rocksdb+lto
  plimsoll build add --basedir ~/rocksdb/librocksdb.so --label lto

Packages are fetched by their ordinary clients (mvn, npm, apt-get), as those are configured.")]
pub struct AddBuild {
    /// ENGINE[@VERSION][+SOURCE]; part of a version means the newest one that a recipe offers
    #[arg(
        required_unless_present = "basedir",
        conflicts_with = "basedir",
        value_name = "NAME"
    )]
    pub names: Vec<BuildName>,
    /// Installation folder of your own build (from `make install` or a tarball), or RocksDB's
    /// shared library; nothing is copied
    #[arg(long, value_name = "DIR", requires = "label")]
    pub basedir: Option<PathBuf>,
    /// Name of the build in plans, after the engine: ENGINE+LABEL
    #[arg(long, value_name = "L", requires = "basedir")]
    pub label: Option<String>,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  # The source of a package; plans call it postgres@17+source-o3
  plimsoll build make postgres@17 --flags o3
  # A source of your own; plans call it postgres+patched
  plimsoll build make postgres --source ~/postgres --label patched
  # A commit; plans call it postgres+REL_17_2-o2
  plimsoll build make postgres --source ~/postgres@REL_17_2 --flags o2
  # The library and db_bench; plans call it rocksdb+v9_7_3-o2
  plimsoll build make rocksdb --source ~/rocksdb@v9.7.3 --flags o2

Ctrl-C stops it; the same command goes on where it ended. A build that is in the cache and would
come out the same is not made again.")]
pub struct MakeBuild {
    /// ENGINE[@VERSION]
    pub name: BuildName,
    /// Flag set: o2, o3, o2nofp, o2nofp_links, o3nofp, rel, rel_o2nofp, withdbg, native_lto, profile
    /// or one of your own [default: the recipe's, o2nofp]
    #[arg(long, value_name = "SET", allow_hyphen_values = true)]
    pub flags: Option<String>,
    /// Your own source: a folder, a tarball, or a git checkout and a revision
    /// [default: the package's]
    #[arg(long, value_name = "DIR[@REV]")]
    pub source: Option<String>,
    /// Name of your own source's build in plans, after the engine: ENGINE+LABEL
    /// [default: the folder or revision, and the flag set]
    #[arg(long, value_name = "L", requires = "source")]
    pub label: Option<String>,
    /// How many commands run at the same time [default: one for each CPU]
    #[arg(long, value_name = "N")]
    pub jobs: Option<std::num::NonZero<usize>>,
}

#[derive(Debug, Subcommand)]
pub enum PlanVerb {
    /// List the shipped plans, one per line, name first
    List,
    /// Print the text of a plan, to be changed
    Show {
        /// A plan file or the name of a shipped plan
        plan: String,
    },
    /// Check a plan's names, sizes and configs
    Check {
        /// A plan file or the name of a shipped plan
        plan: String,
        /// Print one JSON value
        #[arg(long)]
        json: bool,
    },
    /// Estimate what a plan takes: rows, bytes, time, connections
    Explain {
        /// A plan file or the name of a shipped plan
        plan: String,
        /// Print one JSON value
        #[arg(long)]
        json: bool,
        /// Say what it takes over so many hosts, too
        #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
        hosts: Option<u32>,
    },
}

#[derive(Debug, Subcommand)]
pub enum WorkloadVerb {
    /// List the workloads, one per line, name first
    List,
    /// Show the steps of a workload, or the tables, statements and mixes of a workload file
    Show {
        /// Its name, or a workload file
        name: String,
    },
    /// Check a workload file's tables, statements, parameters and mixes
    Check {
        /// The file
        file: String,
    },
}

#[derive(Debug, Subcommand)]
pub enum MachineVerb {
    /// Check what makes benchmark results noisy; each check is ok, warn, fail or unavailable
    Check {
        /// Print one JSON value
        #[arg(long)]
        json: bool,
    },
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    #[test]
    fn shares_are_percent_or_fractions() {
        for (text, share) in [("5%", 0.05), ("0.05", 0.05), (" 2.5 %", 0.025)] {
            assert_eq!(super::parse_share(text), Ok(share));
        }
        for text in ["5", "0", "-1%", "x", "", "%", "nan", "100%"] {
            assert!(super::parse_share(text).is_err(), "{text}");
        }
    }

    #[test]
    fn the_table_is_consistent() {
        super::Arguments::command().debug_assert();
    }
}
