//! Whom the server runs as. PostgreSQL refuses root, so root's servers run as `nobody`, who must be
//! able to reach every folder on the way to its files.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use crate::EngineError;
use crate::foreign_folder::give;
use crate::process::UserIds;

/// `nobody` and its group.
const NOBODY: UserIds = UserIds {
    uid: 65534,
    gid: 65534,
};

/// Whom the server runs as.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::postgres) enum Account {
    /// We are not root: as ourselves.
    Ourselves,
    /// We are root: as somebody who is not.
    Other(UserIds),
}

impl Account {
    /// Whom this process starts servers as.
    pub fn of_servers() -> Self {
        if rustix::process::geteuid().is_root() {
            Self::Other(NOBODY)
        } else {
            Self::Ourselves
        }
    }

    /// The ids to change to, if any.
    pub fn user(self) -> Option<UserIds> {
        match self {
            Self::Ourselves => None,
            Self::Other(user) => Some(user),
        }
    }

    /// Makes `path` the server's, and lets nobody else (but root) into it: the server trusts
    /// whoever reaches its socket.
    pub fn give(self, path: &Path, mode: u32) -> Result<(), EngineError> {
        give(path, self.user(), mode).map_err(|error| {
            EngineError::new(format!(
                "hand {} to postgres's user: {error}; choose a folder on a disk with permissions",
                path.display()
            ))
        })
    }

    /// Checks that the server's user may pass every folder above `path`. `path` is absolute and
    /// free of symbolic links; `way_out` says what to do about a folder that is closed. Access
    /// lists are not looked at.
    pub fn check_reach(self, path: &Path, way_out: &str) -> Result<(), EngineError> {
        let Self::Other(user) = self else {
            return Ok(());
        };
        let Some((folder, mode)) = first_closed(path, user)? else {
            return Ok(());
        };
        Err(EngineError::new(format!(
            "postgres refuses to run as root, and its user nobody (uid {}) may not enter {} (mode \
            {mode:o}) on the way to {}; {way_out}",
            user.uid,
            folder.display(),
            path.display()
        )))
    }
}

/// The first folder from the root down to `path` that `user` cannot pass, and its mode.
fn first_closed(path: &Path, user: UserIds) -> Result<Option<(PathBuf, u32)>, EngineError> {
    let mut folders: Vec<&Path> = path.ancestors().skip(1).collect();
    folders.reverse();
    for folder in folders {
        let metadata = fs::metadata(folder).map_err(|error| {
            EngineError::new(format!(
                "look at {}: {error}; check that it is there",
                folder.display()
            ))
        })?;
        if !may_search(metadata.mode(), metadata.uid(), metadata.gid(), user) {
            return Ok(Some((folder.to_owned(), metadata.mode() & 0o7777)));
        }
    }
    Ok(None)
}

/// Whether a folder of this mode and owner can be passed by somebody who is in one group only.
fn may_search(mode: u32, owner: u32, group: u32, user: UserIds) -> bool {
    let class = if owner == user.uid {
        6
    } else if group == user.gid {
        3
    } else {
        0
    };
    mode >> class & 1 == 1
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn the_class_that_fits_first_decides() {
        for (mode, owner, group, expected) in [
            (0o755, 0, 0, true),
            (0o700, 0, 0, false),
            (0o1777, 0, 0, true),
            (0o700, 65534, 0, true),
            (0o077, 65534, 65534, false),
            (0o710, 0, 65534, true),
            (0o701, 0, 65534, false),
            (0o701, 0, 0, true),
            (0o766, 0, 0, false),
        ] {
            assert_eq!(
                may_search(mode, owner, group, NOBODY),
                expected,
                "{mode:o} {owner} {group}"
            );
        }
    }

    #[test]
    fn the_outermost_closed_folder_is_named() {
        let dir = tempfile::tempdir().unwrap();
        let open = dir.path().canonicalize().unwrap();
        let closed = open.join("closed");
        let inner = closed.join("inner/data");
        fs::create_dir_all(&inner).unwrap();
        for folder in [&open, &closed, &closed.join("inner")] {
            fs::set_permissions(folder, fs::Permissions::from_mode(0o755)).unwrap();
        }
        // Somebody who owns nothing here. The folder for temporary files may be closed to them
        // already.
        let somebody = UserIds {
            uid: 64999,
            gid: 64999,
        };
        let above = first_closed(&open.join("x"), somebody).unwrap();
        assert_eq!(first_closed(&inner, somebody).unwrap(), above);
        fs::set_permissions(&closed, fs::Permissions::from_mode(0o700)).unwrap();
        let (folder, mode) = above.unwrap_or((closed, 0o700));
        assert_eq!(
            first_closed(&inner, somebody).unwrap(),
            Some((folder.clone(), mode))
        );

        let message = Account::Other(somebody)
            .check_reach(&inner, "choose another with --data DIR")
            .unwrap_err()
            .message;
        assert!(
            message.contains(&format!(
                "may not enter {} (mode {mode:o})",
                folder.display()
            )),
            "{message}"
        );
        assert!(
            message.ends_with("choose another with --data DIR"),
            "{message}"
        );
        Account::Ourselves.check_reach(&inner, "").unwrap();
    }
}
