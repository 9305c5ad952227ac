//! What is evaluated, and how hard.

use record::RunSettings;
use thiserror::Error;

use super::load::DeviceLoad;
use super::round::keys;

/// What is evaluated, and how hard.
#[derive(Debug, Clone, PartialEq)]
pub struct EvaluationRequest {
    /// What each device is asked, from the least to the most; loads with as many databases stand
    /// together.
    pub loads: Vec<DeviceLoad>,
    /// A load is no better than a lower one if it brings less than this share more; a further
    /// device brings nothing if it adds less than this share of a unit.
    pub gain: f64,
    /// After so many rounds without a steady state it goes on with "not steady".
    pub most_rounds: u32,
    pub devices: u32,
    /// A unit that was measured on another platform with the same device and workload, ops/s.
    pub given_unit: Option<f64>,
}

#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum EvaluationError {
    #[error("`{key}` is missing: these runs are no evaluation of work units")]
    Missing { key: &'static str },
    #[error("`{key}` is `{value}`, which is not what kvmeter writes there")]
    Malformed { key: &'static str, value: String },
}

impl EvaluationRequest {
    /// The settings by which a results file tells of it.
    pub fn settings(&self, settings: &mut RunSettings) {
        let mut put = |key: &str, value: String| settings.insert(key.to_owned(), value);
        let loads: Vec<String> = self.loads.iter().map(DeviceLoad::to_string).collect();
        put(keys::LOADS, loads.join(","));
        put(keys::GAIN, self.gain.to_string());
        put(keys::MOST_ROUNDS, self.most_rounds.to_string());
        put(keys::DEVICES_THERE, self.devices.to_string());
        if let Some(unit) = self.given_unit {
            put(keys::GIVEN_UNIT, unit.to_string());
        }
    }

    /// What a run's settings say.
    ///
    /// # Errors
    /// A key that is missing or cannot be read.
    pub fn of(settings: &RunSettings) -> Result<EvaluationRequest, EvaluationError> {
        let text = |key: &'static str| {
            settings.get(key).map(String::as_str).ok_or(EvaluationError::Missing { key })
        };
        let loads = text(keys::LOADS)?;
        let loads =
            loads.split(',').map(|load| read(keys::LOADS, load)).collect::<Result<_, _>>()?;
        let given = settings.get(keys::GIVEN_UNIT);
        Ok(EvaluationRequest {
            loads,
            gain: read(keys::GAIN, text(keys::GAIN)?)?,
            most_rounds: read(keys::MOST_ROUNDS, text(keys::MOST_ROUNDS)?)?,
            devices: read(keys::DEVICES_THERE, text(keys::DEVICES_THERE)?)?,
            given_unit: given.map(|unit| read(keys::GIVEN_UNIT, unit)).transpose()?,
        })
    }
}

fn read<T: std::str::FromStr>(key: &'static str, value: &str) -> Result<T, EvaluationError> {
    value.parse().map_err(|_| EvaluationError::Malformed { key, value: value.to_owned() })
}
