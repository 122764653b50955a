//! A campaign on servers: two releases of MySQL of which the second has two configs, and a MariaDB
//! of unknown making.

use std::collections::BTreeMap;

use plimsoll_core::readings::{HostReading, Reading};
use plimsoll_store::CampaignRecord;
use plimsoll_store::event::{DrainStep, Event};
use plimsoll_store::header::BuildHeader;

use super::{Campaign, fill};

pub const CELLS: [&str; 4] = [
    "mysql@5.7.22.cz12a",
    "mysql@8.0.33.cz12a",
    "mysql@8.0.33.cz12aio",
    "mariadb@10.5.23.cz12a",
];

pub fn plan_text(extra: &str) -> String {
    let cells: Vec<String> = CELLS.iter().map(|cell| format!("{cell:?}")).collect();
    format!(
        "name = \"servers\"\ndescription = \"MySQL and MariaDB\"\nworkload = \
        \"insert-benchmark\"\ncells = [{}]\nbase = {:?}\nwait = \"2s\"\n\
         verify = \"end\"\n{extra}\n[sizes]\nclients = 2\nrows = \"400K\"\nwrite_rows = \
        \"100K\"\nduration = \"12s\"\n",
        cells.join(", "),
        CELLS[0]
    )
}

pub fn map(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
    pairs
        .iter()
        .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
        .collect()
}

/// Packager, compiler, optimisation, sha256 of the four cells.
const BUILDS: [(&str, &str, &str, &str); 4] = [
    (
        "MySQL generic Linux",
        "gcc 4.4.7",
        "-O3 -fno-omit-frame-pointer",
        "11418b78308a",
    ),
    (
        "MySQL generic Linux",
        "gcc 12.1.1",
        "-O2 -fno-omit-frame-pointer",
        "67335ce6765f",
    ),
    (
        "MySQL generic Linux",
        "gcc 12.1.1",
        "-O2 -fno-omit-frame-pointer",
        "67335ce6765f",
    ),
    ("Debian", "unknown", "unknown", "da15c306f94e"),
];

/// What the configs ask for.
fn asked() -> BTreeMap<String, String> {
    map(&[
        ("innodb_buffer_pool_size", "1G"),
        ("loose_innodb_log_file_size", "1G"),
        ("loose_innodb_redo_log_capacity", "2G"),
        ("log_bin", "1"),
        ("symbolic_links", "0"),
    ])
}

fn effective(cell: usize) -> BTreeMap<String, String> {
    let data = format!("DATA/data{cell}/");
    let version = ["5.7.22", "8.0.33", "8.0.33", "10.5.23-MariaDB"][cell];
    let own: &[(&str, &str)] = match cell {
        0 => &[
            ("innodb_buffer_pool_size", "1073741824"),
            ("innodb_log_file_size", "1073741824"),
            (
                "loose_innodb_redo_log_capacity",
                "not known to MySQL 5.7.22",
            ),
            ("innodb_file_format", "Barracuda"),
            (
                "sql_mode",
                "ONLY_FULL_GROUP_BY,STRICT_TRANS_TABLES,NO_AUTO_CREATE_USER,NO_ENGINE_SUBSTITUTION",
            ),
        ],
        1 | 2 => &[
            ("innodb_buffer_pool_size", "536870912"),
            ("innodb_log_file_size", "1073741824"),
            ("innodb_redo_log_capacity", "2147483648"),
            (
                "sql_mode",
                "ONLY_FULL_GROUP_BY,STRICT_TRANS_TABLES,NO_ENGINE_SUBSTITUTION",
            ),
        ],
        _ => &[
            ("innodb_buffer_pool_size", "1073741824"),
            ("innodb_log_file_size", "1073741824"),
            (
                "loose_innodb_redo_log_capacity",
                "not known to MariaDB 10.5.23",
            ),
            ("aria_block_size", "8192"),
            (
                "sql_mode",
                "ONLY_FULL_GROUP_BY,STRICT_TRANS_TABLES,NO_AUTO_CREATE_USER,NO_ENGINE_SUBSTITUTION",
            ),
        ],
    };
    let common = [
        ("log_bin", "ON"),
        ("max_connections", "300"),
        ("datadir", &data),
        ("version", version),
        ("server_uuid", version),
    ];
    let mut settings = map(&common);
    settings.extend(map(own));
    settings
}

/// In a step of 800 inserts or so: what falls, what is a level by its name, what the field looks at
/// and what it does not.
fn counters(cell: usize, operations: u64) -> BTreeMap<String, i64> {
    let times = |factor: f64| (operations as f64 * factor).round() as i64;
    let mut counters = BTreeMap::from([
        ("innodb_rows_inserted".to_owned(), times(1.0)),
        (
            "innodb_os_log_written".to_owned(),
            times([1500.0, 2400.0, 2400.0, 1800.0][cell]),
        ),
        (
            "innodb_buffer_pool_pages_dirty".to_owned(),
            350 + cell as i64,
        ),
        ("innodb_history_list_length".to_owned(), -12),
        (
            "handler_external_lock".to_owned(),
            times([0.5, 2.0, 2.0, 0.5][cell]),
        ),
        ("com_stmt_execute".to_owned(), times(1.0)),
        ("innodb_data_pending_fsyncs".to_owned(), 0),
    ]);
    if cell == 3 {
        counters.insert("binlog_bytes_written".to_owned(), times(90.0));
    }
    counters
}

