//! The page in a real browser: scripts run, charts are drawn, nothing leaves the page, and text
//! from outside stays text.

use std::fs::{self, File};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use plimsoll_analysis::{Options, analyse};
use plimsoll_core::plan::Workload;
use plimsoll_report::to_html;
use plimsoll_store::CampaignRecord;
use plimsoll_store::event::Event;
use plimsoll_store::header::BuildHeader;
use serde_json::{Value, json};

use crate::common;

const DEADLINE: Duration = Duration::from_secs(90);

/// Runs before anything else on the page.
const WATCH: &str = r#"<script>
window.seen = [];
addEventListener("error", (e) => seen.push("error: " + (e.message || "a resource failed")), true);
addEventListener("unhandledrejection", (e) => seen.push("rejection: " + e.reason));
addEventListener("securitypolicyviolation", (e) => seen.push("blocked: " + e.blockedURI));
</script>"#;

/// Writes what was seen into the document, which the browser then prints. A browser without a
/// screen paints when it likes, so charts are not waited for: printing draws all of them at once.
const TELL: &str = r#"<script>
setTimeout(() => {
  dispatchEvent(new Event("beforeprint"));
  setTimeout(() => {
    const requests = performance.getEntriesByType("resource").map((entry) => entry.name);
    const filled = [...document.querySelectorAll("canvas")].filter((canvas) => {
      const pixels = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height).data;
      return pixels.some((value) => value !== 0);
    });
    const saved = [];
    HTMLAnchorElement.prototype.click = function () { saved.push(this.href); };
    document.querySelectorAll(".save button").forEach((button) => button.textContent === "SVG" && button.click());
    const isBroken = (href) => {
      const text = decodeURIComponent(href.slice(href.indexOf(",") + 1));
      return new DOMParser().parseFromString(text, "image/svg+xml").querySelector("parsererror, script, [onload], [onerror]") !== null;
    };
    document.querySelector("details:not([open])")?.setAttribute("open", "");
    const told = {
      figures: document.querySelectorAll("figure svg[viewBox]").length, saved: saved.length, broken: saved.filter(isBroken).length,
      seen, requests, pwned: !!window.pwned, charts: document.querySelectorAll("div.plot").length, filled: filled.length,
      images: document.images.length, scripts: document.scripts.length, wide: document.documentElement.scrollWidth > innerWidth,
    };
    document.body.textContent = "TOLD" + JSON.stringify(told) + "END";
  }, 500);
}, 1000);
</script>"#;

enum Browser {
    Absent,
    Told(Value),
}

