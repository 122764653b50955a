//! The plan as it is written: TOML tables and keys, nothing checked but their types and names.

use std::collections::BTreeMap;
use std::fmt;

use serde::Deserialize;
use serde::de::{self, Deserializer, MapAccess, Visitor};
use toml::Spanned;

use super::server::TlsMode;
use super::{
    Distribution, Driver, IdleCpus, LoadMode, SessionClient, StepEnd, StepProcess, TablePlacement,
    Transport, Verify, WaitRule, WriteArrival,
};
use crate::{suggest, units};

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
    pub max_failed: Option<Spanned<Share>>,
    pub steps: Option<Vec<Spanned<String>>>,
    pub tests: Option<Vec<Spanned<String>>>,
    #[serde(default)]
    pub report: Vec<Spanned<String>>,
    #[serde(default)]
    pub sizes: Sizes,
    #[serde(default)]
    pub shapes: BTreeMap<Spanned<String>, Sizes>,
    #[serde(default)]
    pub server: BTreeMap<Spanned<String>, Server>,
    #[serde(default)]
    pub config: BTreeMap<Spanned<String>, Config>,
    #[serde(default)]
    pub step: BTreeMap<Spanned<String>, StepOverride>,
}

fn yes() -> bool {
    true
}

macro_rules! sizes {
    ($($field:ident: $type:ty,)*) => {
        #[derive(Clone, Debug, Default, Deserialize)]
        #[serde(deny_unknown_fields)]
        pub(super) struct Sizes {
            $(pub $field: Option<Spanned<$type>>,)*
        }

        impl Sizes {
            /// These, with what a shape says in their place.
            pub fn with(&self, shape: Option<&Self>) -> Self {
                let Some(shape) = shape else { return self.clone() };
                let mut sizes = Self { $($field: shape.$field.clone().or_else(|| self.$field.clone()),)* };
                if shape.ramp.is_some() {
                    // Its numbers are the clients; those of `[sizes]` are the other shapes'.
                    sizes.clients.clone_from(&shape.clients);
                }
                sizes
            }
        }
    };
}

sizes! {
    clients: u32,
    tables: Tables,
    rows: Count,
    write_rows: Count,
    duration: Duration,
    arrival: WriteArrival,
    end: StepEnd,
    deletes: bool,
    partitions: u32,
    write_duration: Duration,
    warm_up: Duration,
    rate: u64,
    ramp: Vec<u32>,
    prepared: bool,
    load: LoadMode,
    distribution: DistributionName,
    zipfian_exponent: f64,
    pareto_h: f64,
    background_rate: ByteSize,
    process: StepProcess,
    warm_cache: bool,
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

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct StepOverride {
    pub clients: Option<Spanned<u32>>,
    pub duration: Option<Spanned<Duration>>,
    pub wait: Option<Spanned<Wait>>,
    pub drain: Option<Spanned<bool>>,
    pub rate: Option<Spanned<u64>>,
    pub warm_up: Option<Spanned<Duration>>,
    pub max_failed: Option<Spanned<Share>>,
    pub mix: Option<Spanned<String>>,
    pub event: Option<Spanned<String>>,
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

/// A distribution without its parameter, which has a key of its own.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum DistributionName {
    #[default]
    Uniform,
    Zipfian,
    Pareto,
    Gaussian,
    Special,
}

impl DistributionName {
    /// The distribution with these parameters, of which each has one at most.
    pub fn with(self, exponent: f64, h: f64) -> Distribution {
        match self {
            Self::Uniform => Distribution::Uniform,
            Self::Zipfian => Distribution::Zipfian { exponent },
            Self::Pareto => Distribution::Pareto { h },
            Self::Gaussian => Distribution::Gaussian,
            Self::Special => Distribution::Special,
        }
    }
}

/// A number of rows: an integer, or text such as `"20M"`.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Count(pub u64);

/// A duration such as `"30s"`, in nanoseconds.
#[derive(Debug, Clone, Copy)]
pub(super) struct Duration(pub u64);

/// A number of bytes such as `"2MiB"`.
#[derive(Debug, Clone, Copy)]
pub(super) struct ByteSize(pub u64);

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

/// A share such as `"0.1%"`, from 0 to 1.
#[derive(Debug, Clone, Copy)]
pub(super) struct Share(pub f64);

/// A setting's value, kept as text.
#[derive(Debug, Clone)]
pub(super) struct Scalar(pub String);

struct Text<T> {
    expecting: &'static str,
    text: fn(&str) -> Result<T, String>,
    integer: Option<fn(i64) -> Result<T, String>>,
}

impl<T> Visitor<'_> for Text<T> {
    type Value = T;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.expecting)
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<T, E> {
        (self.text)(text).map_err(E::custom)
    }

    fn visit_i64<E: de::Error>(self, value: i64) -> Result<T, E> {
        match self.integer {
            Some(integer) => integer(value).map_err(E::custom),
            None => Err(E::custom(format!("expected {}", self.expecting))),
        }
    }
}

impl<'de> Deserialize<'de> for Count {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Text {
            expecting: "a number of rows such as 800, \"50K\" or \"20M\"",
            text: |text| {
                units::parse_count(text)
                    .map(Count)
                    .map_err(|e| e.to_string())
            },
            integer: Some(|n| {
                u64::try_from(n)
                    .map(Count)
                    .map_err(|_| format!("{n} rows are impossible"))
            }),
        })
    }
}

impl<'de> Deserialize<'de> for Share {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Text {
            expecting: "a share in percent such as \"0.1%\"",
            text: |text| {
                let percent = text
                    .strip_suffix('%')
                    .and_then(|number| number.trim().parse::<f64>().ok());
                let share = percent
                    .filter(|percent| (0.0..100.0).contains(percent))
                    .map(|percent| Share(percent / 100.0));
                share.ok_or_else(|| {
                    format!(
                        "\"{text}\" is not a share: write a percentage below 100, such as \
                            \"0.1%\""
                    )
                })
            },
            integer: None,
        })
    }
}

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

impl<'de> Deserialize<'de> for Duration {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Text {
            expecting: "a duration such as \"250ms\", \"30s\" or \"2h\"",
            text: |text| {
                units::parse_duration_ns(text)
                    .map(Duration)
                    .map_err(|e| e.to_string())
            },
            integer: None,
        })
    }
}

impl<'de> Deserialize<'de> for ByteSize {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Text {
            expecting: "a size in MiB or GiB such as \"2MiB\"",
            text: |text| match units::parse_bytes(text) {
                Ok(bytes) if text.ends_with("MiB") || text.ends_with("GiB") => Ok(ByteSize(bytes)),
                _ => Err(format!(
                    "\"{text}\" is not a size in MiB or GiB such as \"2MiB\""
                )),
            },
            integer: None,
        })
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
