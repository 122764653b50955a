//! Counts on real servers how often verdicts are wrong: `make error-rates ENGINE=postgres KIND=aa
//! N=20`.
//!
//! Each campaign of kind `aa` has 8 tests and three cells of one build; what is called different is
//! a false call. The other kinds have two cells, the second with something planted
//! (tests/planted/plant.c), and the tests that it is about; what is not called is a miss.
//!
//! Campaigns that were counted are kept in `target/error-rates/ENGINE/KIND.jsonl`: run again, it
//! goes on to N.

use std::collections::BTreeMap;
use std::error::Error;
use std::fs::{self, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

use serde::{Deserialize, Serialize};
use serde_json::Value;

type Result<T> = std::result::Result<T, Box<dyn Error>>;

const READS: &[&str] = &[
    "point-query",
    "hot-points",
    "points-covered-si",
    "range-covered-pk",
    "read-only-count",
];
const WRITES: &[&str] = &["update-index", "update-nonindex", "insert"];
const ONE_OF_EACH: &[&str] = &["point-query", "update-index"];

/// What is planted in the second cell, and the tests that it is looked for in.
struct Kind {
    name: &'static str,
    env: &'static str,
    tests: &'static [&'static [&'static str]],
}

impl Kind {
    /// Nothing is planted.
    fn is_aa(&self) -> bool {
        self.env.is_empty()
    }

    fn tests(&self) -> Vec<&'static str> {
        self.tests.concat()
    }
}

const KINDS: [Kind; 8] = [
    Kind {
        name: "aa",
        env: "",
        tests: &[READS, WRITES],
    },
    Kind {
        name: "cpu1",
        env: "PLANT_SHARE = \"0.01\"",
        tests: &[&["point-query"]],
    },
    Kind {
        name: "cpu3",
        env: "PLANT_SHARE = \"0.03\"",
        tests: &[READS],
    },
    Kind {
        name: "cpu5",
        env: "PLANT_SHARE = \"0.05\"",
        tests: &[READS],
    },
    Kind {
        name: "cpu8",
        env: "PLANT_SHARE = \"0.08\"",
        tests: &[WRITES],
    },
    Kind {
        name: "cpu10",
        env: "PLANT_SHARE = \"0.10\"",
        tests: &[READS, WRITES],
    },
    Kind {
        name: "stall",
        env: "PLANT_STALL_EVERY = \"4000\", PLANT_STALL_MS = \"100\"",
        tests: &[ONE_OF_EACH],
    },
    Kind {
        name: "io",
        env: "PLANT_WRITE_BYTES = \"4096\"",
        tests: &[ONE_OF_EACH],
    },
];

/// What a campaign said.
#[derive(Default, Deserialize, Serialize)]
struct Said {
    /// Steps of which an equal cell was called different, and of which it was called slower.
    false_calls: Vec<String>,
    false_regressions: Vec<String>,
    /// By step: what the planted cell was called, and the middle of its interval.
    planted: BTreeMap<String, (String, Option<f64>)>,
    /// Companions of the planted cell that were called different.
    companions: Vec<String>,
    /// Intervals of equal cells that hold 1, and all of them.
    held: usize,
    intervals: usize,
    half_widths: Vec<f64>,
}

fn main() -> Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [program, engine, kind, count, rest @ ..] = arguments.as_slice() else {
        return Err("usage: error_rates PROGRAM ENGINE KIND COUNT [confirm's options]".into());
    };
    let kind = KINDS
        .iter()
        .find(|known| known.name == kind)
        .ok_or("the kinds are aa, cpu1, cpu3, cpu5, cpu8, cpu10, stall and io")?;
    let folder = std::env::current_dir()?
        .join("target/error-rates")
        .join(engine);
    fs::create_dir_all(&folder)?;
    let plan = folder.join(format!("{}.toml", kind.name));
    let library = plant(&folder)?;
    let counted = folder.join(format!("{}.jsonl", kind.name));
    let mut all: Vec<Said> = match fs::read_to_string(&counted) {
        Ok(lines) => lines
            .lines()
            .map(serde_json::from_str)
            .collect::<std::result::Result<_, _>>()?,
        Err(_) => Vec::new(),
    };
    let mut keep = OpenOptions::new()
        .create(true)
        .append(true)
        .open(&counted)?;
    for number in all.len() + 1..=count.parse::<usize>()? {
        let began = Instant::now();
        fs::write(&plan, plan_text(engine, kind, number, &library))?;
        let printed = campaign(Path::new(program), &folder, &plan, rest)?;
        // All of what it said, to look for causes.
        fs::write(
            folder.join(format!("{}-{number}.json", kind.name)),
            &printed,
        )?;
        let said = said(&serde_json::from_slice(&printed)?, kind.is_aa());
        println!(
            "{engine} {} {number}: {:.0} s, false {:?}, planted {:?}, companions {:?}, held {} of {}",
            kind.name,
            began.elapsed().as_secs_f64(),
            said.false_calls,
            said.planted,
            said.companions,
            said.held,
            said.intervals
        );
        writeln!(keep, "{}", serde_json::to_string(&said)?)?;
        all.push(said);
    }
    report(engine, kind, &all);
    Ok(())
}

