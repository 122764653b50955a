//! `init`: a commented plan, from options or from answers at the terminal.

use std::fs::{self, OpenOptions};
use std::io::{self, BufRead, IsTerminal, Write};
use std::path::{self, Path, PathBuf};

use plimsoll_core::name::BuildName;
use plimsoll_core::plan::{Budget, Family, PlanError};
use plimsoll_lab::builds::{BuildCache, is_built_in};
use plimsoll_lab::{load_plan, parse_plan};
use plimsoll_store::shell_word;

use crate::arguments::{Init, Places};
use crate::failure::{Failure, VerbResult};
use crate::verbs::plan::summary;

/// What a plan compares.
enum Compared {
    /// Builds that are fetched or registered, the base first.
    Builds(Vec<BuildName>),
    /// Servers that run already, by name and dsn.
    Servers(Vec<(String, String)>),
}

/// Rows per table or client if nobody says it.
const ROWS: &str = "100K";

/// Everything that the plan's text says.
struct Answers {
    compared: Compared,
    workload: String,
    tests: Vec<String>,
    clients: u32,
    rows: String,
    budget: String,
}

pub fn init(places: &Places, arguments: &Init) -> VerbResult {
    refuse_overwriting(arguments)?;
    let builds = places.builds()?;
    let answers = match asked_for(arguments, &builds)? {
        Some(compared) => Answers {
            compared,
            workload: seen_from(&arguments.out, &arguments.workload),
            tests: arguments.tests.clone(),
            clients: arguments.clients,
            rows: rows(arguments)?,
            budget: arguments.budget.clone(),
        },
        None if io::stdin().is_terminal() => match ask(arguments, &builds)? {
            Some(answers) => answers,
            None => return Ok(0),
        },
        None => {
            return Err(Failure::usage(
                "say what to compare: --builds mysql@8.0.33,mysql@9.7, or --basedir DIR,DIR for \
                builds of your own, or --server NAME=DSN for a server that runs already; at a \
                terminal `plimsoll init` asks",
            ));
        }
    };
    let text = plan_text(&answers);
    let path = arguments.out.display().to_string();
    // An answer that is wrong leaves no file, and takes none away.
    parse_plan(&path, &text).map_err(|error| refused(&error))?;
    write(&arguments.out, &text, arguments.force)?;
    let plan = load_plan(Some(&path))?;
    anstream::println!("wrote {path}\n");
    for line in summary(places, &plan)? {
        anstream::println!("{line}");
    }
    if let Compared::Servers(_) = answers.compared {
        anstream::println!(
            "no server was contacted: whether it answers and its database is empty, `run` finds out"
        );
    }
    if let Compared::Builds(names) = &answers.compared
        && let [only] = &names[..]
    {
        anstream::println!(
            "{only} runs twice, alike as yet: write what differs under [config.other.settings] at \
            the end of {path}, or name a second build"
        );
    }
    let path = shell_word(&path);
    anstream::println!("Step by step: plimsoll plan explain {path}\nNext: plimsoll run {path}");
    Ok(0)
}

/// What is wrong with the answers. The place of it in the plan says nothing: no plan was written.
fn refused(error: &PlanError) -> Failure {
    let all = std::iter::once(error).chain(&error.others);
    let all: Vec<&str> = all.map(|error| error.message.as_str()).collect();
    Failure::usage(format!("no plan was written: {}", all.join("; ")))
}

/// A workload file as the plan in `out` has to name it: relative to the plan if it is there, else
/// by its whole path, since whoever types it means the current folder.
fn seen_from(out: &Path, workload: &str) -> String {
    let beside = out.parent().unwrap_or(Path::new("")).join(workload);
    if !is_file(workload) || beside.exists() || !Path::new(workload).exists() {
        return workload.to_owned();
    }
    path::absolute(workload)
        .map_or_else(|_| workload.to_owned(), |whole| whole.display().to_string())
}

/// Whether a workload is a file, not the name of a preset.
fn is_file(workload: &str) -> bool {
    workload.ends_with(".toml")
}

