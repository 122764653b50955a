//! What the machine lacks to make a build, with the command that brings it.

use std::collections::BTreeMap;
use std::path::Path;

use crate::builds::error::BuildError;
use crate::builds::inspect::server_file::run;
use crate::builds::make::compiler::CXX;
use crate::builds::make::recipe::Need;

/// All that is missing is named at once.
pub(crate) fn check(needs: &[Need]) -> Result<(), BuildError> {
    let missing: Vec<&Need> = needs.iter().filter(|need| !is_here(need)).collect();
    if missing.is_empty() {
        return Ok(());
    }
    let named = |need: &&Need| {
        let header = need.header.as_ref().map(|header| format!("<{header}>"));
        need.program.clone().or(header).unwrap_or_default()
    };
    let names: Vec<String> = missing.iter().map(named).collect();
    let mut packages: Vec<&str> = missing.iter().map(|need| need.package.as_str()).collect();
    packages.sort_unstable();
    packages.dedup();
    Err(BuildError::Client(format!(
        "this machine lacks {}; install what brings it with `apt-get install {}`",
        names.join(", "),
        packages.join(" ")
    )))
}

fn is_here(need: &Need) -> bool {
    match (&need.program, &need.header) {
        (Some(program), _) => is_program(program),
        (_, Some(header)) => has_header(header),
        (None, None) => true,
    }
}

/// Whether a program is on the way that programs are looked for.
pub(crate) fn is_program(name: &str) -> bool {
    let folders = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&folders).any(|folder| folder.join(name).is_file())
}

/// Headers of C are C++, too.
fn has_header(header: &str) -> bool {
    let arguments = [
        "-E",
        "-include",
        header,
        "-x",
        "c++",
        "-o",
        "/dev/null",
        "/dev/null",
    ];
    run(Path::new(CXX), &arguments, &BTreeMap::new()).is_ok()
}

/// The package of a header that a compiler did not find, or of a program that a shell did not.
pub(crate) fn package_of<'a>(line: &str, needs: &'a [Need]) -> Option<&'a str> {
    let is_quoted = |name: &str| line.contains(&format!("\"{name}\""));
    let lacks = |name: &str| {
        let not_found = ["No such file", "not found", "command not found"];
        let mut said = not_found.iter().map(|words| format!("{name}: {words}"));
        is_quoted(name) || said.any(|words| line.contains(&words))
    };
    let found = needs.iter().find(|need| {
        let names = [&need.header, &need.program];
        names.into_iter().flatten().any(|name| lacks(name))
    });
    found.map(|need| need.package.as_str())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_missing_is_named_with_its_package() {
        let need = |program: Option<&str>, header: Option<&str>, package: &str| Need {
            program: program.map(str::to_owned),
            header: header.map(str::to_owned),
            package: package.to_owned(),
        };
        let there = [
            need(Some("sh"), None, "dash"),
            need(None, Some("stdio.h"), "libc6-dev"),
        ];
        check(&there).unwrap();
        let missing = [
            need(Some("plimsoll-no-such"), None, "no-such-tools"),
            need(None, Some("plimsoll/none.h"), "no-such-dev"),
            need(Some("sh"), None, "dash"),
        ];
        let error = check(&missing).unwrap_err().to_string();
        assert_eq!(
            error,
            "this machine lacks plimsoll-no-such, <plimsoll/none.h>; install what brings it with \
            `apt-get install no-such-dev no-such-tools`"
        );
        let line = "x.c:1:10: fatal error: plimsoll/none.h: No such file or directory";
        assert_eq!(package_of(line, &missing), Some("no-such-dev"));
        assert_eq!(package_of("x.c:1: error: y", &missing), None);
        let line = "/bin/sh: 1: plimsoll-no-such: not found";
        assert_eq!(package_of(line, &missing), Some("no-such-tools"));
        // It is there, and complains.
        let line = "plimsoll-no-such: error: unrecognized command-line option '-fx'";
        assert_eq!(package_of(line, &missing), None);
    }
}
