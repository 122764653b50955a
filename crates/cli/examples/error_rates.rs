//! Counts on real servers how often verdicts are wrong: `make error-rates ENGINE=postgres KIND=aa
//! N=20`.
//!
//! Each campaign of kind `aa` has 8 tests and three cells of one build; what is called different is
//! a false call. The other kinds have two cells, the second with something planted
//! (tests/planted/plant.c), and the tests that it is about; what is not called is a miss. Of kind
//! `truth` a statement of each cell takes a time that is known, on the CPU, drawn by the number of
//! the campaign: intervals are held against what they have to say (`make truth`). Of kind `gate`
//! `plimsoll gate` answers with the thresholds of the guide: each red answer is wrong, because both
//! cells are the same build.
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

/// From one answer of the base to the next in campaigns of kind `truth`, and by how much more, in
/// microseconds, the others take.
const LENGTH_US: u64 = 2_000;
const LONGER_US: [u64; 8] = [0, 20, 40, 60, 100, 200, 400, 1_000];
/// Of those whose server stops now and then: the length of a stop, and after how many statements.
/// Often enough that a short campaign has many of them.
const STALL_MS: u64 = 2;
const STALL_EVERY: u64 = 20;
const CPU: &str = "server_cpu_us_per_op";
const TRUTH: &[&str] = &["point-query", "hot-points", "range-covered-pk"];

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

    fn is_truth(&self) -> bool {
        self.name == "truth"
    }

    fn is_gate(&self) -> bool {
        self.name == "gate"
    }

    /// The cells of a campaign, the base first.
    fn cells(&self, number: usize) -> Vec<Cell> {
        let cell = |name: &str, env: &str| Cell {
            name: name.to_owned(),
            env: env.to_owned(),
            mean_us: 0.0,
            without_stalls_us: 0.0,
        };
        if self.is_truth() {
            return truth_cells(number as u64);
        }
        match self.is_aa() {
            true if self.is_gate() => vec![cell("base", ""), cell("second", "")],
            true => ["base", "second", "third"]
                .map(|name| cell(name, ""))
                .into(),
            false => vec![cell("base", ""), cell("planted", self.env)],
        }
    }

    fn tests(&self) -> Vec<&'static str> {
        self.tests.concat()
    }
}