/// The library that plants, built by the system's compiler.
fn plant(folder: &Path) -> Result<PathBuf> {
    let library = folder.join("plant.so");
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/planted/plant.c");
    let built = Command::new("cc")
        .args(["-O2", "-shared", "-fPIC", "-o"])
        .args([&library, &source])
        .status()?;
    match built.success() {
        true => Ok(library),
        false => Err("cc could not build tests/planted/plant.c".into()),
    }
}

fn plan_text(engine: &str, kind: &Kind, seed: usize, library: &Path) -> String {
    // Redo logs of 2 GiB would take most of a short budget to copy.
    let (build, config, settings) = match engine {
        "mysql" => (
            "mysql@8.0.33",
            "cz12a",
            "innodb_redo_log_capacity = \"256M\"",
        ),
        "mariadb" => (
            "mariadb@10.11.19",
            "cz12a",
            "innodb_log_file_size = \"256M\"",
        ),
        _ => ("postgres@18.6", "cx10b", ""),
    };
    let from = format!("from = \"{config}\"\nsettings = {{ {settings} }}\n");
    let (cells, others) = if kind.is_aa() {
        let twins = ["second", "third"]
            .map(|name| format!("[config.{name}]\n{from}"))
            .concat();
        ("\"base\", \"second\", \"third\"", twins)
    } else {
        let planted = format!(
            "[config.planted]\n{from}env = {{ LD_PRELOAD = \"{}\", {} }}\n",
            library.display(),
            kind.env
        );
        ("\"base\", \"planted\"", planted)
    };
    format!(
        "name = \"error-rates-{}\"\nworkload = \"sysbench-2025\"\ncomparable = false\n\
        seed = {seed}\nbuilds = [\"{build}\"]\nconfigs = [{cells}]\n\
        verify = \"end\"\nwait = \"1s\"\ntests = {:?}\n\
        [config.base]\n{from}{others}\
        [sizes]\nclients = 1\ntables = 1\nrows = \"100K\"\nduration = \"1s\"\nwarm_up = \"200ms\"\n",
        kind.name,
        kind.tests()
    )
}

fn campaign(program: &Path, folder: &Path, plan: &Path, options: &[String]) -> Result<Vec<u8>> {
    let (store, data) = (folder.join("store"), folder.join("data"));
    let _ = fs::remove_dir_all(&store);
    let output = Command::new(program)
        .arg("confirm")
        .arg(plan)
        .args(["--json", "--offline"])
        .args(options)
        .arg("--store")
        .arg(&store)
        .arg("--data")
        .arg(&data)
        .stderr(Stdio::inherit())
        .output()?;
    Ok(output.stdout)
}

