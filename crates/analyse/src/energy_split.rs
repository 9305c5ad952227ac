//! Energy of the packages and of the memory, attributed to processes.

use model::signal::{SPLIT_DRAM, SPLIT_PACKAGE, Signal};
use model::{Origin, Reading, ReadingValue};

use crate::busy_time::BusyTime;

/// The parts in the order in which they are named.
pub(crate) const ENERGY_PARTS: [&str; 5] = ["client", "server", "beside", "others", "idle"];

/// The energies that are divided, what they are of, and the signals of their parts. Both are always
/// of the machine that reads them.
pub(crate) const DIVIDED: [(&str, &str, Signal); 2] = [
    ("energy.package", "the CPU packages", SPLIT_PACKAGE),
    ("energy.dram", "the memory", SPLIT_DRAM),
];

/// `split.package.PART` and `split.dram.PART` in joules: the energy of the window times each part's
/// share of the time of all CPUs, what no process used as `idle`. The parts add up to the whole.
///
/// A model: a busy CPU is taken to draw the same under each program, and an idle one as much as a
/// busy one. Kernel threads that work for the store are among the others. None where energy or
/// busy time was not read; parts without any time are left out.
pub fn energy_split(readings: &[Reading]) -> Vec<Reading> {
    let Some(busy) = BusyTime::of(readings) else { return Vec::new() };
    let shares = shares(busy);
    let mut all = Vec::new();
    for (name, _, signal) in DIVIDED {
        let energy = readings.iter().find(|reading| reading.signal == name);
        let Some((energy, joules)) = energy.and_then(|energy| Some((energy, energy.value()?)))
        else {
            continue;
        };
        let parts = ENERGY_PARTS.iter().zip(shares).filter(|(_, share)| *share > 0.0);
        all.extend(parts.map(|(part, share)| Reading {
            signal: signal.name_of(part),
            answer: ReadingValue::Value(joules * share),
            source: format!("{}; {}", signal.source, energy.source),
            origin: Origin::Modelled,
            ..energy.clone()
        }));
    }
    all
}

/// Shares of each part, which add up to 1.
fn shares(busy: BusyTime) -> [f64; 5] {
    let parts = [busy.client, busy.server, busy.beside, busy.others].map(|part| part.max(0.0));
    let sum: f64 = parts.iter().sum();
    // Ticks and the time of processes are counted by different clocks.
    let [client, server, beside, others] = parts.map(|part| part / sum.max(1.0));
    [client, server, beside, others, (1.0 - sum).max(0.0)]
}

#[cfg(test)]
mod tests {
    use model::{Scope, Unit};

    use super::*;
    use crate::busy_time::tests::{reading, two_cpus};

    fn of(readings: &[Reading], signal: &str) -> Option<f64> {
        readings.iter().find(|reading| reading.signal == signal).and_then(Reading::value)
    }

    fn with_energy() -> Vec<Reading> {
        let mut all = two_cpus();
        all.push(reading("energy.package", 800.0, Unit::Joules, Scope::Package));
        all.push(reading("energy.dram", 100.0, Unit::Joules, Scope::Memory));
        all
    }

    #[test]
    fn each_boundary_is_divided_by_busy_time_and_the_parts_add_up() {
        let split = energy_split(&with_energy());
        let expected = [("client", 0.4), ("server", 0.25), ("others", 0.05), ("idle", 0.3)];
        for (boundary, joules) in [("package", 800.0), ("dram", 100.0)] {
            for (part, share) in expected {
                let found = of(&split, &format!("split.{boundary}.{part}")).unwrap();
                assert!((found - share * joules).abs() < 1e-9, "{boundary} {part}: {found}");
            }
        }
        assert_eq!(split.len(), 8, "no part for a co-runner that there was not");
        assert!(split.iter().all(|part| part.origin == Origin::Modelled));
        assert_eq!((split[0].scope, split[4].scope), (Scope::Package, Scope::Memory));
    }

    #[test]
    fn clocks_that_differ_neither_lose_nor_create_energy() {
        for (client, server, others) in [(0.6, 0.5, -0.02), (0.9, 0.1, 0.1), (0.0, 0.0, 0.0)] {
            let shares = shares(BusyTime { client, server, beside: 0.0, others });
            assert!((shares.iter().sum::<f64>() - 1.0).abs() < 1e-12, "{shares:?}");
            assert!(shares.iter().all(|share| *share >= 0.0));
        }
    }

    #[test]
    fn nothing_is_divided_that_was_not_read() {
        assert_eq!(energy_split(&two_cpus()), Vec::new());
        let mut unread = with_energy();
        unread.retain(|reading| reading.signal != "machine.neighbours");
        assert_eq!(energy_split(&unread), Vec::new());
        let mut hidden = with_energy();
        let server = hidden.iter_mut().find(|reading| reading.signal == "server.cpu").unwrap();
        let reason = "no right to read it".to_owned();
        server.answer = ReadingValue::Unavailable { reason, remedy: None };
        assert_eq!(energy_split(&hidden), Vec::new(), "the server's part would be others'");
    }
}
