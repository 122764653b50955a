//! How a step of a trial ended, and how tables show it.

/// How a step of a trial ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Status {
    /// As planned.
    Ok,
    /// Finished, but under 95 % of the rate that was due.
    SlaMissed,
    /// Finished, but a witness saw the machine disturbed from outside.
    Suspect,
    /// It ended with an error.
    Failed,
    /// The trial's process or the server died in it.
    Crashed,
    /// The engine stopped answering, and the watchdog ended the step.
    Hung,
    /// A file of it was edited or damaged, so that nothing in it is believed.
    Damaged,
    /// There is no result.
    Missing,
}

impl Status {
    /// The name in files.
    pub fn name(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::SlaMissed => "sla_missed",
            Self::Suspect => "suspect",
            Self::Failed => "failed",
            Self::Crashed => "crashed",
            Self::Hung => "hung",
            Self::Damaged => "damaged",
            Self::Missing => "missing",
        }
    }

    /// What a table puts behind a number. With several blocks there can be a number although one of
    /// them failed.
    pub fn mark(self) -> &'static str {
        match self {
            Self::Ok | Self::Missing => "",
            Self::SlaMissed => "*",
            Self::Suspect => "?",
            Self::Failed | Self::Crashed | Self::Hung | Self::Damaged => "!",
        }
    }

    /// What a table puts in place of a number.
    pub fn in_place(self) -> &'static str {
        match self {
            Self::Failed | Self::Crashed | Self::Hung | Self::Damaged => self.name(),
            _ => "-",
        }
    }

    pub fn meaning(self) -> &'static str {
        match self {
            Self::Ok => "finished as planned",
            Self::SlaMissed => {
                "missed its SLA: less than 95 % of the rate that was due, and a ratio with it \
                proves nothing"
            }
            Self::Suspect => "suspect: the machine was disturbed from outside",
            Self::Failed => "failed: it ended with an error",
            Self::Crashed => "crashed: the process or the server died",
            Self::Hung => {
                "hung: the engine did nothing for so long that the watchdog ended the step"
            }
            Self::Damaged => "damaged: its files are not what was written to them",
            Self::Missing => "no result",
        }
    }

    /// Whether the step came to its end, so that it has numbers.
    pub fn is_finished(self) -> bool {
        matches!(self, Self::Ok | Self::SlaMissed | Self::Suspect)
    }
}