/// How many rows a preset has; a workload file has its own.
fn rows(arguments: &Init) -> Result<String, Failure> {
    match &arguments.rows {
        Some(_) if is_file(&arguments.workload) => Err(Failure::usage(format!(
            "--rows is not for a workload file: {} says them in its tables",
            arguments.workload
        ))),
        Some(rows) => Ok(rows.clone()),
        None => Ok(ROWS.to_owned()),
    }
}

fn refuse_overwriting(arguments: &Init) -> Result<(), Failure> {
    if arguments.force || !arguments.out.exists() {
        return Ok(());
    }
    Err(Failure::usage(format!(
        "{} is there already: choose another file with --out, or --force",
        arguments.out.display()
    )))
}

fn write(path: &Path, text: &str, is_forced: bool) -> Result<(), Failure> {
    let failed = |error: io::Error| {
        Failure::usage(format!(
            "failed to write {}: {error}; choose another file with --out",
            path.display()
        ))
    };
    if is_forced {
        return fs::write(path, text).map_err(failed);
    }
    // Not over a file that came meanwhile.
    let mut file = OpenOptions::new()
        .write(true)
        .create_new(true)
        .open(path)
        .map_err(failed)?;
    file.write_all(text.as_bytes()).map_err(failed)
}

/// What the options compare; none without one of them.
fn asked_for(arguments: &Init, builds: &BuildCache) -> Result<Option<Compared>, Failure> {
    let mut names = arguments.builds.clone();
    names.extend(register(&arguments.basedir, builds)?);
    match (names.is_empty(), arguments.server.is_empty()) {
        (true, true) => Ok(None),
        (false, true) => {
            check(&names, builds)?;
            Ok(Some(Compared::Builds(names)))
        }
        (true, false) => Ok(Some(Compared::Servers(
            arguments
                .server
                .iter()
                .map(|text| server(text))
                .collect::<Result<_, _>>()?,
        ))),
        (false, false) => Err(Failure::usage(
            "--server is for plans of servers alone: make one plan of them, and one of the builds",
        )),
    }
}

/// Before a plan has them: a build that nobody offers would be of no use in it.
fn check(names: &[BuildName], builds: &BuildCache) -> Result<(), Failure> {
    for (index, name) in names.iter().enumerate() {
        if names[..index].contains(name) {
            return Err(Failure::usage(format!(
                "{name} is named twice: the base runs a second time without that; name another \
                build, or this one alone for two configs of it"
            )));
        }
    }
    for name in names.iter().filter(|name| !is_built_in(name)) {
        builds.resolve(name)?;
    }
    Ok(())
}

/// Registers folders of installed builds under the last part of their path that says something.
fn register(dirs: &[PathBuf], builds: &BuildCache) -> Result<Vec<BuildName>, Failure> {
    let mut names: Vec<BuildName> = Vec::new();
    for dir in dirs {
        let build = builds.add_basedir(dir, &label(dir))?;
        tell!("{}: {} in {}", build.name, build.version, dir.display());
        let name: BuildName = build
            .name
            .parse()
            .map_err(|error| Failure::bug(format!("{error}")))?;
        if names.contains(&name) {
            return Err(Failure::usage(format!(
                "{} would be the second build called {name}: register it with `plimsoll build add \
                --basedir DIR --label L` and use --builds",
                dir.display()
            )));
        }
        names.push(name);
    }
    Ok(names)
}

/// `/opt/my-8.0.35/usr` is `my-8_0_35`: folders that every installation has say nothing.
fn label(dir: &Path) -> String {
    let says_nothing = |name: &str| ["usr", "local", "install", "bin", "build"].contains(&name);
    let parts = dir.components().rev();
    let mut names = parts.filter_map(|part| part.as_os_str().to_str());
    let name = names.find(|name| !says_nothing(name)).unwrap_or("mine");
    // A label has no dots: the versions that folders are called by do.
    let is_allowed = |c: char| c.is_ascii_alphanumeric() || "_-".contains(c);
    let name = name.replace('.', "_");
    let label: String = name.chars().filter(|c| is_allowed(*c)).collect();
    match label.is_empty() {
        true => "mine".to_owned(),
        false => label,
    }
}

