//! The plan as it is written: TOML tables and keys, nothing checked but their types and names.

use std::collections::BTreeMap;
use std::fmt;

use serde::Deserialize;
use serde::de::{self, Deserializer, IgnoredAny, MapAccess, Visitor};
use toml::Spanned;

use super::server::TlsMode;
use super::{Driver, IdleCpus, SessionClient, TablePlacement, Transport, Verify, WaitRule};
use crate::written::{Duration, Frequency, Share, Text};
use crate::{suggest, units, witness};

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Document {
    pub name: Spanned<String>,
    #[serde(default)]
    pub description: String,
    pub workload: Spanned<WorkloadName>,
    #[serde(default = "yes")]
    pub comparable: bool,
    #[serde(default)]
    pub builds: Vec<Spanned<String>>,
    #[serde(default)]
    pub flags: Vec<Spanned<String>>,
    #[serde(default)]
    pub configs: Vec<Spanned<String>>,
    #[serde(default)]
    pub cells: Vec<Spanned<String>>,
    #[serde(default)]
    pub exclude: Vec<Spanned<String>>,
    pub base: Option<Spanned<String>>,
    pub blocks: Option<Spanned<u32>>,
    pub verify: Option<Spanned<Verify>>,
    pub seed: Option<u64>,
    pub wait: Option<Spanned<Wait>>,
    pub watchdog: Option<Spanned<Duration>>,
    pub idle_cpus: Option<IdleCpus>,
    pub waits: Option<Spanned<Frequency>>,
    pub max_failed: Option<Spanned<Share>>,
    pub steps: Option<Vec<Spanned<String>>>,
    pub tests: Option<Vec<Spanned<String>>>,
    #[serde(default)]
    pub report: Vec<Spanned<String>>,
    #[serde(default)]
    pub limits: Limits,
    pub verdicts: Option<Spanned<super::verdicts::Written>>,
    pub hosts: Option<Spanned<super::split::Written>>,
    /// `[sizes]`, `[shapes]` and `[step]` are read by the benchmark: see [`super::sizes::Own`].
    #[serde(default, rename = "sizes")]
    _sizes: IgnoredAny,
    #[serde(default, rename = "shapes")]
    _shapes: IgnoredAny,
    #[serde(default, rename = "step")]
    _step: IgnoredAny,
    #[serde(default)]
    pub server: BTreeMap<Spanned<String>, Server>,
    #[serde(default)]
    pub config: BTreeMap<Spanned<String>, Config>,
}

/// See [`crate::witness::Limits`].
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Limits {
    steal: Option<Share>,
    foreign: Option<Share>,
    turn: Option<Share>,
    leak: Option<Share>,
}

impl Limits {
    /// Those that are given, and the defaults of the others.
    pub fn all(&self) -> witness::Limits {
        let default = witness::Limits::default();
        let or = |given: Option<Share>, default: f64| given.map_or(default, |share| share.0);
        witness::Limits {
            steal: or(self.steal, default.steal),
            foreign: or(self.foreign, default.foreign),
            turn: or(self.turn, default.turn),
            leak: or(self.leak, default.leak),
        }
    }
}

fn yes() -> bool {
    true
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Config {
    pub file: Option<String>,
    pub from: Option<Spanned<String>>,
    pub engine: Option<Spanned<String>>,
    #[serde(default)]
    pub settings: BTreeMap<String, Scalar>,
    #[serde(default)]
    pub prefix: Vec<String>,
    #[serde(default)]
    pub env: BTreeMap<String, String>,
    #[serde(default)]
    pub transport: Transport,
    pub client: Option<Spanned<SessionClient>>,
    pub driver: Option<Spanned<Driver>>,
    pub waits: Option<Spanned<Frequency>>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Server {
    pub dsn: Spanned<String>,
    pub password_file: Option<Spanned<String>>,
    pub password_env: Option<Spanned<String>>,
    pub password_prompt: Option<Spanned<bool>>,
    pub tls: Option<Spanned<TlsMode>>,
    pub tls_ca: Option<Spanned<String>>,
}

/// A preset, or a file of the user's.
#[derive(Debug, Clone)]
pub(super) enum WorkloadName {
    Preset(String),
    File(String),
}

impl WorkloadName {
    pub fn text(&self) -> &str {
        match self {
            Self::Preset(text) | Self::File(text) => text,
        }
    }
}

/// Where rows go, or how many tables there are.
#[derive(Debug, Clone, Copy)]
pub(super) enum Tables {
    Placement(TablePlacement),
    Count(u64),
}

/// `"classic"`, `"classic-max"` or a duration in nanoseconds.
#[derive(Debug, Clone, Copy)]
pub(super) enum Wait {
    Classic,
    ClassicMax,
    Ns(u64),
}

impl Wait {
    pub fn rule(self) -> WaitRule {
        match self {
            Self::Classic => WaitRule::Classic,
            Self::ClassicMax => WaitRule::ClassicMax,
            Self::Ns(ns) => WaitRule::Fixed { ns },
        }
    }
}

/// A setting's value, kept as text.
#[derive(Debug, Clone)]
pub(super) struct Scalar(pub String);

struct WorkloadVisitor;

impl<'de> Visitor<'de> for WorkloadVisitor {
    type Value = WorkloadName;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the name of a workload, or { file = \"my.toml\" }")
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<WorkloadName, E> {
        Ok(WorkloadName::Preset(text.to_owned()))
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<WorkloadName, A::Error> {
        #[derive(Deserialize)]
        #[serde(deny_unknown_fields)]
        struct Named {
            file: String,
        }
        Ok(WorkloadName::File(
            Named::deserialize(de::value::MapAccessDeserializer::new(map))?.file,
        ))
    }
}

impl<'de> Deserialize<'de> for WorkloadName {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(WorkloadVisitor)
    }
}

impl<'de> Deserialize<'de> for Tables {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Text {
            expecting: "\"per-client\", \"shared\" or a number of tables",
            text: |text| match text {
                "per-client" => Ok(Tables::Placement(TablePlacement::PerClient)),
                "shared" => Ok(Tables::Placement(TablePlacement::Shared)),
                _ => Err(format!(
                    "unknown value \"{text}\"{}; known here: per-client, shared",
                    suggest::hint(text, ["per-client", "shared"])
                )),
            },
            integer: Some(|n| {
                u64::try_from(n)
                    .map(Tables::Count)
                    .map_err(|_| format!("{n} tables are impossible"))
            }),
        })
    }
}

impl<'de> Deserialize<'de> for Wait {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Text {
            expecting: "\"classic\", \"classic-max\" or a duration such as \"2s\"",
            text: |text| match text {
                "classic" => Ok(Wait::Classic),
                "classic-max" => Ok(Wait::ClassicMax),
                _ => units::parse_duration_ns(text)
                    .map(Wait::Ns)
                    .map_err(|e| e.to_string()),
            },
            integer: None,
        })
    }
}

struct ScalarVisitor;

impl Visitor<'_> for ScalarVisitor {
    type Value = Scalar;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a string, an integer, true or false")
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<Scalar, E> {
        Ok(Scalar(text.to_owned()))
    }

    fn visit_i64<E: de::Error>(self, number: i64) -> Result<Scalar, E> {
        Ok(Scalar(number.to_string()))
    }

    fn visit_bool<E: de::Error>(self, is_on: bool) -> Result<Scalar, E> {
        Ok(Scalar(is_on.to_string()))
    }
}

impl<'de> Deserialize<'de> for Scalar {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(ScalarVisitor)
    }
}
