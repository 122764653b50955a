//! The live view of a terminal.

use std::process::{Command, Stdio};

use crate::support::{Place, text};

/// Runs the program in a terminal of so many rows; what the terminal is sent.
fn in_terminal(place: &Place, options: &str, rows: u32, environment: &[(&str, &str)]) -> String {
    let program = env!("CARGO_BIN_EXE_plimsoll");
    let line = format!(
        "stty rows {rows} cols 100; '{program}' run two.toml {options} --data data; echo ended $?"
    );
    let output = Command::new("script")
        .args(["-qec", &line, "/dev/null"])
        .current_dir(place.dir.path())
        .env("TERM", "xterm")
        .envs(environment.iter().copied())
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let sent = text(&output.stdout);
    // On a busy machine nothing may be decided.
    let has_ended = ["ended 0", "ended 4"].iter().any(|end| sent.contains(end));
    assert!(has_ended, "{sent}");
    sent
}

#[test]
fn ratios_fill_the_terminal_and_lines_stay_above_them() {
    let place = Place::new();
    let plan = crate::support::SMALL_PLAN
        .replace("[sizes]", "[verdicts]\nblocks = 6\n[sizes]")
        .replace("\"l.x\", \"l.i1\", \"l.i2\", \"qr100\"", "\"l.x\"")
        .replace("20K", "2K");
    std::fs::write(place.path("two.toml"), plan).unwrap();
    let sent = in_terminal(&place, "", 30, &[]);
    for wanted in [
        "sqlite.wal_off",
        "trial 18 of 18",
        "to go",
        "(A/A, 99 %)",
        "(trial 18 of 18)",
        "Verdicts against",
    ] {
        assert!(sent.contains(wanted), "{wanted}: {sent}");
    }
    let head = sent.find("(A/A, 99 %)").unwrap();
    assert!(
        head < sent.find("(trial 18 of 18)").unwrap(),
        "the table is there before the end: {sent}"
    );
    assert!(
        sent.contains("\x1b[1A"),
        "the view is drawn again in its place: {sent:?}"
    );

    // Where lines cannot be taken back there is no view, and nothing else is missing.
    for (rows, environment) in [(5, ("TERM", "xterm")), (30, ("TERM", "dumb"))] {
        let sent = in_terminal(&place, "--screen", rows, &[environment]);
        assert!(
            !sent.contains("\x1b[1A") && sent.contains("(trial 2 of 2)"),
            "{sent}"
        );
    }
    let coloured = |sent: &str| sent.contains("\x1b[1m");
    let plain = in_terminal(&place, "--screen", 30, &[("NO_COLOR", "1")]);
    assert!(coloured(&sent) && !coloured(&plain));
}