/// `prod=postgres://bench@host/db`.
fn server(text: &str) -> Result<(String, String), Failure> {
    match text.split_once('=') {
        Some((name, dsn)) if dsn.contains("://") && !name.is_empty() => {
            Ok((name.trim().to_owned(), dsn.trim().to_owned()))
        }
        _ => Err(Failure::usage(format!(
            "--server {text}: write a name and the dsn, as in prod=postgres://bench@host/empty_db"
        ))),
    }
}

/// The same from answers; none where there is no plan to be made.
fn ask(arguments: &Init, builds: &BuildCache) -> Result<Option<Answers>, Failure> {
    anstream::println!(
        "What do you have?\n  1  two or more versions of a server, fetched as packages\n  2  builds \
        of your own, in folders\n  3  a server that runs already\n  4  results of sysbench, the \
        Insert Benchmark, db_bench or pgbench"
    );
    let compared = match question("1 to 4", "1")?.as_str() {
        "1" => {
            anstream::println!("`plimsoll build list` shows what can be fetched.");
            let text = question("builds, the base first, such as mysql@8.0.33 mysql@9.7", "")?;
            let names = words(&text)
                .map(|word| {
                    word.parse()
                        .map_err(|error| Failure::usage(format!("{error}")))
                })
                .collect::<Result<Vec<BuildName>, Failure>>()?;
            check(&names, builds)?;
            Compared::Builds(names)
        }
        "2" => {
            let text = question("their folders, the base first", "")?;
            let dirs: Vec<PathBuf> = words(&text).map(PathBuf::from).collect();
            Compared::Builds(register(&dirs, builds)?)
        }
        "3" => {
            let dsn = question("its dsn, such as postgres://bench@host/empty_db", "")?;
            Compared::Servers(vec![server(&format!("mine={dsn}"))?])
        }
        "4" => {
            anstream::println!(
                "No plan is needed:\n  plimsoll import FOLDER          # a campaign of them\n  \
                plimsoll compare FOLDER FOLDER  # two of them at once"
            );
            return Ok(None);
        }
        other => {
            return Err(Failure::usage(format!("{other} is none of 1, 2, 3 and 4")));
        }
    };
    if matches!(&compared, Compared::Builds(names) if names.is_empty()) {
        return Err(Failure::usage("nothing was named: nothing is written"));
    }
    anstream::println!(
        "`plimsoll workload list` shows the workloads; your own is a file, see `plimsoll workload \
        show shop`."
    );
    let workload = question("workload", &arguments.workload)?;
    let clients = question("clients", &arguments.clients.to_string())?;
    let clients = clients
        .parse()
        .map_err(|_| Failure::usage(format!("{clients} is no number of clients")))?;
    let rows = arguments.rows.as_deref().unwrap_or(ROWS);
    let rows = match is_file(&workload) {
        true => rows.to_owned(),
        false => question("rows per table or client", rows)?,
    };
    let budget = match &compared {
        Compared::Builds(_) => question("how long may it take", &arguments.budget)?,
        Compared::Servers(_) => arguments.budget.clone(),
    };
    Ok(Some(Answers {
        compared,
        workload: seen_from(&arguments.out, &workload),
        tests: arguments.tests.clone(),
        clients,
        rows,
        budget,
    }))
}

fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split([' ', ',']).filter(|word| !word.is_empty())
}

/// An answer, or what is meant by none.
fn question(what: &str, default: &str) -> Result<String, Failure> {
    let hint = match default {
        "" => String::new(),
        default => format!(" [{default}]"),
    };
    let failed = |error: io::Error| Failure::usage(format!("failed to ask: {error}"));
    let mut out = io::stdout();
    write!(out, "{what}{hint}: ").map_err(failed)?;
    out.flush().map_err(failed)?;
    let mut line = String::new();
    if io::stdin().lock().read_line(&mut line).map_err(failed)? == 0 {
        return Err(Failure::interrupted("no answer: nothing is written"));
    }
    Ok(match line.trim() {
        "" => default.to_owned(),
        answer => answer.to_owned(),
    })
}

/// Section after section, as a person would write it.
fn plan_text(answers: &Answers) -> String {
    let family = family(&answers.workload);
    let sections = [
        heading(answers),
        verdicts(answers, family),
        sizes(answers, family),
        match &answers.compared {
            Compared::Servers(servers) => dsns(servers),
            Compared::Builds(names) => second_config(names),
        },
    ];
    sections.concat()
}

