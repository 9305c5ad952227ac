//! Values of load options: their texts and their limits.

use std::convert::Infallible;
use std::fmt::Display;
use std::path::Path;
use std::str::FromStr;
use std::time::Duration;

use model::suggest::hint;
use model::{Arrivals, Engine, QuantityError, RateProfile, Span};
use serde::{Deserialize, Deserializer};

use crate::server_timing::ServerTiming;
use crate::workload_file::{is_workload_file, open_workload};
use crate::ycsb_file::is_ycsb_file;

/// `steady = {}`: wait for the steady state before the window opens.
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct SteadyTable {
    pub round: Span,
    pub most_rounds: u32,
}

impl Default for SteadyTable {
    fn default() -> Self {
        // At most 25 rounds, as in the MBWU tool; SNIA PTS 2.0.1 looks back on five.
        SteadyTable { round: Span(Duration::from_secs(1)), most_rounds: 25 }
    }
}

impl FromStr for SteadyTable {
    type Err = QuantityError;

    /// The length of a round.
    fn from_str(text: &str) -> Result<SteadyTable, QuantityError> {
        Ok(SteadyTable { round: text.parse()?, ..SteadyTable::default() })
    }
}

pub(super) fn recorded(value: impl Display) -> Option<String> {
    Some(value.to_string())
}

pub(super) fn positive(value: f64) -> Result<(), String> {
    if value > 0.0 { Ok(()) } else { Err("must be more than zero".to_owned()) }
}

pub(super) fn at_most(value: u64, most: u64) -> Result<(), String> {
    if value <= most { Ok(()) } else { Err(format!("is at most {most}, not {value}")) }
}

pub(super) fn count(value: u64, most: u64) -> Result<(), String> {
    positive(value as f64).and_then(|()| at_most(value, most))
}

pub(super) fn arrivals(name: &str) -> Result<Arrivals, String> {
    Arrivals::parse(name).ok_or_else(|| {
        format!(
            "there is no arrival process `{name}` (`pareto:SHAPE` takes a shape between 0 and 1); {}",
            hint(name, Arrivals::NAMES)
        )
    })
}

/// What a level of a study says where its rate does not move.
const CONSTANT_RATE: &str = "constant";
/// Longest file of a profile.
const MAX_PROFILE_BYTES: u64 = 16 << 20;

/// A rate profile, read once: what is checked is what is run, even if its file changes meanwhile.
#[derive(Debug, Clone)]
pub struct ProfileOption(Result<Option<RateProfile>, String>);

impl ProfileOption {
    /// None for a constant rate.
    ///
    /// # Errors
    /// Why the text or the file is no profile.
    pub(super) fn profile(&self) -> Result<Option<&RateProfile>, String> {
        self.0.as_ref().map(Option::as_ref).map_err(String::clone)
    }
}

impl FromStr for ProfileOption {
    type Err = Infallible;

    fn from_str(text: &str) -> Result<ProfileOption, Infallible> {
        Ok(ProfileOption(rate_profile(text)))
    }
}

impl<'de> Deserialize<'de> for ProfileOption {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<ProfileOption, D::Error> {
        String::deserialize(from).map(|text| ProfileOption(rate_profile(&text)))
    }
}

fn rate_profile(text: &str) -> Result<Option<RateProfile>, String> {
    if text == CONSTANT_RATE {
        return Ok(None);
    }
    if is_ycsb_file(text) {
        return Err(format!(
            "{text}: a property file of YCSB has no rate over time; write one, as in \
             `sine:mean=20k,amplitude=15k,period=10m`"
        ));
    }
    if is_workload_file(text) {
        let file = open_workload(text).map_err(|error| error.to_string())?;
        let profile = file.rate_profile.ok_or_else(|| {
            format!("{text} has no `rate_profile`: the rate of its trace did not move")
        })?;
        return RateProfile::parse(&profile).map(Some).map_err(|error| format!("{text}: {error}"));
    }
    if !RateProfile::is_file(text) {
        return RateProfile::parse(text).map(Some).map_err(|error| error.to_string());
    }
    let contents = safe_file::read_text(Path::new(text), MAX_PROFILE_BYTES).map_err(|error| {
        format!(
            "{error}; profiles that are no file begin with `steps:`, `ramp:`, `sine:` or `burst:`"
        )
    })?;
    RateProfile::from_file(text, &contents).map(Some).map_err(|error| error.to_string())
}

pub(super) fn cpus(list: &str) -> Result<Vec<u32>, String> {
    model::cpu_list::parse(list)
        .filter(|cpus| !cpus.is_empty())
        .ok_or_else(|| format!("`{list}` is not a list of CPUs; write `1` or `2-5,8`"))
}

pub(super) fn engine(name: &str) -> Result<Engine, String> {
    let names = Engine::ALL.map(|engine| engine.to_string());
    let Some(at) = names.iter().position(|known| known == name) else {
        let hint = hint(name, names.iter().map(String::as_str));
        return Err(format!("there is no engine `{name}`; {hint}"));
    };
    reactor::available(Engine::ALL[at]).map(|()| Engine::ALL[at]).map_err(|why| why.to_string())
}

pub(super) fn server_timing(name: &str) -> Result<ServerTiming, String> {
    ServerTiming::from_name(name).ok_or_else(|| {
        let hint = hint(name, ServerTiming::ALL.iter().map(|timing| timing.name()));
        format!("cannot be measured by `{name}`; {hint}")
    })
}
