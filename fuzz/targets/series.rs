//! Tables of seconds and turns: the first byte says which.
#![no_main]

use libfuzzer_sys::fuzz_target;
use plimsoll_store::series::{
    read_host, read_levels, read_operations, read_operations_together, read_turns, read_waits,
};

fuzz_target!(|bytes: &[u8]| {
    let Some((which, text)) = bytes.split_first() else {
        return;
    };
    let dir = tempfile::tempdir_in("/dev/shm").expect("there is room");
    let file = dir.path().join("x.tsv");
    std::fs::write(&file, text).expect("there is room");
    match which % 5 {
        0 => {
            let (each, together) = (read_operations(&file), read_operations_together(&file));
            assert_eq!(each.is_ok(), together.is_ok());
            if let (Ok(each), Ok(together)) = (each, together) {
                let sum = |ok: &mut dyn Iterator<Item = u64>| ok.fold(0u64, u64::saturating_add);
                assert_eq!(
                    sum(&mut each.iter().map(|row| row.ok)),
                    sum(&mut together.iter().map(|row| row.ok))
                );
            }
        }
        1 => drop(read_host(&file)),
        2 => drop(read_turns(&file)),
        3 => drop(read_levels(&file)),
        _ => drop(read_waits(&file)),
    }
});
