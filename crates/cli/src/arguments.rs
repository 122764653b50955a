//! The argument table.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};
use plimsoll_core::name::BuildName;

/// Hunts performance regressions in databases.
///
/// Loads engine builds with the Insert Benchmark, over builds x configs, and shows throughput,
/// latency, CPU and I/O of each step beside a base.
#[derive(Debug, Parser)]
#[command(
    name = "plimsoll",
    version,
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
        default_value = "plimsoll-runs"
    )]
    pub store: PathBuf,
    /// Folder for data directories; empty, new or ours
    /// [default: plimsoll/data in the user's cache folder, for root in /var/cache]
    #[arg(long, global = true, value_name = "DIR")]
    pub data: Option<PathBuf>,
    /// Folder for builds of engines
    /// [default: plimsoll/builds in the user's cache folder, for root in /var/cache]
    #[arg(long, global = true, value_name = "DIR")]
    pub cache: Option<PathBuf>,
}

#[derive(Debug, Subcommand)]
pub enum Verb {
    /// Run every cell of a plan once (or `blocks` times) and write the report
    Run(Run),
    /// Finish a broken campaign: what is complete stays, the broken trial runs again
    Resume {
        /// Id, beginning of an id, or path [default: the newest]
        campaign: Option<String>,
        /// Do not fetch builds that were missing
        #[arg(long)]
        offline: bool,
    },
    /// Print the tables of a campaign
    Show(Show),
    /// Write a report
    Report(Report),
    /// Set two builds, cells, campaigns or folders of results side by side
    Compare(Compare),
    /// Why does a step differ? Per-operation numbers by how far they moved, and what that usually
    /// means
    Explain(Explain),
    /// Releases and stored campaigns as a series: one step, or gradual?
    History(History),
    /// Pass or fail for continuous integration: exit code 0 pass, 1 regression, 4 no decision
    Gate(Gate),
    /// Measure what is unusual in a campaign again: all candidates interleaved, on copies of the
    /// same data, the base twice among them
    Confirm(Confirm),
    /// Which build made a step slower? Probes between a good and a bad build, all three
    /// interleaved, until one is 95 % likely
    Bisect(Bisect),
    /// Bring results of other tools into the store
    Import(Import),
    /// Write the files of the original tools
    Export(Export),
    /// Builds of engines: fetched from package registries or your own; nothing is installed into
    /// the system
    Build {
        #[command(subcommand)]
        verb: BuildVerb,
    },
    /// Check or explain a plan; needs no build
    Plan {
        #[command(subcommand)]
        verb: PlanVerb,
    },
    /// The benchmarks this version knows
    Workload {
        #[command(subcommand)]
        verb: WorkloadVerb,
    },
    /// Is this machine fit to measure on?
    Machine {
        #[command(subcommand)]
        verb: MachineVerb,
    },
    /// Internal: the body of one trial
    #[command(hide = true)]
    Trial {
        /// Where an earlier image of the process has left what it was to do
        #[arg(long, hide = true)]
        continued: Option<u32>,
    },
    /// Internal: runs a command and ends all that is left of it
    #[command(hide = true)]
    Guard {
        /// Who must live
        #[arg(long)]
        parent: u32,
        /// The command
        #[arg(last = true)]
        command: Vec<OsString>,
    },
    /// Internal: loads a library of RocksDB and tries it in an empty folder
    #[command(hide = true)]
    ProbeRocksdb {
        /// The library
        library: PathBuf,
        /// The folder
        folder: PathBuf,
        /// A folder with libraries that it needs and the machine may lack
        companions: Option<PathBuf>,
    },
}

#[derive(Debug, Args)]
pub struct Run {
    /// A plan file or the name of a shipped plan
    /// [default: quick, about 90 s on the embedded SQLite]
    pub plan: Option<String>,
    /// Seed of schedule and data [default: the plan's, else one from the clock, which is recorded]
    #[arg(long, value_name = "N")]
    pub seed: Option<u64>,
    /// Fetch nothing: use only builds that are here
    #[arg(long)]
    pub offline: bool,
    /// Finish the newest campaign of this plan instead of starting one
    #[arg(long, conflicts_with = "seed")]
    pub resume: bool,
}

