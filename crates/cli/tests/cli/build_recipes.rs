//! Recipes of `build make` that use CMake: projects of a few lines that call themselves MariaDB and
//! MySQL, built by the shipped recipes, the real CMake and the real compiler. And what a plan says
//! of builds that are not made yet.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Output};

use plimsoll_testkit::{cached_build, write_script};
use serde_json::Value;

use crate::support::{Place, text};

/// What the recipes look for, and these projects have no use for.
const TOOLS: [&str; 6] = ["bison", "perl", "xz", "bzip2", "rpcgen", "pkg-config"];
const HEADERS: [&str; 8] = [
    "openssl/ssl.h",
    "curses.h",
    "pcre2posix.h",
    "fmt/args.h",
    "libaio.h",
    "lz4.h",
    "zstd.h",
    "tirpc/netconfig.h",
];

/// As the engines' own: options of theirs before those of the build type.
const CMAKE: &str = "cmake_minimum_required(VERSION 3.5)
project(server C CXX)
set(CMAKE_CXX_FLAGS \"${CMAKE_CXX_FLAGS} -O1 -fno-omit-frame-pointer\")
add_executable(SERVER server.cc)
install(TARGETS SERVER RUNTIME DESTINATION bin)
install(FILES errmsg.sys DESTINATION share/english)
install(PROGRAMS mariadb-install-db DESTINATION scripts)
";

/// A source in `folder`, whose server states `version`.
fn project(place: &Place, folder: &str, server: &str, version: &str) {
    let source = place.path(folder);
    fs::create_dir_all(&source).unwrap();
    let program = format!(
        "#include <stdio.h>\n#ifndef NDEBUG\n#error assertions are on\n#endif\n\
        int main() {{ printf(\"{server}  Ver {version} for Linux on x86_64\\n\"); return 0; }}\n"
    );
    let mut numbers = version.split(['.', '-']);
    let keys = ["MAJOR", "MINOR", "PATCH"];
    let lines = keys.map(|key| format!("MYSQL_VERSION_{key}={}\n", numbers.next().unwrap()));
    for (name, content) in [
        ("CMakeLists.txt", CMAKE.replace("SERVER", server)),
        ("server.cc", program),
        ("errmsg.sys", String::new()),
        ("mariadb-install-db", "#!/bin/sh\n".to_owned()),
        ("VERSION", lines.concat()),
    ] {
        fs::write(source.join(name), content).unwrap();
    }
    let of_engine = if server == "mariadbd" {
        "storage/maria"
    } else {
        "storage/temptable"
    };
    fs::create_dir_all(source.join(of_engine)).unwrap();
    fs::write(source.join(of_engine).join("x"), "").unwrap();
}

fn place() -> Place {
    let place = Place::new();
    // Under root nobody compiles.
    open_to_all(place.dir.path());
    for tool in TOOLS {
        write_script(&place.path("tools").join(tool), "exit 1");
    }
    for header in HEADERS {
        let path = place.path("headers").join(header);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, "").unwrap();
    }
    place
}

fn open_to_all(folder: &Path) {
    use std::os::unix::fs::PermissionsExt;
    fs::set_permissions(folder, fs::Permissions::from_mode(0o777)).unwrap();
}

fn command(place: &Place, arguments: &[&str]) -> Command {
    let tools = place.path("tools");
    let path = format!("{}:{}", std::env::var("PATH").unwrap(), tools.display());
    let mut command = place.command(arguments);
    command
        .args(["--cache", "cache"])
        .env("PATH", path)
        .env("CPATH", place.path("headers"));
    command
}

fn run(place: &Place, arguments: &[&str]) -> Output {
    command(place, arguments).output().unwrap()
}

fn toolchain_of(place: &Place, build: &str) -> Value {
    let shown = run(place, &["build", "show", build, "--json"]);
    let shown: Value = serde_json::from_slice(&shown.stdout).unwrap();
    shown["build"]["toolchain"].clone()
}