const KINDS: [Kind; 10] = [
    Kind {
        name: "truth",
        env: "PLANT_LENGTH_US",
        tests: &[TRUTH],
    },
    Kind {
        name: "aa",
        env: "",
        tests: &[READS, WRITES],
    },
    Kind {
        name: "gate",
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

/// A config of the campaign's build.
struct Cell {
    name: String,
    /// What is set in its server's environment, as a plan spells it.
    env: String,
    /// From one answer to the next in the mean, and of that what is not a stall, in microseconds, if
    /// that is known.
    mean_us: f64,
    without_stalls_us: f64,
}

/// A base and four cells whose lengths of a statement are drawn by the number of the campaign; one
/// of them stalls.
fn truth_cells(number: u64) -> Vec<Cell> {
    let length = |name: String, length_us: u64| Cell {
        name,
        env: format!("PLANT_LENGTH_US = \"{length_us}\""),
        mean_us: length_us as f64,
        without_stalls_us: length_us as f64,
    };
    let mut cells = vec![length("base".to_owned(), LENGTH_US)];
    for index in 0..4 {
        let drawn = (number * 5 + index * 3 + number / 8) % LONGER_US.len() as u64;
        cells.push(length(
            format!("longer{index}"),
            LENGTH_US + LONGER_US[drawn as usize],
        ));
    }
    let stalling = &mut cells[1 + (number % 4) as usize];
    stalling.env +=
        &format!(", PLANT_STALL_EVERY = \"{STALL_EVERY}\", PLANT_STALL_MS = \"{STALL_MS}\"");
    stalling.mean_us += STALL_MS as f64 * 1e3 / STALL_EVERY as f64;
    cells
}

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
    /// Of intervals about what is known: by how much the middle is off, in percent, and whether the
    /// interval holds the truth.
    #[serde(default)]
    truths: Vec<Truth>,
    /// What a gate answered, and so each of its steps.
    #[serde(default)]
    gate: Option<(String, BTreeMap<String, String>)>,
}

#[derive(Clone, Deserialize, Serialize)]
struct Truth {
    metric: String,
    what: String,
    truth: f64,
    off_percent: f64,
    half_width_percent: f64,
    holds: bool,
}

fn main() -> Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [program, engine, kind, count, rest @ ..] = arguments.as_slice() else {
        return Err("usage: error_rates PROGRAM ENGINE KIND COUNT [confirm's options]".into());
    };
    let kind = KINDS
        .iter()
        .find(|known| known.name == kind)
        .ok_or("the kinds are truth, aa, gate, cpu1, cpu3, cpu5, cpu8, cpu10, stall and io")?;
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
        let asked = match kind.is_gate() {
            true => gate_of(engine),
            false => vec!["confirm".to_owned()],
        };
        let printed = campaign(Path::new(program), &folder, &plan, &asked, rest)?;
        // All of what it said, to look for causes.
        fs::write(
            folder.join(format!("{}-{number}.json", kind.name)),
            &printed,
        )?;
        let printed = serde_json::from_slice(&printed)?;
        let mut said = match kind.is_gate() {
            true => gate_said(&printed)?,
            false => said(&printed, kind.is_aa()),
        };
        if kind.is_truth() {
            let shown = shown(Path::new(program), &folder)?;
            said.truths = truths(&printed, &shown, &kind.cells(number));
        }
        println!(
            "{engine} {} {number}: {:.0} s, false {:?}, planted {:?}, companions {:?}, held {} of {}, \
             gate {:?}",
            kind.name,
            began.elapsed().as_secs_f64(),
            said.false_calls,
            said.planted,
            said.companions,
            said.held,
            said.intervals,
            said.gate
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

/// A gate with the thresholds of the guide, whose candidate is the base's equal.
fn gate_of(engine: &str) -> Vec<String> {
    let candidate = format!("{}.second", build(engine));
    let arguments = ["gate", "--candidate", &candidate, "--max-regression", "3%"];
    let of_writes = ["--threshold", "writes=5%"];
    let all = arguments.into_iter().chain(of_writes);
    all.map(str::to_owned).collect()
}

fn build(engine: &str) -> &'static str {
    match engine {
        "mysql" => "mysql@8.0.33",
        "mariadb" => "mariadb@10.11.19",
        _ => "postgres@18.6",
    }
}

fn plan_text(engine: &str, kind: &Kind, seed: usize, library: &Path) -> String {
    // Redo logs of 2 GiB would take most of a short budget to copy.
    let (config, settings) = match engine {
        "mysql" => ("cz12a", "innodb_redo_log_capacity = \"256M\""),
        "mariadb" => ("cz12a", "innodb_log_file_size = \"256M\""),
        _ => ("cx10b", ""),
    };
    let build = build(engine);
    let from = format!("from = \"{config}\"\nsettings = {{ {settings} }}\n");
    let all = kind.cells(seed);
    let cells: Vec<&str> = all.iter().map(|cell| cell.name.as_str()).collect();
    let section = |cell: &Cell| {
        let env = match cell.env.is_empty() {
            true => String::new(),
            false => format!(
                "env = {{ LD_PRELOAD = \"{}\", {} }}\n",
                library.display(),
                cell.env
            ),
        };
        format!("[config.{}]\n{from}{env}", cell.name)
    };
    let configs: String = all.iter().map(section).collect();
    format!(
        "name = \"error-rates-{}\"\nworkload = \"sysbench-2025\"\ncomparable = false\n\
        seed = {seed}\nbuilds = [\"{build}\"]\nconfigs = {cells:?}\n\
        verify = \"end\"\nwait = \"1s\"\ntests = {:?}\n{configs}\
        [sizes]\nclients = 1\ntables = 1\nrows = \"100K\"\nduration = \"1s\"\nwarm_up = \"200ms\"\n",
        kind.name,
        kind.tests()
    )
}

/// What the verb says of the plan, as JSON.
fn campaign(
    program: &Path,
    folder: &Path,
    plan: &Path,
    verb: &[String],
    options: &[String],
) -> Result<Vec<u8>> {
    let (store, data) = (folder.join("store"), folder.join("data"));
    let _ = fs::remove_dir_all(&store);
    let output = Command::new(program)
        .args(verb)
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

/// All of what the campaign holds.
fn shown(program: &Path, folder: &Path) -> Result<Value> {
    let output = Command::new(program)
        .args(["show", "--json", "--store"])
        .arg(folder.join("store"))
        .stderr(Stdio::inherit())
        .output()?;
    Ok(serde_json::from_slice(&output.stdout)?)
}

/// Each interval of throughput and of CPU per operation against what it should be.
///
/// From one answer to the next a server has the CPU, but for the time that its client and the way
/// take, the same for all cells: the base's length less its CPU per operation.
fn truths(campaign: &Value, shown: &Value, cells: &[Cell]) -> Vec<Truth> {
    let base_cpu_us = |step: &str| {
        let results = shown["results"].as_array().into_iter().flatten();
        let of_base = results.filter(|result| {
            let cell = result["cell"].as_str().unwrap_or_default();
            cell.ends_with(".base") && result["step"] == step && result["is_used"] == true
        });
        middle(of_base.filter_map(|result| result["metrics"][CPU]["value"].as_f64()))
    };
    let cell = |name: &str| {
        let name = name.rsplit('.').next().unwrap_or_default();
        let name = name.split('#').next().unwrap_or_default();
        cells.iter().find(|cell| cell.name == name)
    };
    let comparisons = campaign["comparisons"].as_array().into_iter().flatten();
    let of_one = |comparison: &Value| {
        let estimate = &comparison["estimate"];
        let (step, metric) = (comparison["step"].as_str()?, comparison["metric"].as_str()?);
        let cell = cell(comparison["cell"].as_str()?)?;
        let truth = if comparison["is_throughput"] == true {
            cells[0].mean_us / cell.mean_us
        } else if metric == CPU {
            let base_cpu_us = base_cpu_us(step)?;
            1.0 + (cell.without_stalls_us - cells[0].without_stalls_us) / base_cpu_us
        } else {
            return None;
        };
        let [ratio, low, high] = ["ratio", "low", "high"].map(|key| estimate[key].as_f64());
        let (ratio, low, high) = (ratio?, low?, high?);
        Some(Truth {
            metric: metric.to_owned(),
            what: format!("{step} {}", cell.env),
            truth,
            off_percent: 100.0 * (ratio / truth).ln(),
            half_width_percent: 50.0 * (high / low).ln(),
            holds: (low..=high).contains(&truth),
        })
    };
    comparisons.filter_map(of_one).collect()
}

/// Steps that a gate between equal cells calls a regression are false ones.
fn gate_said(gate: &Value) -> Result<Said> {
    if !gate["refusal"].is_null() || !gate["answer"].is_string() {
        return Err(format!("the gate measured nothing that it could judge: {gate}").into());
    }
    let text = |value: &Value, key: &str| value[key].as_str().unwrap_or_default().to_owned();
    let steps = gate["steps"].as_array().into_iter().flatten();
    let answers: BTreeMap<String, String> = steps
        .map(|step| (text(step, "step"), text(step, "answer")))
        .collect();
    let red = answers.iter().filter(|(_, answer)| *answer == "regression");
    Ok(Said {
        false_regressions: red.map(|(step, _)| step.clone()).collect(),
        gate: Some((text(gate, "answer"), answers)),
        ..Said::default()
    })
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
    if kind.is_gate() {
        let answers = all.iter().filter_map(|said| said.gate.as_ref());
        let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
        for (answer, _) in answers {
            *counts.entry(answer).or_default() += 1;
        }
        for (answer, count) in counts {
            share(&format!("the gate answers {answer}"), count, all.len());
        }
    }
    if kind.is_aa() {
        // A gate without a decision could not be wrong.
        let decided = campaigns(&|said| match &said.gate {
            Some((answer, _)) => ["pass", "regression"].contains(&answer.as_str()),
            None => true,
        });
        share(
            match kind.is_gate() {
                true => "decisions that are a false regression",
                false => "campaigns with a false regression",
            },
            campaigns(&|said| !said.false_regressions.is_empty()),
            decided,
        );
        if !kind.is_gate() {
            share(
                "campaigns with any false call",
                campaigns(&|said| !said.false_calls.is_empty()),
                all.len(),
            );
        }
    }
    let sum = |of: fn(&Said) -> usize| all.iter().map(of).sum::<usize>();
    share(
        "95 % intervals that hold",
        sum(|said| said.held),
        sum(|said| said.intervals),
    );
    for is_cpu in [false, true] {
        let of_all = all.iter().flat_map(|said| &said.truths);
        let truths: Vec<&Truth> = of_all
            .filter(|truth| (truth.metric == CPU) == is_cpu)
            .collect();
        let what = if is_cpu { "CPU" } else { "throughput" };
        let held = truths.iter().filter(|truth| truth.holds).count();
        share(
            &format!("95 % intervals of {what} that hold the truth"),
            held,
            truths.len(),
        );
        let (off, width) = (
            middle(truths.iter().map(|truth| truth.off_percent.abs())),
            middle(truths.iter().map(|truth| truth.half_width_percent)),
        );
        if let (Some(off), Some(width)) = (off, width) {
            println!("half of them are off by up to {off:.2} %; half-width {width:.2} %");
        }
    }
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
    let widths = all.iter().flat_map(|said| said.half_widths.clone());
    if let Some(median) = middle(widths) {
        println!("median half-width of their 95 % intervals: {median:.2} %");
    }
}

fn middle(values: impl Iterator<Item = f64>) -> Option<f64> {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied()
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
