//! Sentences on the energy that is attributed to processes.

use model::Reading;
use model::signal::Signal;

use super::percent;
use crate::energy_split::{DIVIDED, ENERGY_PARTS};

/// A sentence for each boundary whose energy was divided.
pub(super) fn sentences(readings: &[Reading]) -> Vec<String> {
    let value = |name: &str| {
        readings.iter().find(|reading| reading.signal == name).and_then(Reading::value)
    };
    let sentence = |(energy, boundary, signal): (&str, &str, Signal)| {
        let joules = value(energy).filter(|joules| *joules > 0.0)?;
        let share = |part: &'static str| Some((part, value(&signal.name_of(part))? / joules));
        let parts: Vec<_> = ENERGY_PARTS.into_iter().filter_map(share).collect();
        let words = |(part, share): &(&str, f64)| {
            let who = match *part {
                "beside" => "the co-runner",
                "others" => "other programs",
                "idle" => "idle CPUs",
                side => return format!("the {side} {}", percent(*share)),
            };
            format!("{who} {}", percent(*share))
        };
        (!parts.is_empty()).then(|| {
            let words: Vec<String> = parts.iter().map(words).collect();
            format!(
                "Of the {joules:.0} J that {boundary} drew in the measured run, by busy time (a \
                 model): {}.",
                words.join(", ")
            )
        })
    };
    DIVIDED.into_iter().filter_map(sentence).collect()
}

#[cfg(test)]
mod tests {
    use model::{Scope, Unit};

    use super::*;
    use crate::busy_time::tests::{reading, two_cpus};
    use crate::energy_split::energy_split;

    #[test]
    fn the_sentence_names_each_part_and_that_it_is_a_model() {
        let mut readings = two_cpus();
        readings.push(reading("energy.package", 800.0, Unit::Joules, Scope::Package));
        assert_eq!(sentences(&readings), Vec::<String>::new(), "nothing was divided");
        readings.extend(energy_split(&readings));
        assert_eq!(
            sentences(&readings),
            [
                "Of the 800 J that the CPU packages drew in the measured run, by busy time (a model): \
              the client 40 %, the server 25 %, other programs 5.0 %, idle CPUs 30 %."
            ]
        );
    }
}
