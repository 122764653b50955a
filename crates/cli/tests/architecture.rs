//! Keeps the arrows between the crates as they were drawn: downwards only, and none that nobody
//! decided on.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

use serde_json::Value;

/// Every crate by its folder, from the top of the house to its floor, and the crates it may use
/// directly. A new crate or arrow is a decision: it goes into ARCHITECTURE.md and then here.
const ALLOWED: &[(&str, &[&str])] = &[
    (
        "cli",
        &[
            "lab", "report", "analysis", "import", "store", "host", "core",
        ],
    ),
    (
        "lab",
        &[
            "analysis", "workload", "engine", "host", "load", "store", "stats", "core",
        ],
    ),
    ("report", &["analysis", "store", "core"]),
    ("import", &["analysis", "store", "core"]),
    ("analysis", &["store", "stats", "core"]),
    (
        TOOL,
        &["testkit", "workload", "engine", "host", "load", "core"],
    ),
    (TESTKIT, &["core", "load"]),
    (AUDIT, &[]),
    (MODELS, &["core"]),
    ("workload", &["load", "engine", "core"]),
    ("load", &["core"]),
    ("engine", &["core"]),
    ("host", &["core"]),
    ("store", &["core"]),
    ("stats", &[]),
    ("core", &[]),
];

/// What the tests of every crate may use besides, and nothing else.
const TESTKIT: &str = "testkit";
const AUDIT: &str = "audit";

/// A program of the tests, which is not shipped.
const TOOL: &str = "client-cost";
/// The load's modules once more, with locks of a scheduler.
const MODELS: &str = "load-models";

#[derive(Clone, Copy, Debug, PartialEq)]
enum Use {
    /// By the crate's code or its build script.
    Shipped,
    /// By its tests and benches only.
    Dev,
}

/// The crates of a workspace, and which others each one uses.
type Graph = BTreeMap<String, Vec<(String, Use)>>;

/// One sentence per arrow of `graph` that is not allowed, per allowed one that is not in `graph`, and
/// per crate that `ALLOWED` and `graph` do not both know.
fn violations(graph: &Graph) -> Vec<String> {
    let mut found = Vec::new();
    for (crate_name, uses) in graph {
        let Some((_, allowed)) = ALLOWED.iter().find(|(name, _)| name == crate_name) else {
            found.push(format!(
                "{crate_name} is not in the table of allowed arrows"
            ));
            continue;
        };
        for (used, kind) in uses {
            let is_allowed = allowed.contains(&used.as_str())
                || (*kind == Use::Dev && [TESTKIT, AUDIT].contains(&used.as_str()));
            if !is_allowed {
                found.push(format!("{crate_name} -> {used} ({kind:?}) is not allowed"));
            }
        }
    }
    for (name, allowed) in ALLOWED {
        let Some(uses) = graph.get(*name) else {
            found.push(format!(
                "{name} is in the table of allowed arrows and not in the workspace"
            ));
            continue;
        };
        let unused = allowed
            .iter()
            .filter(|allowed| !uses.contains(&((**allowed).to_owned(), Use::Shipped)));
        found.extend(unused.map(|allowed| format!("{name} -> {allowed} is allowed and not used")));
    }
    found
}

/// The graph in the answer of `cargo metadata --no-deps`. A crate is named by its folder; what has
/// no path is not ours.
fn graph_of(metadata: &Value) -> Graph {
    let folder_name = |folder: &Path| {
        folder
            .file_name()
            .expect("a crate lies in a folder")
            .to_string_lossy()
            .into_owned()
    };
    let packages = metadata["packages"]
        .as_array()
        .expect("cargo metadata lists packages");
    packages
        .iter()
        .map(|package| {
            let manifest = Path::new(
                package["manifest_path"]
                    .as_str()
                    .expect("a package has a manifest"),
            );
            let uses = package["dependencies"]
                .as_array()
                .expect("a package lists dependencies")
                .iter()
                .filter_map(|dependency| {
                    let kind = if dependency["kind"] == "dev" {
                        Use::Dev
                    } else {
                        Use::Shipped
                    };
                    Some((folder_name(Path::new(dependency["path"].as_str()?)), kind))
                });
            (
                folder_name(manifest.parent().expect("a manifest lies in a folder")),
                uses.collect(),
            )
        })
        .collect()
}