/// A campaign whose four trials end by role; see `fill`.
pub fn servers(roles: [&str; 4], extra: &str) -> CampaignRecord {
    let campaign = Campaign::new("20261121T090000Z-servers", &plan_text(extra));
    fill(&campaign, roles);
    let mut record = campaign.load();
    for (cell, header) in record.header.cells.iter_mut().enumerate() {
        let (packager, compiler, optimisation, sha256) = BUILDS[cell];
        header.settings = asked();
        header.origin = format!("package {cell}");
        header.build = Some(BuildHeader {
            name: header.label.rsplit_once('.').unwrap().0.to_owned(),
            server_sha256: sha256.to_owned(),
            links: Vec::new(),
            toolchain: map(&[
                ("packager", packager),
                ("compiler", compiler),
                ("optimisation", optimisation),
                ("flags", "-Wall -g"),
            ]),
        });
    }
    for trial in &mut record.trials {
        let cell = trial.number as usize - 1;
        for stamped in &mut trial.events {
            match &mut stamped.event {
                Event::ServerReady(ready) => {
                    ready.embedded = false;
                    ready.version =
                        ["5.7.22", "8.0.33", "8.0.33", "10.5.23-MariaDB"][cell].to_owned();
                    ready.effective_settings = effective(cell);
                }
                Event::StepDone(done) => {
                    let primary = done
                        .operations
                        .iter()
                        .find(|operation| operation.kind == done.primary)
                        .unwrap();
                    let operations = if done.primary == "query" {
                        primary.ok
                    } else {
                        primary.rows
                    };
                    done.engine_counters = counters(cell, operations);
                    done.host.put(
                        HostReading::ServerCpu,
                        Reading::Ok(operations as f64 * 50e-6),
                    );
                    done.host.put(
                        HostReading::ClientCpu,
                        Reading::Ok(operations as f64 * 10e-6),
                    );
                    done.host.put(
                        HostReading::ProcessCpu,
                        Reading::Unavailable("the engine has processes of its own".to_owned()),
                    );
                    done.host
                        .put(HostReading::CpuUser, Reading::Ok(operations as f64 * 60e-6));
                    done.host.put(HostReading::CpuSystem, Reading::Ok(0.0));
                }
                Event::DrainDone(drain) => {
                    let step = |action: &str, seconds, result: &str| DrainStep {
                        action: action.to_owned(),
                        seconds,
                        result: result.to_owned(),
                    };
                    drain.actions = vec![
                        step(
                            "set global innodb_max_dirty_pages_pct = 1",
                            0.0001,
                            "now 1.000000",
                        ),
                        step(
                            "analyze table `pi1`",
                            0.2,
                            "status: OK\nnote: <all> rows read",
                        ),
                    ];
                }
                Event::ServerCrashed(crashed) => {
                    crashed.status = "signal 11".to_owned();
                    crashed.log_tail =
                        "2026 [Note] ready\n2026 UTC - mysqld got signal 11 ;\nThe manual page has \
                        <information>.".to_owned();
                }
                _ => {}
            }
        }
    }
    record
}

/// Three releases of MySQL, not in the order of their versions, over blocks: the second and third
/// are a quarter slower than the first.
pub fn series(blocks: u32) -> CampaignRecord {
    let text = format!(
        "name = \"releases\"\nworkload = \"insert-benchmark\"\nbuilds = [\"mysql@8.0.33\", \
        \"mysql@5.7.22\", \"mysql@8.0.4\"]\n\
         configs = [\"cz12a\"]\nblocks = {blocks}\nwait = \"2s\"\nverify = \"end\"\nsteps = \
        [\"l.i0\", \"l.x\", \"l.i1\", \"l.i2\", \"qr100\"]\n\
         [sizes]\nclients = 2\nrows = \"400K\"\nwrite_rows = \"100K\"\nduration = \"12s\"\n"
    );
    let campaign = Campaign::new("20261121T080000Z-releases", &text);
    let steps: Vec<super::Made> = campaign
        .steps()
        .iter()
        .map(|plan| super::step(plan, super::Speed::default()))
        .collect();
    for scheduled in &campaign.folder.header.schedule {
        let is_old = campaign.folder.header.plan.cells[scheduled.cell]
            .label
            .contains("5.7");
        let mut trial = campaign.attempt(scheduled.number, 1, &[]);
        for of in &steps {
            let queries =
                if is_old { 1.0 } else { 0.75 } * super::confirm::noise(scheduled.number, 0.005);
            trial.step(super::confirm::template(of, queries));
        }
        trial.complete();
    }
    campaign.load()
}