/// `is_aa` if nothing is planted in the other cells.
fn said(campaign: &Value, is_aa: bool) -> Said {
    let mut said = Said::default();
    let text = |value: &Value, key: &str| value[key].as_str().unwrap_or_default().to_owned();
    let mut hold = |estimate: &Value| {
        if let (Some(low), Some(high)) = (estimate["low"].as_f64(), estimate["high"].as_f64()) {
            said.intervals += 1;
            said.held += usize::from(low <= 1.0 && 1.0 <= high);
            said.half_widths.push(50.0 * (high / low).ln());
        }
    };
    for comparison in campaign["comparisons"].as_array().into_iter().flatten() {
        let verdict = text(comparison, "verdict");
        let is_called = ["regression", "improvement"].contains(&verdict.as_str());
        let step = text(comparison, "step");
        if comparison["is_throughput"] == true {
            if is_aa {
                hold(&comparison["estimate"]);
                if is_called {
                    said.false_calls.push(step.clone());
                }
                if verdict == "regression" {
                    said.false_regressions.push(step);
                }
            } else {
                let ratio = comparison["estimate"]["ratio"].as_f64();
                said.planted.insert(step, (verdict, ratio));
            }
        } else if is_called && !is_aa {
            said.companions
                .push(format!("{step} {}", text(comparison, "metric")));
        }
    }
    said
}

/// A table row: counts with Wilson's 95 % interval.
fn report(engine: &str, kind: &Kind, all: &[Said]) {
    let share = |what: &str, count: usize, of: usize| {
        let (low, high) = wilson(count, of);
        if of == 0 {
            return;
        }
        println!(
            "| {engine} {} | {what} | {count} of {of} | {low:.0} to {high:.0} % |",
            kind.name
        );
    };
    let campaigns = |is_so: &dyn Fn(&Said) -> bool| all.iter().filter(|said| is_so(said)).count();
    if kind.is_aa() {
        share(
            "campaigns with a false regression",
            campaigns(&|said| !said.false_regressions.is_empty()),
            all.len(),
        );
        share(
            "campaigns with any false call",
            campaigns(&|said| !said.false_calls.is_empty()),
            all.len(),
        );
    }
    let sum = |of: fn(&Said) -> usize| all.iter().map(of).sum::<usize>();
    share(
        "95 % intervals that hold",
        sum(|said| said.held),
        sum(|said| said.intervals),
    );
    let steps: Vec<&String> = all.iter().flat_map(|said| said.planted.keys()).collect();
    let mut steps: Vec<&String> = steps.into_iter().collect();
    steps.sort();
    steps.dedup();
    for step in steps {
        let of_step: Vec<&(String, Option<f64>)> = all
            .iter()
            .filter_map(|said| said.planted.get(step))
            .collect();
        let called = of_step
            .iter()
            .filter(|(verdict, _)| verdict == "regression")
            .count();
        let logs: Vec<f64> = of_step
            .iter()
            .filter_map(|(_, ratio)| ratio.map(f64::ln))
            .collect();
        let mean = 100.0 * (logs.iter().sum::<f64>() / logs.len() as f64).exp_m1();
        share(
            &format!("{step} called a regression, mean {mean:+.1} %"),
            called,
            of_step.len(),
        );
    }
    let mut widths: Vec<f64> = all
        .iter()
        .flat_map(|said| said.half_widths.clone())
        .collect();
    widths.sort_by(f64::total_cmp);
    if let Some(median) = widths.get(widths.len() / 2) {
        println!("median half-width of their 95 % intervals: {median:.2} %");
    }
}

/// Wilson's interval of a share, in percent.
fn wilson(count: usize, of: usize) -> (f64, f64) {
    const Z: f64 = 1.96;
    let (n, p) = (of.max(1) as f64, count as f64 / of.max(1) as f64);
    let centre = p + Z * Z / (2.0 * n);
    let reach = Z * (p * (1.0 - p) / n + Z * Z / (4.0 * n * n)).sqrt();
    let below = 1.0 + Z * Z / n;
    (
        100.0 * (centre - reach).max(0.0) / below,
        100.0 * (centre + reach) / below,
    )
}