#[test]
fn the_workspace_has_only_allowed_arrows() {
    let output = Command::new(env!("CARGO"))
        .args([
            "metadata",
            "--format-version",
            "1",
            "--no-deps",
            "--offline",
        ])
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .output()
        .expect("cargo runs");
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    let graph =
        graph_of(&serde_json::from_slice(&output.stdout).expect("cargo metadata prints JSON"));

    assert!(
        graph["cli"].contains(&("lab".into(), Use::Shipped)),
        "the graph was not read: {graph:?}"
    );
    assert_eq!(violations(&graph), Vec::<String>::new());
}

#[test]
fn allowed_arrows_run_downwards() {
    for (row, (name, allowed)) in ALLOWED.iter().enumerate() {
        for used in *allowed {
            let is_below = ALLOWED[row + 1..].iter().any(|(below, _)| below == used);
            assert!(
                is_below && (*used != TESTKIT || *name == TOOL),
                "{name} -> {used}"
            );
        }
    }
}

#[test]
fn a_forbidden_arrow_is_found() {
    let cases = [
        (
            "load",
            "engine",
            None,
            "load -> engine (Shipped) is not allowed",
        ),
        (
            "report",
            "engine",
            Some("dev"),
            "report -> engine (Dev) is not allowed",
        ),
        (
            "core",
            "store",
            Some("build"),
            "core -> store (Shipped) is not allowed",
        ),
        (
            "lab",
            "testkit",
            None,
            "lab -> testkit (Shipped) is not allowed",
        ),
        (
            "store",
            "shed",
            None,
            "store -> shed (Shipped) is not allowed",
        ),
    ];
    assert_eq!(
        violations(&graph_of(&made_up_metadata("cli", "lab", None))),
        Vec::<String>::new()
    );
    assert_eq!(
        violations(&graph_of(&made_up_metadata("load", "testkit", Some("dev")))),
        Vec::<String>::new()
    );
    for (from, to, kind, expected) in cases {
        assert_eq!(
            violations(&graph_of(&made_up_metadata(from, to, kind))),
            [expected]
        );
    }
}

#[test]
fn an_allowed_arrow_that_nothing_uses_is_found() {
    let mut graph = graph_of(&made_up_metadata("cli", "lab", None));
    let uses = graph.get_mut("report").unwrap();
    uses.retain(|(used, _)| used != "store");
    // Tests alone do not need an arrow of their crate.
    uses.push(("store".into(), Use::Dev));
    assert_eq!(
        violations(&graph),
        ["report -> store is allowed and not used"]
    );
}

#[test]
fn a_crate_that_only_one_side_knows_is_found() {
    let mut graph = graph_of(&made_up_metadata("cli", "lab", None));
    graph.insert("shed".into(), Vec::new());
    graph.remove("host");
    assert_eq!(
        violations(&graph),
        [
            "shed is not in the table of allowed arrows",
            "host is in the table of allowed arrows and not in the workspace"
        ]
    );
}

/// What `cargo metadata` would print for all our crates with the allowed arrows and one more.
fn made_up_metadata(from: &str, to: &str, kind: Option<&str>) -> Value {
    let arrow = |to: &str, kind: Option<&str>| {
        let path = format!("/house/crates/{to}");
        serde_json::json!({"name": "ours", "kind": kind, "path": path})
    };
    let packages = ALLOWED.iter().map(|(name, allowed)| {
        let mut dependencies = vec![serde_json::json!({"name": "serde", "kind": null})];
        dependencies.extend(allowed.iter().map(|to| arrow(to, None)));
        dependencies.extend((*name == from).then(|| arrow(to, kind)));
        let manifest = format!("/house/crates/{name}/Cargo.toml");
        serde_json::json!({"manifest_path": manifest, "dependencies": dependencies})
    });
    serde_json::json!({"packages": packages.collect::<Vec<_>>()})
}