#[test]
fn mariadb_gets_the_flag_set_behind_its_own_options() {
    let place = place();
    project(&place, "maria", "mariadbd", "10.11.18-MariaDB");
    let arguments = ["--source", "maria", "--flags", "o3nofp", "--label", "mine"];
    let made = run(
        &place,
        &[&["build", "make", "mariadb"], &arguments[..]].concat(),
    );
    let stderr = text(&made.stderr);
    assert_eq!(made.status.code(), Some(0), "{stderr}");
    assert!(text(&made.stdout).starts_with("mariadb+mine  10.11.18-MariaDB  "));
    let toolchain = toolchain_of(&place, "mariadb+mine");
    let options = toolchain["optimisation"].as_str().unwrap();
    assert!(
        options.contains("-O3") && !options.contains("-O1"),
        "{toolchain:#}"
    );
    assert!(
        toolchain["features"]
            .as_str()
            .unwrap()
            .contains("Galera off")
    );
    // What the compiler works with belongs to what a build is.
    for (key, wanted) in [("binutils", "ld"), ("libc", "libc ")] {
        assert!(
            toolchain[key].as_str().unwrap().contains(wanted),
            "{toolchain:#}"
        );
    }
    let list = text(&run(&place, &["build", "list"]).stdout);
    assert!(!list.contains("unfinished"), "{list}");
}

#[test]
fn mysql_says_which_boost_it_wants_and_gives_up_the_sources_frame_pointers() {
    let place = place();
    project(&place, "my", "mysqld", "8.0.43");
    let make = || {
        let arguments = ["--source", "my", "--flags", "o2", "--label", "my8043_o2"];
        run(
            &place,
            &[&["build", "make", "mysql"], &arguments[..]].concat(),
        )
    };
    let failed = make();
    let stderr = text(&failed.stderr);
    assert_eq!(failed.status.code(), Some(3), "{stderr}");
    let boost = place.path("cache/boost");
    assert!(
        stderr.contains("look for Boost failed: ERROR: this version needs Boost")
            && stderr.contains(boost.to_str().unwrap()),
        "{stderr}"
    );

    fs::create_dir(&boost).unwrap();
    let made = make();
    assert_eq!(made.status.code(), Some(0), "{}", text(&made.stderr));
    let toolchain = toolchain_of(&place, "mysql+my8043_o2");
    let options = toolchain["optimisation"].as_str().unwrap();
    assert!(
        options.contains("-O2") && !options.contains("-fno-omit-frame-pointer"),
        "{toolchain:#}"
    );
}

#[test]
fn the_source_of_another_engine_is_refused_before_it_is_read() {
    let place = place();
    project(&place, "maria", "mariadbd", "10.11.18-MariaDB");
    fs::create_dir(place.path("papers")).unwrap();
    for (engine, folder, wanted) in [
        ("mysql", "maria", "storage/temptable is not there"),
        (
            "rocksdb",
            "papers",
            "include/rocksdb/version.h is not there",
        ),
        ("postgres", "papers", "configure is not there"),
    ] {
        let refused = run(&place, &["build", "make", engine, "--source", folder]);
        let stderr = text(&refused.stderr);
        assert_eq!(refused.status.code(), Some(2), "{stderr}");
        let named = format!("{folder} is not a source of this engine");
        assert!(
            stderr.contains(&named) && stderr.contains(wanted),
            "{stderr}"
        );
        assert!(!stderr.contains("cache/work"), "{stderr}");
    }
    assert!(!place.path("cache/work").exists());
}

#[test]
fn what_a_failed_build_left_is_listed_and_removed() {
    let place = place();
    project(&place, "maria", "mariadbd", "10.11.18-MariaDB");
    fs::write(place.path("maria/server.cc"), "int main() { return 0 }\n").unwrap();
    let arguments = ["build", "make", "mariadb", "--source", "maria"];
    let failed = run(&place, &arguments);
    let stderr = text(&failed.stderr);
    assert_eq!(failed.status.code(), Some(3), "{stderr}");
    assert!(
        stderr.contains("compile failed: ") && stderr.contains("`plimsoll build clean` removes it"),
        "{stderr}"
    );
    // A fetch that was cut off.
    fs::create_dir_all(place.path("cache/sources/apt-source-x/apt")).unwrap();
    let list = text(&run(&place, &["build", "list"]).stdout);
    let line = list
        .lines()
        .find(|line| line.starts_with("work/mariadb+maria-o2nofp "));
    assert!(
        line.is_some_and(|line| line.contains("unfinished")),
        "{list}"
    );

    let cleaned = text(&run(&place, &["build", "clean"]).stdout);
    for name in ["work/mariadb+maria-o2nofp ", "sources/apt-source-x "] {
        let line = cleaned.lines().find(|line| line.starts_with(name));
        assert!(
            line.is_some_and(|line| line.contains("removed")),
            "{cleaned}"
        );
        assert!(!place.path("cache").join(name.trim()).exists());
    }
    let again = text(&run(&place, &["build", "clean"]).stdout);
    assert_eq!(again, "nothing is left over\n");
}