fn family(workload: &str) -> Family {
    match workload {
        file if is_file(file) => Family::File,
        preset if preset.starts_with("sysbench") => Family::Sysbench,
        preset if preset.starts_with("rocksdb") => Family::Rocksdb,
        _ => Family::InsertBenchmark,
    }
}

fn heading(answers: &Answers) -> String {
    let (names, compared): (Vec<String>, String) = match &answers.compared {
        Compared::Builds(names) => (
            names.iter().map(ToString::to_string).collect(),
            builds(names),
        ),
        Compared::Servers(of) => (
            of.iter().map(|(name, _)| name.clone()).collect(),
            servers(of),
        ),
    };
    let workload = match is_file(&answers.workload) {
        true => format!("{{ file = {} }}", quoted(&answers.workload)),
        false => quoted(&answers.workload),
    };
    let tests = match answers.tests.as_slice() {
        [] => String::new(),
        tests => format!("tests = [{}]\n", list(tests)),
    };
    format!(
        "# Made by `plimsoll init`. `plimsoll plan explain FILE` says what it takes.\n\
        name = {}\n\
        description = {}\n\
        workload = {workload}\n\
        # Short steps on small tables: their numbers are not those of full runs.\n\
        comparable = false\n\
        \n\
        {compared}\
        wait = \"1s\"\n\
        {tests}\
        \n",
        quoted(&plan_name(&names)),
        quoted(&description(&names)),
    )
}

fn verdicts(answers: &Answers, family: Family) -> String {
    match (&answers.compared, family) {
        (Compared::Servers(_), _) => String::new(),
        (Compared::Builds(_), Family::Sysbench | Family::File) => format!(
            "# All builds run at the same time in turns of milliseconds, the base twice, until\n\
            # each test is known within {} % (reads) or {} % (writes), or the time is over.\n\
            [verdicts]\n\
            budget = \"{}\"\n\
            \n",
            100.0 * Budget::DEFAULT.reads,
            100.0 * Budget::DEFAULT.writes,
            answers.budget,
        ),
        _ => "# Each build runs so many times, one after the other, the base twice as often.\n\
            [verdicts]\n\
            blocks = 8\n\
            \n"
        .to_owned(),
    }
}

fn sizes(answers: &Answers, family: Family) -> String {
    let rows = &answers.rows;
    let own = match family {
        Family::Sysbench => format!(
            "tables = 1\n\
            rows = \"{rows}\"            # for reads from storage: more than the cache holds\n\
            duration = \"2s\"\n\
            warm_up = \"200ms\"\n"
        ),
        Family::File => "duration = \"2s\"\nwarm_up = \"200ms\"\n".to_owned(),
        Family::InsertBenchmark => format!(
            "rows = \"{rows}\"            # loaded by each client\n\
            write_rows = \"20K\"       # inserted and deleted by each client in l.i1 and l.i2\n\
            duration = \"2s\"          # of each read-write step\n"
        ),
        Family::Rocksdb => {
            format!("rows = \"{rows}\"\nduration = \"5s\"\nwarm_cache = true\n")
        }
    };
    format!("[sizes]\nclients = {}\n{own}", answers.clients)
}

/// A text as TOML has it.
fn quoted(text: &str) -> String {
    format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""))
}

/// `"a", "b"`.
fn list(texts: &[String]) -> String {
    let all: Vec<String> = texts.iter().map(|text| quoted(text)).collect();
    all.join(", ")
}

fn builds(names: &[BuildName]) -> String {
    let config = |name: &BuildName| name.engine.facts().config.usual;
    let all: Vec<String> = names.iter().map(ToString::to_string).collect();
    let has_one = names.iter().all(|name| config(name) == config(&names[0]));
    if has_one && names.len() > 1 {
        return format!(
            "# The first is the base.\n\
            builds = [{}]\n\
            # A config that comes with Plimsoll. Your own file:\n\
            #   configs = [\"mine\"]   and at the end   [config.mine] file = \"mine.cnf\"\n\
            configs = [\"{}\"]\n",
            list(&all),
            config(&names[0]),
        );
    }
    let with_config = names.iter().map(|name| format!("{name}.{}", config(name)));
    let mut cells: Vec<String> = with_config.collect();
    let mut text = String::new();
    if let [only] = names {
        text.push_str("# One build under two configs: the second is at the end.\n");
        cells.push(format!("{only}.other"));
    }
    text + &format!(
        "# BUILD.CONFIG; the first is the base.\n\
        cells = [{}]\n",
        list(&cells)
    )
}