/// Whoever makes a command elsewhere gives the child our whole environment, and the passwords in
/// it.
#[test]
fn commands_of_children_are_made_in_one_place() {
    const PLACE: &str = "engine/src/process/command.rs";
    let mut found = Vec::new();
    for file in sources(&Path::new(env!("CARGO_MANIFEST_DIR")).join("..")) {
        let name = file.to_string_lossy().into_owned();
        let is_test = name.ends_with("/tests.rs")
            || name.contains("/tests/")
            || name.contains("/testkit/")
            || name.contains("/client-cost/");
        if is_test {
            continue;
        }
        let text = std::fs::read_to_string(&file).unwrap();
        let shipped = text.split("#[cfg(test)]").next().unwrap_or_default();
        let makes = |line: &&str| {
            line.match_indices("Command::new(")
                .any(|(at, _)| !line[..at].ends_with("Build"))
        };
        found.extend(
            shipped
                .lines()
                .filter(makes)
                .map(|line| format!("{name}: {}", line.trim())),
        );
    }
    assert!(
        found.len() == 1 && found[0].contains(PLACE),
        "use plimsoll_engine::process::child_command: {found:#?}"
    );
}

/// The map is only worth reading if its places exist. A place is written from its crate or from the
/// folder that a paragraph is about.
#[test]
fn places_on_the_map_exist() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let map = std::fs::read_to_string(root.join("ARCHITECTURE.md")).unwrap();
    let files: Vec<String> = sources(&root.join("crates"))
        .into_iter()
        .map(|file| file.to_string_lossy().replace("/src/", "/"))
        .collect();
    let crates: Vec<&str> = ALLOWED.iter().map(|(name, _)| *name).collect();
    let is_place = |text: &&str| {
        let is_plain = |c: char| c.is_ascii_lowercase() || c == '_' || c == '/' || c == '.';
        let begins = text.split('/').next().unwrap_or_default();
        text.contains('/')
            && text.chars().all(is_plain)
            && (text.ends_with(".rs") || crates.contains(&begins))
    };
    let exists = |place: &str| {
        let inside = format!("/{place}");
        let in_tests = |(name, _): &(&str, _)| root.join("crates").join(name).join(place).exists();
        root.join(place).exists()
            || root.join("crates").join(place).exists()
            || ALLOWED.iter().any(in_tests)
            || files
                .iter()
                .any(|file| file.ends_with(&inside) || file.contains(&format!("{inside}/")))
            || (place.ends_with('/') && files.iter().any(|file| file.contains(&inside)))
    };
    let places: Vec<&str> = map.split('`').skip(1).step_by(2).filter(is_place).collect();
    let missing: Vec<&str> = places
        .iter()
        .copied()
        .filter(|place| !exists(place))
        .collect();
    assert!(places.len() > 20, "{places:?}");
    assert!(missing.is_empty(), "{missing:?}");
}

/// The files of all crates that are shipped.
fn sources(crates: &Path) -> Vec<std::path::PathBuf> {
    let entries = |dir: &Path| -> Vec<std::path::PathBuf> {
        std::fs::read_dir(dir)
            .unwrap()
            .map(|entry| entry.unwrap().path())
            .collect()
    };
    let mut folders: Vec<_> = entries(crates)
        .into_iter()
        .map(|dir| dir.join("src"))
        .filter(|dir| dir.is_dir())
        .collect();
    let mut files = Vec::new();
    while let Some(folder) = folders.pop() {
        for path in entries(&folder) {
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                files.push(path);
            }
        }
    }
    files
}