#[test]
fn a_plan_says_what_has_to_be_compiled_first() {
    let place = Place::new();
    let explain = |plan: &str, more: &[&str]| {
        let arguments = [&["plan", "explain", plan, "--cache", "cache"], more].concat();
        let explained = place.run(&arguments);
        let stderr = text(&explained.stderr);
        assert_eq!(explained.status.code(), Some(0), "{stderr}");
        text(&explained.stdout)
    };
    let told = explain("postgres-13-to-19-source", &[]);
    assert!(
        told.contains("\n5 builds are compiled first, once, about "),
        "{told}"
    );
    assert!(
        told.contains("\n  plimsoll build make postgres@13 --flags o2nofp  "),
        "{told}"
    );
    let json: Value = serde_json::from_str(&explain("postgres-flags", &["--json"])).unwrap();
    let builds = json["to_make"].as_array().unwrap();
    assert_eq!(builds.len(), 5, "{json:#}");
    assert_eq!(builds[4]["name"], "postgres@18+source-profile");
    assert!(builds[4]["seconds"].as_f64().unwrap() > 0.0);
    let plan = "name = \"m\"\nworkload = \"sysbench-2025\"\nbuilds = [\"mysql@9.7+source\"]\n\
                configs = [\"cz12a\"]\n";
    fs::write(place.path("m.toml"), plan).unwrap();
    let told = explain("m.toml", &[]);
    assert!(
        told.contains("1 build is compiled first, once, about ")
            && told.contains(", assumed, 100 min on 2 CPUs"),
        "{told}"
    );
    // What is fetched is not compiled.
    let told = explain("postgres-9.6-to-18", &[]);
    assert!(!told.contains("compiled first"), "{told}");

    let run = [
        "run",
        "postgres-13-to-19-source",
        "--offline",
        "--cache",
        "cache",
    ];
    let refused = place.run(&run);
    let stderr = text(&refused.stderr);
    assert_eq!(refused.status.code(), Some(2), "{stderr}");
    assert!(
        stderr.contains(
            "postgres@13+source-o2nofp is not here and may not be compiled now; compile it once \
            with `plimsoll build make postgres@13 --flags o2nofp`"
        ),
        "{stderr}"
    );
}

/// The smallest of the servers, compiled from its source as `make test` prepares it.
#[test]
fn a_postgresql_that_was_compiled_here_is_loaded_next_to_a_package() {
    let test =
        "cli::build_recipes::a_postgresql_that_was_compiled_here_is_loaded_next_to_a_package";
    let [Some(compiled), Some(packaged)] =
        ["postgres@13+source-o2nofp", "postgres@18"].map(|wanted| cached_build(test, wanted))
    else {
        return;
    };
    let place = Place::new();
    fs::set_permissions(place.dir.path(), fs::Permissions::from_mode(0o755)).unwrap();
    let cache = compiled.cache.to_str().unwrap();
    let run = |arguments: &[&str]| {
        let output = place.run(&[arguments, &["--cache", cache]].concat());
        assert!(output.status.success(), "{}", text(&output.stderr));
        output
    };
    let shown = run(&["build", "show", &compiled.name, "--json"]);
    let shown: Value = serde_json::from_slice(&shown.stdout).unwrap();
    let toolchain = &shown["build"]["toolchain"];
    assert_eq!(toolchain["optimisation"], "-O2 -fno-omit-frame-pointer");
    // As the server itself says, which the program has been asked.
    let flags = toolchain["flags"].as_str().unwrap();
    assert!(flags.contains("-O2 -fno-omit-frame-pointer"), "{flags}");

    let plan = format!(
        "name = \"t\"\nworkload = \"sysbench-2025\"\ncomparable = false\nbuilds = [\"{}\", \
         \"{}\"]\nconfigs = [\"c\"]\nwait = \"100ms\"\ntests = [\"point-query\"]\n\
         [sizes]\nclients = 1\ntables = 1\nrows = \"5K\"\nduration = \"1s\"\nwarm_up = \"0ms\"\n\
         [config.c]\nsettings = {{ fsync = \"off\" }}\n",
        packaged.name, compiled.name
    );
    fs::write(place.path("plan.toml"), plan).unwrap();
    let ran = run(&["run", "plan.toml", "--screen", "--offline"]);
    let said = text(&ran.stdout);
    assert!(
        said.contains(&format!("{}.c", compiled.name)) && said.contains('†'),
        "another compiler or other flags than the package's: {said}"
    );
}