#[derive(Debug, Args)]
pub struct Selection {
    /// The cell that relative tables divide by [default: the plan's]
    #[arg(long, value_name = "CELL")]
    pub base: Option<String>,
    /// Show only these builds or cells
    #[arg(long, value_name = "A,B", value_delimiter = ',')]
    pub builds: Vec<String>,
}

#[derive(Debug, Args)]
pub struct Show {
    /// Id, beginning of an id, or path [default: the newest]
    pub campaign: Option<String>,
    #[command(flatten)]
    pub selection: Selection,
    /// Print one JSON value instead of tables
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, Args)]
pub struct Report {
    /// Ids, beginnings of ids, or paths [default: the newest]
    pub campaigns: Vec<String>,
    #[command(flatten)]
    pub selection: Selection,
    /// What to write
    #[arg(long, value_enum, default_value_t = Format::Html)]
    pub format: Format,
    /// The file to write [default: html: report/index.html in the campaign; else standard output]
    #[arg(long, value_name = "FILE")]
    pub out: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub struct Compare {
    /// The base: a cell, a build or the text before its first `_`, a campaign, or a folder of
    /// results
    pub a: String,
    /// What is held against it
    pub b: String,
    /// The campaign that holds both, when they are builds or cells [default: the newest]
    #[arg(long, value_name = "CAMPAIGN")]
    pub campaign: Option<String>,
    /// How to print it
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
  plimsoll confirm                                   # what is unusual in the newest campaign; \
                       slices where the servers fit in memory
  plimsoll confirm --step point-query --time 60s     # one step; at most a minute of turns, over \
                       all starts
  plimsoll confirm --all --blocks 12                 # everything, one server after the other, 12 \
                       times each")]
pub struct Confirm {
    /// Id, beginning of an id, or path
    /// [default: the newest that is neither imported nor a confirm campaign]
    pub campaign: Option<String>,
    /// All steps, not only those with something unusual
    #[arg(long, conflicts_with = "step")]
    pub all: bool,
    /// These steps
    #[arg(long, value_name = "S", value_delimiter = ',')]
    pub step: Vec<String>,
    /// These cells or builds [default: all]; where the plan's base is not among them, the first is
    /// the base
    #[arg(long, value_name = "A,B", value_delimiter = ',')]
    pub cells: Vec<String>,
    /// One trial after the other, every cell at most N times: it ends at a planned look (6, 12, 18,
    /// 24) when all is decided
    #[arg(long, value_name = "N", conflicts_with_all = ["slices", "starts"])]
    pub blocks: Option<u32>,
    /// All servers up at once, in turns of D; of steps that write, of the second D
    /// [default: 20ms,50ms]
    #[arg(long, value_name = "D[,D]", num_args = 0..=1, default_missing_value = "20ms,50ms")]
    pub slices: Option<String>,
    /// Slices: the longest time of a step over all starts [default: 60s]; blocks: the length of a
    /// step [default: the plan's, at most 60s]
    #[arg(long, value_name = "D")]
    pub time: Option<String>,
    /// Slices: how often all servers are started anew on restored data [default: 5]
    #[arg(long, value_name = "N")]
    pub starts: Option<u32>,
    /// CPUs of clients and of servers, as in 0/1-3, or `none`
    /// [default: slices of servers: disjoint sets; else none]
    #[arg(long, value_name = "C/S")]
    pub placement: Option<String>,
    /// Afterwards profile each candidate's server with perf, for so long in each step: which
    /// functions moved
    #[arg(long, value_name = "D", num_args = 0..=1, default_missing_value = "5s")]
    pub perf: Option<String>,
    /// Print one JSON value
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  plimsoll bisect --good mysql@5.6.24 --bad mysql@9.7.4 --step qp100     # among the cells of the \
                       newest campaign
  plimsoll bisect --good postgres@12 --bad postgres@18 --step point-query --plan plans/my.toml \
                       --builds postgres@12,postgres@14,postgres@16,postgres@18
  plimsoll bisect --good v1.0 --bad main --step point-query --plan my.toml --command './build.sh \
                       {commit}' --commits commits.txt

Exit code 0: found. 4: not found.")]
pub struct Bisect {
    /// The campaign whose cells are the builds, or whose plan is taken
    /// [default: the newest that is neither imported nor a confirm campaign]
    pub campaign: Option<String>,
    /// The older build, which is fast: a cell, a build, a commit
    #[arg(long, value_name = "A")]
    pub good: String,
    /// The newer build, which is slow
    #[arg(long, value_name = "B")]
    pub bad: String,
    /// The step
    #[arg(long, value_name = "S")]
    pub step: String,
    /// Builds in place of the campaign's cells, under the config and with the workload of its first
    /// cell of their engine
    #[arg(
        long,
        value_name = "A,B,...",
        value_delimiter = ',',
        conflicts_with = "command"
    )]
    pub builds: Vec<BuildName>,
    /// A plan in place of a campaign: a file, or the name of a shipped plan
    #[arg(long, value_name = "PLAN", conflicts_with = "campaign")]
    pub plan: Option<String>,
    /// A shell command that makes the build of `{commit}`; the last line that it prints is the
    /// build's folder
    #[arg(long, value_name = "COMMAND", requires = "commits")]
    pub command: Option<String>,
    /// A file with the commits, one a line, oldest first
    #[arg(long, value_name = "FILE", requires = "command")]
    pub commits: Option<PathBuf>,
    /// The most blocks of a probe [default: 4]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub blocks: Option<u32>,
    /// By slices in place of blocks: all servers up at once, started anew so often for a probe
    #[arg(long, value_name = "STARTS", num_args = 0..=1, default_missing_value = "2", conflicts_with = "blocks",
        value_parser = clap::value_parser!(u32).range(1..))]
    pub slices: Option<u32>,
    /// The length of the step in a block [default: the plan's, at most 60s]; by slices its longest
    /// time over all starts [default: 60s]
    #[arg(long, value_name = "D")]
    pub time: Option<String>,
    /// The most probes [default: 4 for each halving of the builds]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub probes: Option<u32>,
    /// Go on with the newest search of the same builds and step, with the blocks, slices and time
    /// that it began with
    #[arg(long)]
    pub resume: bool,
    /// Fetch nothing: use only builds that are here
    #[arg(long)]
    pub offline: bool,
    /// Print one JSON value
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, Args)]
pub struct Explain {
    /// The step
    pub step: String,
    /// The base: a cell or a build [default: the campaign's]
    pub a: Option<String>,
    /// What is held against it [default: the cell that differs most in the step]
    pub b: Option<String>,
    /// Id, beginning of an id, or path [default: the newest]
    #[arg(long, value_name = "CAMPAIGN")]
    pub campaign: Option<String>,
    /// Print one JSON value
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, Args)]
pub struct History {
    /// Id, beginning of an id, or path [default: the newest]
    pub campaign: Option<String>,
    /// A metric of the reports, such as server_cpu_us_per_op [default: the step's throughput]
    #[arg(long, value_name = "M")]
    pub metric: Option<String>,
    /// A step [default: all]
    #[arg(long, value_name = "S")]
    pub step: Option<String>,
    /// Print one JSON value
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, Args)]
pub struct Gate {
    /// Id, beginning of an id, or path [default: the newest]
    pub campaign: Option<String>,
    /// The base: a cell or a build [default: the campaign's]
    #[arg(long, value_name = "B")]
    pub base: Option<String>,
    /// The cell or build that must not be slower
    #[arg(long, value_name = "C")]
    pub candidate: String,
    /// How much throughput may be lost: 5%, or 0.05
    #[arg(long, value_name = "P", value_parser = parse_share, allow_hyphen_values = true)]
    pub max_regression: f64,
    /// Write the answer as JUnit XML, too
    #[arg(long, value_name = "FILE")]
    pub junit: Option<PathBuf>,
    /// Print one JSON value
    #[arg(long)]
    pub json: bool,
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
    /// The build or folder that relative tables divide by [default: the oldest version]
    #[arg(long, value_name = "DIR")]
    pub base: Option<String>,
    /// The device that holds the databases, or a part of its name, where iostat shows several
    #[arg(long, value_name = "NAME")]
    pub device: Option<String>,
    /// Print one JSON value
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, Args)]
pub struct Export {
    /// Id, beginning of an id, or path [default: the newest]
    pub campaign: Option<String>,
    /// The folder for the originals' files; made when it is not there
    #[arg(long, value_name = "OUT")]
    pub classic: PathBuf,
    /// Only these builds or cells; `-` between them begins a new group with its own base
    #[arg(
        long,
        value_name = "A,B",
        value_delimiter = ',',
        allow_hyphen_values = true
    )]
    pub builds: Vec<String>,
    /// The cell that relative tables divide by [default: the campaign's]
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
    /// Fetch builds, or make one of your own known
    Add(AddBuild),
    /// What recipes offer and what is here, one a line, name first
    List {
        /// Print one JSON value
        #[arg(long)]
        json: bool,
    },
    /// What is known of a build: version, package, compiler, flags, hash, files
    Show {
        /// ENGINE[@VERSION][+SOURCE], or ENGINE+LABEL for one of your own
        name: BuildName,
        /// Print one JSON value
        #[arg(long)]
        json: bool,
    },
    /// Remove builds from the cache; of your own only what is remembered of them
    Remove {
        /// ENGINE[@VERSION][+SOURCE], or ENGINE+LABEL for one of your own
        #[arg(required = true, value_name = "NAME")]
        names: Vec<BuildName>,
    },
    /// Are builds as they were? Hashes the servers and asks them for their versions; exit code 3 if
    /// not
    Check {
        /// ENGINE[@VERSION][+SOURCE] or ENGINE+LABEL [default: all that are here]
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
  plimsoll build add --basedir /opt/my8035 --label my8035_rel_native_lto    # plans call it \
                       mysql+my8035_rel_native_lto
  plimsoll build add --basedir ~/rocksdb/librocksdb.so --label lto          # plans call it \
                       rocksdb+lto

Packages are fetched by their ordinary clients (mvn, npm, apt-get), which use their own \
                       configuration.")]
pub struct AddBuild {
    /// ENGINE[@VERSION][+SOURCE]; a part of a version means the newest that a recipe offers
    #[arg(
        required_unless_present = "basedir",
        conflicts_with = "basedir",
        value_name = "NAME"
    )]
    pub names: Vec<BuildName>,
    /// The installation folder of a build of your own (what `make install` or a tarball filled), or
    /// RocksDB's shared library; nothing is copied
    #[arg(long, value_name = "DIR", requires = "label")]
    pub basedir: Option<PathBuf>,
    /// What plans call it, after the engine: ENGINE+LABEL
    #[arg(long, value_name = "L", requires = "basedir")]
    pub label: Option<String>,
}

#[derive(Debug, Subcommand)]
pub enum PlanVerb {
    /// Check a plan: names, sizes, configs
    Check {
        /// A plan file or the name of a shipped plan
        plan: String,
        /// Print one JSON value
        #[arg(long)]
        json: bool,
    },
    /// What a plan will take: rows, bytes, time, connections
    Explain {
        /// A plan file or the name of a shipped plan
        plan: String,
        /// Print one JSON value
        #[arg(long)]
        json: bool,
    },
}

#[derive(Debug, Subcommand)]
pub enum WorkloadVerb {
    /// The workloads, one a line, name first
    List,
    /// The steps of a workload; of a workload file its tables, statements and mixes
    Show {
        /// Its name, or a workload file
        name: String,
    },
    /// Check a workload file: tables, statements, parameters, mixes
    Check {
        /// The file
        file: String,
    },
}

#[derive(Debug, Subcommand)]
pub enum MachineVerb {
    /// Readiness: ok, warn, fail, unavailable(reason)
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