/// The config at the end of a plan of one build.
fn second_config(names: &[BuildName]) -> String {
    let [only] = names else {
        return String::new();
    };
    format!(
        "\n\
        [config.other]\n\
        from = \"{}\"\n\
        [config.other.settings]\n\
        # NAME = \"VALUE\"         what differs from the first; until then both are alike\n",
        only.engine.facts().config.usual
    )
}

fn servers(servers: &[(String, String)]) -> String {
    let engine = |dsn: &str| {
        dsn.split("://")
            .next()
            .unwrap_or_default()
            .replace("postgresql", "postgres")
    };
    let builds = servers
        .iter()
        .map(|(name, dsn)| format!("{}@{name}", engine(dsn)));
    format!(
        "# Servers that run already: their settings stay as they are.\n\
        builds = [{}]\n\
        configs = [\"as_is\"]\n\
        # Each of them six times, one after the other.\n\
        blocks = 6\n",
        list(&builds.collect::<Vec<_>>())
    )
}

fn dsns(servers: &[(String, String)]) -> String {
    let sections = servers.iter().map(|(name, dsn)| {
        format!(
            "\n\
            [server.{name}]\n\
            dsn = {}         # the database must be there, and empty\n\
            # password_file = \"/etc/plimsoll/NAME\"   # or password_env = \"NAME\", or password_prompt = true\n",
            quoted(dsn)
        )
    });
    sections.collect()
}

/// `mysql@8.0.33 (base) against mysql@9.7`.
fn description(names: &[String]) -> String {
    match names {
        [base, others @ ..] if !others.is_empty() => {
            format!("{base} (base) against {}", others.join(", "))
        }
        _ => names.join(""),
    }
}

/// `mysql-8.0.33-vs-9.7`.
fn plan_name(names: &[String]) -> String {
    let is_allowed = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c);
    let plain = |name: &String| -> String {
        let as_dash = |c| if is_allowed(c) { c } else { '-' };
        name.chars().map(as_dash).collect()
    };
    let engine = |name: &String| name.split(['@', '+']).next().unwrap_or_default().to_owned();
    let is_one_engine = names.iter().all(|name| engine(name) == engine(&names[0]));
    let rest = names.iter().enumerate().map(|(i, name)| match i {
        0 => plain(name),
        _ if is_one_engine => plain(
            &name[engine(name).len()..]
                .trim_start_matches(['@', '+'])
                .to_owned(),
        ),
        _ => plain(name),
    });
    rest.filter(|part| !part.is_empty())
        .collect::<Vec<_>>()
        .join("-vs-")
}

#[cfg(test)]
mod tests {
    use plimsoll_core::plan::Verdicts;

    use plimsoll_core::plan::Plan;

    use super::*;

    fn answers(compared: Compared, workload: &str) -> Answers {
        Answers {
            compared,
            workload: workload.to_owned(),
            tests: Vec::new(),
            clients: 2,
            rows: "50K".to_owned(),
            budget: "7m".to_owned(),
        }
    }

    fn builds(names: &[&str]) -> Compared {
        Compared::Builds(names.iter().map(|name| name.parse().unwrap()).collect())
    }

    fn plan(answers: &Answers) -> Plan {
        let text = plan_text(answers);
        Plan::parse("p.toml", &text).unwrap_or_else(|error| panic!("{error}\n{text}"))
    }

