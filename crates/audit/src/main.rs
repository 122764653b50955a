//! `plimsoll-audit STORE DATA`: prints what is not as it must be, and ends with 1 if there is
//! anything.

use std::path::Path;
use std::process::ExitCode;

use plimsoll_audit::{Facts, audit};

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [store, data] = &arguments[..] else {
        eprintln!("usage: plimsoll-audit STORE DATA");
        return ExitCode::from(2);
    };
    let audit = audit(Path::new(store), Path::new(data), &Facts::default());
    for finding in &audit.findings {
        println!("{finding}");
    }
    println!("{} checks, {} findings", audit.checks, audit.findings.len());
    ExitCode::from(u8::from(!audit.findings.is_empty()))
}
