//! Who kept the machine's CPUs busy in a run.

use model::Reading;
use model::signal::{BESIDE_CPU, SERVER_CPU};

/// Shares of the time of all of the machine's CPUs.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct BusyTime {
    /// kvmeter with the stores that it embeds.
    pub client: f64,
    /// Servers on this machine.
    pub server: f64,
    /// The co-runner.
    pub beside: f64,
    /// All others: what is left of the busy time. Ticks are sampled, so that it may be below 0.
    pub others: f64,
}

impl BusyTime {
    /// None where it is unknown: the part of a local server that could not be read would count as
    /// that of others.
    pub fn of(readings: &[Reading]) -> Option<BusyTime> {
        let reading = |signal: &str| readings.iter().find(|reading| reading.signal == signal);
        let value = |signal: &str| reading(signal).and_then(Reading::value);
        let neighbours = value("machine.neighbours")?;
        let client = value("machine.busy")? - neighbours;
        // The time of all CPUs is the time of this process over its share.
        let own_s = value("cpu.user").zip(value("cpu.system")).map(|(user, system)| user + system);
        let share = |signal: &str| -> Option<f64> {
            let Some(reading) = reading(signal) else { return Some(0.0) };
            match reading.value() {
                Some(cpu_s) => {
                    let share = own_s.map_or(0.0, |own_s| cpu_s * client / own_s);
                    Some(if share.is_finite() { share } else { 0.0 })
                }
                None => reading.is_elsewhere().then_some(0.0),
            }
        };
        let (server, beside) = (share(SERVER_CPU.name)?, share(BESIDE_CPU.name)?);
        Some(BusyTime { client, server, beside, others: neighbours - server - beside })
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use model::{Origin, ReadingValue, Scope, Unit};

    use super::*;

    pub(crate) fn reading(signal: &str, value: f64, unit: Unit, scope: Scope) -> Reading {
        Reading {
            signal: signal.to_owned(),
            answer: ReadingValue::Value(value),
            unit,
            scope,
            source: "test".to_owned(),
            window_s: 10.0,
            origin: Origin::Measured,
        }
    }

    /// 10 s on 2 CPUs: this process 8 s, the server 5 s, others 1 s.
    pub(crate) fn two_cpus() -> Vec<Reading> {
        let seconds = |signal, value| reading(signal, value, Unit::Seconds, Scope::Process);
        let ratio = |signal, value| reading(signal, value, Unit::Ratio, Scope::Machine);
        vec![
            seconds("cpu.user", 6.0),
            seconds("cpu.system", 2.0),
            seconds("server.cpu", 5.0),
            ratio("machine.busy", 0.7),
            ratio("machine.neighbours", 0.3),
        ]
    }

    #[test]
    fn a_local_server_is_not_among_the_others() {
        let busy = BusyTime::of(&two_cpus()).unwrap();
        let all = [busy.client, busy.server, busy.beside, busy.others];
        let expected = [0.4, 0.25, 0.0, 0.05];
        assert!(all.iter().zip(expected).all(|(a, b)| (a - b).abs() < 1e-12), "{busy:?}");
        assert_eq!(BusyTime::of(&[]), None);
    }
}