    #[test]
    fn plans_are_read_back_and_end_in_verdicts() {
        let of = plan(&answers(
            builds(&["mysql@8.0.33", "mysql@9.7"]),
            "sysbench-2025",
        ));
        assert_eq!(of.name, "mysql-8.0.33-vs-9.7");
        assert_eq!(of.description, "mysql@8.0.33 (base) against mysql@9.7");
        assert_eq!(of.cells[1].label, "mysql@9.7.cz12a");
        assert!(matches!(of.verdicts, Some(Verdicts::Budget(_))));
        let of = plan(&answers(
            builds(&["mysql@9.7", "postgres+mine"]),
            "insert-benchmark",
        ));
        assert_eq!(of.name, "mysql-9.7-vs-postgres-mine");
        assert_eq!(of.cells[1].label, "postgres+mine.cx10b");
        assert_eq!(of.verdicts, Some(Verdicts::Blocks(8)));
        let of = plan(&answers(
            builds(&["rocksdb@8.0.0", "rocksdb@8.9.1"]),
            "rocksdb",
        ));
        assert_eq!(of.cells.len(), 2);
        let of = plan(&answers(builds(&["postgres@18"]), "sysbench-2025"));
        assert_eq!(of.cells[1].label, "postgres@18.other");
    }

    #[test]
    fn servers_keep_their_settings_and_run_in_blocks() {
        let servers = vec![("prod".to_owned(), "postgresql://b@h/db".to_owned())];
        let of = plan(&answers(Compared::Servers(servers), "sysbench-2025"));
        assert_eq!(of.cells[0].label, "postgres@prod.as_is");
        assert_eq!((of.blocks, of.verdicts), (6, None));
    }

    #[test]
    fn a_folder_has_a_name_of_its_own() {
        for (dir, expected) in [
            ("/opt/my8035/usr", "my8035"),
            ("/opt/my8035_rel/", "my8035_rel"),
            ("/home/me/pg 17/usr/local", "pg17"),
            ("/opt/mysql-8.0.35", "mysql-8_0_35"),
            ("/usr/local", "mine"),
        ] {
            assert_eq!(label(Path::new(dir)), expected);
        }
    }

    /// `init --out sub/plan.toml --workload app.toml`, typed where app.toml is.
    #[test]
    fn a_workload_file_is_found_from_where_the_plan_is() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("app.toml");
        fs::write(&file, "").unwrap();
        let (file, sub) = (file.display().to_string(), dir.path().join("sub/plan.toml"));
        assert_eq!(seen_from(&sub, &file), file);
        // Cargo runs tests in the crate's folder.
        let here = path::absolute("Cargo.toml").unwrap().display().to_string();
        assert_eq!(seen_from(&sub, "Cargo.toml"), here);
        assert_eq!(
            seen_from(Path::new("plan.toml"), "Cargo.toml"),
            "Cargo.toml"
        );
        assert_eq!(seen_from(&sub, "nowhere.toml"), "nowhere.toml");
        assert_eq!(seen_from(&sub, "sysbench-2025"), "sysbench-2025");
    }

    /// `--workload NAME|FILE`: "A workload, or the file of your own".
    #[test]
    fn a_workload_of_ones_own_gets_a_plan() {
        let dir = tempfile::tempdir().unwrap();
        let shop = concat!(
            env!("CARGO_MANIFEST_DIR"),
            "/../../plans/workloads/shop.toml"
        );
        let file = dir.path().join("mine.toml");
        fs::copy(shop, &file).unwrap();
        let out = dir.path().join("plan.toml");
        let text = plan_text(&answers(builds(&["sqlite"]), "mine.toml"));
        fs::write(&out, &text).unwrap();
        // The plan that is made is a good one: `run` and `plan check` take it.
        load_plan(Some(&out.display().to_string())).unwrap();
        fs::remove_file(&out).unwrap();
        let places = Places {
            store: dir.path().join("runs"),
            data: Some(dir.path().join("data")),
            cache: Some(dir.path().join("cache")),
        };
        let arguments = Init {
            out: out.clone(),
            builds: vec!["sqlite".parse().unwrap()],
            basedir: Vec::new(),
            server: Vec::new(),
            workload: "mine.toml".to_owned(),
            tests: Vec::new(),
            clients: 2,
            rows: None,
            budget: "7m".to_owned(),
            force: false,
        };
        if let Err(failure) = init(&places, &arguments) {
            panic!(
                "refused: {failure:?}; {} is there: {}",
                out.display(),
                out.exists()
            );
        }
    }
}
