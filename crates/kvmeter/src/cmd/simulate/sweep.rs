//! The combinations of swept values.

use cachesim::sweep::{SweepJob, SweepPoint};
use cachesim::{Policy, SimError, SimulatedMachine, Traffic};

use crate::exit::request;

/// Limit on simulations of one command.
const MAX_SIMULATIONS: usize = 10_000;
/// The key that is the machine's and not the traffic's.
const WAYS: &str = "ways";

/// Keys with their values, in the order in which they were given.
pub struct KeySweep {
    keys: Vec<(String, Vec<String>)>,
}

impl KeySweep {
    pub fn parse(texts: &[String]) -> anyhow::Result<KeySweep> {
        let mut keys: Vec<(String, Vec<String>)> = Vec::new();
        for text in texts {
            let (key, values) = text
                .split_once('=')
                .ok_or_else(|| request(format!("--sweep {text}: write it as `key=value,value`")))?;
            if keys.iter().any(|(known, _)| known == key) {
                return Err(request(format!("--sweep {text}: `{key}` is swept already")));
            }
            let values: Vec<String> =
                values.split(',').map(|value| value.trim().to_owned()).collect();
            if values.iter().any(String::is_empty) {
                return Err(request(format!("--sweep {text}: a value is empty")));
            }
            keys.push((key.trim().to_owned(), values));
        }
        Ok(KeySweep { keys })
    }

    pub fn is_empty(&self) -> bool {
        self.keys.is_empty()
    }

    /// The first key that has more than one value.
    pub fn first_varied(&self) -> Option<&str> {
        let mut varied = self.keys.iter().filter(|(_, values)| values.len() > 1);
        varied.next().map(|(key, _)| key.as_str())
    }

    /// Simulations in order: the last key changes first, policies before it.
    pub fn jobs(
        &self,
        machine: &SimulatedMachine,
        traffic: &Traffic,
        policies: &[Policy],
    ) -> anyhow::Result<(Vec<SweepPoint>, Vec<SweepJob>)> {
        let lengths = self.keys.iter().map(|(_, values)| values.len());
        let combinations = lengths.fold(1, usize::saturating_mul);
        if combinations.saturating_mul(policies.len()) > MAX_SIMULATIONS {
            let words =
                format!("--sweep: more than {MAX_SIMULATIONS} simulations; sweep fewer values");
            return Err(request(words));
        }
        let (mut points, mut jobs) = (Vec::new(), Vec::new());
        for mut index in 0..combinations {
            let mut at = Vec::new();
            for (key, values) in self.keys.iter().rev() {
                at.push((key.clone(), values[index % values.len()].clone()));
                index /= values.len();
            }
            at.reverse();
            let (mut machine, mut traffic) = (machine.clone(), traffic.clone());
            for (key, value) in &at {
                let set = match key.as_str() {
                    WAYS => machine.set_ways(value),
                    _ => traffic.set(key, value),
                };
                set.map_err(place)?;
            }
            traffic.recheck(&machine).map_err(place)?;
            for policy in policies {
                points.push(SweepPoint { at: at.clone(), policy: policy.name() });
                jobs.push(SweepJob {
                    machine: machine.clone(),
                    traffic: traffic.clone(),
                    policy: *policy,
                });
            }
        }
        Ok((points, jobs))
    }
}

fn place(error: SimError) -> anyhow::Error {
    request(format!("--sweep {error}"))
}
