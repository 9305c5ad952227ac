//! The parameters of an evaluation.

use model::RunSettings;
use thiserror::Error;

use super::keys;
use super::load::DeviceLoad;

/// The parameters of an evaluation.
#[derive(Debug, Clone, PartialEq)]
pub struct EvaluationRequest {
    /// The loads to try on each device, rising; loads with the same number of databases are
    /// adjacent.
    pub loads: Vec<DeviceLoad>,
    /// The least relative gain of a higher load, and the least gain of a further device in units.
    pub gain: f64,
    /// The most rounds to wait for a steady state; then it goes on as "not steady".
    pub most_rounds: u32,
    pub devices: u32,
    /// A unit that was measured on another platform with the same device and workload, ops/s.
    pub given_unit: Option<f64>,
}

#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum EvaluationError {
    #[error("`{key}` is missing: these runs are not an evaluation of work units")]
    Missing { key: &'static str },
    #[error("`{key}` is `{value}`, which is not what kvmeter writes there")]
    Malformed { key: &'static str, value: String },
}

impl EvaluationRequest {
    /// Records it in a run's settings.
    pub fn settings(&self, settings: &mut RunSettings) {
        let mut put = |key: &str, value: String| settings.insert(key.to_owned(), value);
        let loads: Vec<String> = self.loads.iter().map(DeviceLoad::to_string).collect();
        put(keys::LOADS, loads.join(","));
        put(keys::GAIN, self.gain.to_string());
        put(keys::MOST_ROUNDS, self.most_rounds.to_string());
        put(keys::AVAILABLE_DEVICES, self.devices.to_string());
        if let Some(unit) = self.given_unit {
            put(keys::GIVEN_UNIT, unit.to_string());
        }
    }

    /// Reads it from a run's settings.
    ///
    /// # Errors
    /// A key that is missing or cannot be read.
    pub fn of(settings: &RunSettings) -> Result<EvaluationRequest, EvaluationError> {
        let text = |key: &'static str| {
            settings.get(key).map(String::as_str).ok_or(EvaluationError::Missing { key })
        };
        let loads = text(keys::LOADS)?;
        let loads = loads
            .split(',')
            .map(|load| parse_setting(keys::LOADS, load))
            .collect::<Result<_, _>>()?;
        let given = settings.get(keys::GIVEN_UNIT);
        Ok(EvaluationRequest {
            loads,
            gain: parse_setting(keys::GAIN, text(keys::GAIN)?)?,
            most_rounds: parse_setting(keys::MOST_ROUNDS, text(keys::MOST_ROUNDS)?)?,
            devices: parse_setting(keys::AVAILABLE_DEVICES, text(keys::AVAILABLE_DEVICES)?)?,
            given_unit: given.map(|unit| parse_setting(keys::GIVEN_UNIT, unit)).transpose()?,
        })
    }
}

fn parse_setting<T: std::str::FromStr>(
    key: &'static str,
    value: &str,
) -> Result<T, EvaluationError> {
    value.parse().map_err(|_| EvaluationError::Malformed { key, value: value.to_owned() })
}
