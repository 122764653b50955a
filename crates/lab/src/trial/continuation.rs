//! A trial that goes on in a new image of its process: the same number, parent, pipes and limits,
//! and none of its memory. So each step of an embedded engine begins as cold as a process of its
//! own does.

use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::AsRawFd;
use std::os::unix::process::CommandExt;

use plimsoll_engine::process::child_command;
use rustix::fs::{MemfdFlags, memfd_create};
use serde::{Deserialize, Serialize};

use crate::error::LabError;
use crate::message::TrialOrder;

/// What one image leaves to the next.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Continuation {
    pub order: TrialOrder,
    /// The first step that is not done, from 0.
    pub next_step: usize,
    /// Since the trial's start.
    pub seconds: f64,
    /// What was read of standard input and not obeyed yet.
    pub input: Vec<u8>,
}

impl Continuation {
    /// Reads what the image before has left in this file descriptor.
    pub fn read(fd: u32) -> Result<Self, LabError> {
        let mut text = String::new();
        let read = File::open(path_of(fd)).and_then(|mut file| file.read_to_string(&mut text));
        let problem = |error: &dyn std::fmt::Display| {
            LabError::Usage(format!(
                "`trial` is internal: `plimsoll run` starts it ({error})"
            ))
        };
        read.map_err(|error| problem(&error))?;
        serde_json::from_str(&text).map_err(|error| problem(&error))
    }

    /// Replaces this image by a new one; returns only the reason why it cannot. `fd` is the
    /// descriptor that this one was left in, which serves again.
    pub fn exec(&self, fd: Option<u32>) -> LabError {
        let failed = |error: std::io::Error| {
            LabError::io("failed to go on in a new process for the next step", error)
        };
        let memory = match fd {
            Some(_) => None,
            None => match memfd_create("plimsoll-trial", MemfdFlags::empty()) {
                Ok(memory) => Some(memory),
                Err(error) => return failed(error.into()),
            },
        };
        let Some(fd) = fd.or(memory.as_ref().map(|memory| memory.as_raw_fd() as u32)) else {
            return LabError::Io("no memory file".into());
        };
        let text = serde_json::to_string(self).map_err(std::io::Error::from);
        let written = text.and_then(|text| {
            File::options()
                .write(true)
                .truncate(true)
                .open(path_of(fd))?
                .write_all(text.as_bytes())
        });
        if let Err(error) = written {
            return failed(error);
        }
        let mut next = child_command("/proc/self/exe");
        if let Some(name) = std::env::args_os().next() {
            next.arg0(name);
        }
        failed(
            next.arg("trial")
                .arg("--continued")
                .arg(fd.to_string())
                .exec(),
        )
    }
}

fn path_of(fd: u32) -> String {
    format!("/proc/self/fd/{fd}")
}