/// Opens a copy of the page with the two scripts added, in a window of this size.
fn open(page: &str, window: &str) -> Browser {
    let dir = tempfile::tempdir().unwrap();
    let watched = page
        .replacen("<head>", &format!("<head>{WATCH}"), 1)
        .replace("</body>", &format!("{TELL}</body>"));
    assert!(watched.contains(WATCH) && watched.contains(TELL));
    let path = dir.path().join("page.html");
    fs::write(&path, watched).unwrap();
    let chosen = std::env::var("PLIMSOLL_CHROMIUM").ok();
    let mut command = Command::new(chosen.as_deref().unwrap_or("chromium"));
    command
        .args([
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            "--disable-quic",
            "--no-first-run",
            "--disable-background-networking",
        ])
        .args([
            "--disable-component-update",
            "--disable-sync",
            "--disable-dev-shm-usage",
            "--virtual-time-budget=8000",
            "--dump-dom",
        ])
        .arg(format!("--window-size={window}"))
        .arg(format!(
            "--user-data-dir={}",
            dir.path().join("profile").display()
        ))
        .arg(format!("file://{}", path.display()))
        .stdin(Stdio::null())
        .stdout(File::create(dir.path().join("dom")).unwrap())
        .stderr(File::create(dir.path().join("log")).unwrap());
    let mut child = match command.spawn() {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound && chosen.is_none() => {
            return Browser::Absent;
        }
        spawned => spawned.unwrap(),
    };
    let start = Instant::now();
    while child.try_wait().unwrap().is_none() {
        if start.elapsed() > DEADLINE {
            child.kill().unwrap();
            child.wait().unwrap();
            panic!(
                "the browser did not end within {DEADLINE:?}: {}",
                tail(&dir.path().join("log"))
            );
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    let dom = fs::read_to_string(dir.path().join("dom")).unwrap();
    let told = dom
        .split_once("TOLD{")
        .and_then(|(_, rest)| rest.split_once("}END"));
    let Some((told, _)) = told else {
        panic!("the page told nothing: {}", tail(&dir.path().join("log")))
    };
    let told = told
        .replace("&lt;", "<")
        .replace("&gt;", ">")
        .replace("&amp;", "&");
    Browser::Told(serde_json::from_str(&format!("{{{told}}}")).unwrap())
}

fn tail(log: &Path) -> String {
    let text = fs::read_to_string(log).unwrap_or_default();
    text.lines().rev().take(5).collect::<Vec<_>>().join("\n")
}

macro_rules! told {
    ($page:expr, $window:expr, $test:literal) => {
        match open($page, $window) {
            Browser::Told(told) => told,
            Browser::Absent => {
                println!("SKIP {}: chromium not found", $test);
                return;
            }
        }
    };
}

fn page(records: &[CampaignRecord]) -> String {
    to_html(&analyse(records, &Options::default()).unwrap())
}

#[test]
fn every_chart_is_drawn_and_nothing_leaves_the_page() {
    let page = page(&[common::sample(12).load()]);
    let told = told!(
        &page,
        "1400,1000",
        "every_chart_is_drawn_and_nothing_leaves_the_page"
    );
    assert_eq!(told["seen"], json!([]));
    assert_eq!(told["requests"], json!([]));
    assert!(told["charts"].as_u64().unwrap() > 50, "{told}");
    assert_eq!(told["charts"], told["filled"], "{told}");
    assert_eq!(told["wide"], json!(false));
    let count = |key: &str| told[key].as_u64().unwrap();
    assert_eq!(
        (count("saved"), count("broken")),
        (count("figures") + count("charts"), 0)
    );
}

#[test]
fn the_page_of_rocksdb_is_drawn_and_fits() {
    let page = page(&[common::rocksdb::sample().load()]);
    for window in ["1400,1000", "500,900"] {
        let told = told!(&page, window, "the_page_of_rocksdb_is_drawn_and_fits");
        assert_eq!(
            (&told["seen"], &told["requests"], &told["wide"]),
            (&json!([]), &json!([]), &json!(false)),
            "{window}: {told}"
        );
        assert_eq!(told["charts"], told["filled"], "{window}: {told}");
    }
}

#[test]
fn a_narrow_window_scrolls_tables_and_not_the_page() {
    let page = page(&[common::sample(12).load()]);
    // Chromium opens no window narrower than 500 pixels.
    let told = told!(
        &page,
        "500,900",
        "a_narrow_window_scrolls_tables_and_not_the_page"
    );
    assert_eq!(
        (&told["seen"], &told["wide"]),
        (&json!([]), &json!(false)),
        "{told}"
    );
}

#[test]
fn the_check_sees_a_planted_error_and_a_planted_request() {
    let page = page(&[common::sample(12).load()]);
    let planted =
        "<script>throw new Error('planted')</script><img src='http://127.0.0.1:9/planted.png'>";
    let page = page.replace("</main>", &format!("{planted}</main>"));
    let told = told!(
        &page,
        "1400,1000",
        "the_check_sees_a_planted_error_and_a_planted_request"
    );
    let seen = told["seen"].to_string();
    assert!(
        seen.contains("planted") && seen.contains("blocked: http://127.0.0.1:9/planted.png"),
        "{seen}"
    );
}

const ATTACKS: [&str; 6] = [
    "<script>window.pwned=1</script>",
    "\"><img src=x onerror=window.pwned=1>",
    "'><svg onload=window.pwned=1>",
    "</script><script>window.pwned=1</script>",
    "--><iframe srcdoc=\"<script>parent.pwned=1</script>\">",
    "</style></title></textarea><body onload=window.pwned=1>",
];

/// Puts attacks wherever text from outside can come in.
fn attack(record: &mut CampaignRecord) {
    let mut attacks = ATTACKS.iter().cycle();
    let mut next = || (*attacks.next().unwrap()).to_owned();
    let header = &mut record.header;
    for text in [
        &mut header.id,
        &mut header.created,
        &mut header.plimsoll_version,
        &mut header.plan_text,
        &mut header.plan.name,
        &mut header.plan.description,
    ] {
        *text = next();
    }
    for (i, (cell, info)) in header
        .plan
        .cells
        .iter_mut()
        .zip(&mut header.cells)
        .enumerate()
    {
        cell.label = format!("{}{i}", ATTACKS[i]);
        info.label = cell.label.clone();
        cell.config.label = next();
        let Workload::InsertBenchmark(workload) = &mut cell.workload else {
            panic!("another workload")
        };
        workload.steps.last_mut().unwrap().name = next();
        for text in [&mut info.version, &mut info.origin, &mut info.config_source] {
            *text = next();
        }
        info.settings.insert(next(), next());
        let text = [
            "server_sha256",
            "packager",
            "compiler",
            "optimisation",
            "flags",
        ]
        .map(|_| next());
        let [server_sha256, packager, compiler, optimisation, flags] = text;
        let toolchain = [
            ("packager", packager),
            ("compiler", compiler),
            ("optimisation", optimisation),
            ("flags", flags),
        ];
        let toolchain = toolchain
            .map(|(key, value)| (key.to_owned(), format!("{value}{i}")))
            .into();
        info.settings.insert("asked".to_owned(), next());
        info.build = Some(BuildHeader {
            name: next(),
            server_sha256: format!("{server_sha256}{i}"),
            links: Vec::new(),
            toolchain,
        });
    }
    for trial in &mut record.trials {
        trial.environment.as_mut().unwrap()[next()] = json!(format!("{}{}", next(), trial.number));
        for stamped in &mut trial.events {
            match &mut stamped.event {
                Event::ServerReady(ready) => {
                    ready.version = next();
                    ready.build_options.push(next());
                    ready
                        .effective_settings
                        .insert(next(), format!("{}{}", next(), trial.number));
                    ready
                        .effective_settings
                        .insert("loose_asked".to_owned(), next());
                }
                Event::StepDone(done) => {
                    done.engine_counters.insert(next(), 1);
                    done.engine_counters.insert(next(), -1);
                    done.notes.insert(next(), 1.0);
                    done.tables[0].table = next();
                    done.tables[0].checksum = Some(next());
                    done.operations[0].errors.insert(next(), 1);
                }
                Event::DrainDone(drain) => {
                    drain.actions[0].action = next();
                    drain.actions[0].result = format!("{}\n{}", next(), next());
                }
                Event::StepFailed(failed) => failed.reason = next(),
                Event::ServerCrashed(crashed) => {
                    crashed.status = next();
                    crashed.log_tail = format!("{}\n{}", next(), next());
                }
                _ => {}
            }
        }
    }
}

#[test]
fn text_from_outside_stays_text() {
    let mut record = common::sample(12).load();
    let harmless = page(&[record.clone()]);
    attack(&mut record);
    let attacked = page(&[record]);
    for attack in ATTACKS {
        assert!(!attacked.contains(attack), "{attack}");
        let escaped = attack
            .replace('<', "&lt;")
            .replace('>', "&gt;")
            .replace('"', "&quot;");
        assert!(attacked.contains(&escaped), "{escaped}");
    }
    let told = told!(&attacked, "1400,1000", "text_from_outside_stays_text");
    assert_eq!(
        (&told["seen"], &told["requests"], &told["pwned"]),
        (&json!([]), &json!([]), &json!(false)),
        "{told}"
    );
    // Neither an element nor a script more than without the attacks.
    let without = told!(&harmless, "1400,1000", "text_from_outside_stays_text");
    assert_eq!(
        (&told["images"], &told["scripts"]),
        (&without["images"], &without["scripts"])
    );
    assert_eq!(told["charts"], told["filled"]);
}

#[test]
fn the_page_of_a_quick_campaign_is_small() {
    let campaign = common::Campaign::new(
        "20261121T080000Z-sample",
        &common::plan_text(&["wal_full", "wal_off"], 4, ""),
    );
    common::fill(&campaign, ["base", "killed"]);
    let page = page(&[campaign.load()]);
    assert!(page.len() < 1_000_000, "{} bytes", page.len());
    assert!(
        page.contains("default-src 'none'") && page.contains("Copyright (c) 2022 Leon Sorokin")
    );
}

#[test]
fn a_long_step_is_thinned_and_says_so() {
    let campaign = common::Campaign::new(
        "20261121T080000Z-sample",
        &common::plan_text(&["wal_full", "wal_off"], 7200, ""),
    );
    common::fill(&campaign, ["base", "killed"]);
    let view = analyse(&[campaign.load()], &Options::default()).unwrap();
    for chart in view.steps.iter().flat_map(|step| &step.charts) {
        let points: usize = chart.lines.iter().map(|line| line.points.len()).sum();
        assert!(points <= 2000, "{} has {points} points", chart.title);
    }
    let page = to_html(&view);
    assert!(
        page.contains("a point stands for up to 8 seconds"),
        "7200 s x 2 cells / 2000"
    );
}
