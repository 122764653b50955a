//! Which machine this is, without telling anything about it.

use std::fs;
use std::path::Path;

use sha2::{Digest, Sha256};

use crate::Answer;

/// systemd's: written once, when the system is installed.
const FILE: &str = "machine-id";
/// What is hashed with it, so that nobody who knows the id of a machine finds it in our files.
const SALT: &[u8] = b"plimsoll machine\n";
/// 64 bits: far from any collision among machines that are ever compared.
const BYTES: usize = 8;

/// A hash of the machine's id in hexadecimal digits: the same at every start of the machine, another
/// on every other one. Two machines that were copied from one image have the same id until
/// `systemd-machine-id-setup` gives them new ones.
///
/// # Errors
/// The reason, where the system has no id: in containers, say.
pub fn machine_id() -> Answer<String> {
    of_etc(Path::new("/etc"))
}

pub(crate) fn of_etc(etc: &Path) -> Answer<String> {
    let file = etc.join(FILE);
    let text = fs::read_to_string(&file)
        .map_err(|error| format!("cannot read {}: {error}", file.display()))?;
    let id = text.trim();
    let is_id = id.len() == 32 && id.bytes().all(|byte| byte.is_ascii_hexdigit());
    if !is_id {
        return Err(format!("{} holds no id", file.display()));
    }
    let digest = Sha256::new().chain_update(SALT).chain_update(id).finalize();
    let digits = digest.iter().take(BYTES).map(|byte| format!("{byte:02x}"));
    Ok(digits.collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_is_hashed_and_nothing_else_is_one() {
        let etc = tempfile::tempdir().unwrap();
        assert!(of_etc(etc.path()).unwrap_err().contains("cannot read"));
        let file = etc.path().join(FILE);
        // printf 'plimsoll machine\n0123456789abcdef0123456789abcdef' | sha256sum
        for (text, id) in [
            (
                "0123456789abcdef0123456789abcdef\n",
                Some("11dc46d50c67ac13"),
            ),
            (
                "0123456789abcdef0123456789abcdee\n",
                Some("16e64dfeaad6ea46"),
            ),
            ("", None),
            ("uninitialized\n", None),
        ] {
            fs::write(&file, text).unwrap();
            assert_eq!(of_etc(etc.path()).ok().as_deref(), id, "{text:?}");
        }
    }
}
