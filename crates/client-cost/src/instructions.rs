//! User instructions per operation, counted by callgrind.

use std::env::current_exe;
use std::fs;
use std::path::Path;
use std::process::Command;

use crate::Failed;
use crate::peers::{Limit, Peer, output};
use crate::server::Target;

const FEW: u64 = 1000;
const MANY: u64 = 5000;

/// Instructions of a peer per query on one connection: the difference of a long and a short run.
pub fn of_peer(peer: &Peer, target: &Target, folder: &Path) -> Result<f64, Failed> {
    per_query(|operations| {
        count(
            &mut Command::new("valgrind"),
            &peer.command(target, 1, Limit::Operations(operations))?,
            folder,
        )
    })
}

/// Those of our load loop, with all that it calls.
pub fn of_ours(target: &Target, folder: &Path) -> Result<f64, Failed> {
    per_query(|operations| {
        let mut client = Command::new(current_exe()?);
        client.args(["bare", &target.name, "1", &operations.to_string()]);
        count(
            Command::new("valgrind").arg("--toggle-collect=*plimsoll_load*drive*drive*"),
            &client,
            folder,
        )
    })
}

fn per_query(mut count: impl FnMut(u64) -> Result<f64, Failed>) -> Result<f64, Failed> {
    Ok((count(MANY)? - count(FEW)?) / (MANY - FEW) as f64)
}

fn count(valgrind: &mut Command, client: &Command, folder: &Path) -> Result<f64, Failed> {
    let file = folder.join("callgrind.out");
    valgrind
        .arg("--tool=callgrind")
        .arg(format!("--callgrind-out-file={}", file.display()));
    output(valgrind.arg(client.get_program()).args(client.get_args()))?;
    let counted = fs::read_to_string(&file)?;
    let total = counted
        .lines()
        .find_map(|line| line.strip_prefix("totals: "))
        .ok_or("callgrind has counted nothing")?;
    Ok(total.trim().parse()?)
}
