//! Counts on real servers how often verdicts are wrong: `make error-rates ENGINE=postgres KIND=aa
//! N=20`.
//!
//! Each campaign has 8 tests and three cells of one build: the base, a twin, and one that is the
//! same or has something planted (tests/planted/plant.c). What is not planted and called different
//! is a false call; what is planted and not called is a miss.
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

/// Five that read and three that write.
const STEPS: &str = "point-query,hot-points,points-covered-si,range-covered-pk,read-only-count,\
                     update-index,update-nonindex,insert";

/// What is planted in the third cell.
struct Kind {
    name: &'static str,
    env: &'static str,
}

const KINDS: [Kind; 8] = [
    Kind {
        name: "aa",
        env: "",
    },
    Kind {
        name: "cpu1",
        env: "PLANT_SHARE = \"0.01\"",
    },
    Kind {
        name: "cpu3",
        env: "PLANT_SHARE = \"0.03\"",
    },
    Kind {
        name: "cpu5",
        env: "PLANT_SHARE = \"0.05\"",
    },
    Kind {
        name: "cpu8",
        env: "PLANT_SHARE = \"0.08\"",
    },
    Kind {
        name: "cpu10",
        env: "PLANT_SHARE = \"0.10\"",
    },
    Kind {
        name: "stall",
        env: "PLANT_STALL_EVERY = \"4000\", PLANT_STALL_MS = \"100\"",
    },
    Kind {
        name: "io",
        env: "PLANT_WRITE_BYTES = \"4096\"",
    },
];

/// What a campaign said.
#[derive(Default, Deserialize, Serialize)]
struct Said {
    /// Steps of which the twin was called different, and of which it was called slower.
    false_calls: Vec<String>,
    false_regressions: Vec<String>,
    /// By step: what the third cell was called, and the middle of its interval.
    third: BTreeMap<String, (String, Option<f64>)>,
    /// Companions of the third cell that regressed.
    companions: Vec<String>,
    /// Intervals of the twin, and of the control, that hold 1, and all of them.
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
    fs::write(&plan, plan_text(engine, kind, &plant(&folder)?))?;
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
        let printed = campaign(Path::new(program), &folder, &plan, number, rest)?;
        // All of what it said, to look for causes.
        fs::write(
            folder.join(format!("{}-{number}.json", kind.name)),
            &printed,
        )?;
        let said = said(&serde_json::from_slice(&printed)?, kind.env.is_empty());
        println!(
            "{engine} {} {number}: {:.0} s, false {:?}, third {:?}, companions {:?}, held {} of {}",
            kind.name,
            began.elapsed().as_secs_f64(),
            said.false_calls,
            said.third,
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

fn plan_text(engine: &str, kind: &Kind, library: &Path) -> String {
    let (build, config) = match engine {
        "mysql" => ("mysql@8.0.33", "cz12a"),
        "mariadb" => ("mariadb@10.11.19", "cz12a"),
        _ => ("postgres@18.6", "cx10b"),
    };
    let planted = match kind.env {
        "" => String::new(),
        env => format!(
            "env = {{ LD_PRELOAD = \"{}\", {env} }}\n",
            library.display()
        ),
    };
    format!(
        "name = \"error-rates-{}\"\nworkload = \"sysbench-2025\"\ncomparable = false\n\
        blocks = 1\nbuilds = [\"{build}\"]\nconfigs = [\"base\", \"twin\", \"third\"]\n\
        verify = \"end\"\nwait = \"1s\"\ntests = [{}]\n\
        [config.base]\nfrom = \"{config}\"\n[config.twin]\nfrom = \"{config}\"\n\
        [config.third]\nfrom = \"{config}\"\n{planted}\
        [sizes]\nclients = 1\ntables = 1\nrows = \"100K\"\nduration = \"1s\"\nwarm_up = \"200ms\"\n",
        kind.name,
        STEPS
            .split(',')
            .map(|step| format!("\"{step}\""))
            .collect::<Vec<_>>()
            .join(", ")
    )
}

fn campaign(
    program: &Path,
    folder: &Path,
    plan: &Path,
    number: usize,
    options: &[String],
) -> Result<Vec<u8>> {
    let (store, data) = (folder.join("store"), folder.join("data"));
    let _ = fs::remove_dir_all(&store);
    let run = |arguments: &[&str]| -> Result<Vec<u8>> {
        let output = Command::new(program)
            .args(arguments)
            .arg("--store")
            .arg(&store)
            .arg("--data")
            .arg(&data)
            .stderr(Stdio::inherit())
            .output()?;
        Ok(output.stdout)
    };
    let seed = number.to_string();
    let plan = plan.display().to_string();
    run(&["run", &plan, "--seed", &seed, "--offline"])?;
    let options = options.iter().map(String::as_str);
    let mut confirm = vec!["confirm", "--step", STEPS, "--json"];
    confirm.extend(options);
    run(&confirm)
}

/// `is_aa` if the third cell is a twin, too.
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
        let is_twin = is_aa || text(comparison, "cell").ends_with("twin");
        let verdict = text(comparison, "verdict");
        let is_called = ["regression", "improvement"].contains(&verdict.as_str());
        let step = text(comparison, "step");
        if comparison["is_throughput"] == true {
            if is_twin {
                hold(&comparison["estimate"]);
                if is_called {
                    said.false_calls.push(step.clone());
                }
                if verdict == "regression" {
                    said.false_regressions.push(step);
                }
            } else {
                let ratio = comparison["estimate"]["ratio"].as_f64();
                said.third.insert(step, (verdict, ratio));
            }
        } else if is_called && !is_twin {
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
        println!(
            "| {engine} {} | {what} | {count} of {of} | {low:.0} to {high:.0} % |",
            kind.name
        );
    };
    let campaigns = |is_so: &dyn Fn(&Said) -> bool| all.iter().filter(|said| is_so(said)).count();
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
    let sum = |of: fn(&Said) -> usize| all.iter().map(of).sum::<usize>();
    share(
        "95 % intervals that hold",
        sum(|said| said.held),
        sum(|said| said.intervals),
    );
    let steps: Vec<&String> = all.iter().flat_map(|said| said.third.keys()).collect();
    let mut steps: Vec<&String> = steps.into_iter().collect();
    steps.sort();
    steps.dedup();
    for step in steps {
        let of_step: Vec<&(String, Option<f64>)> =
            all.iter().filter_map(|said| said.third.get(step)).collect();
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
        println!("median half-width of the twin's intervals: {median:.2} %");
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
