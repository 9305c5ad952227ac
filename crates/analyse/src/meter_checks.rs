//! Relations between the meters of one run: a narrower boundary draws no more than one around it.

use model::{Origin, Reading, Scope};

use crate::efficiency::widest_first;

/// How the sentence of each breach begins.
pub const BREACH: &str = "the meters contradict each other: ";

/// The error of a source that states none: as a share of its reading, and assumed.
const ASSUMED_ERROR: f64 = 0.05;

/// Sensors refresh their numbers about every second, so a window may be off by the power of one
/// second.
const REFRESH_S: f64 = 1.0;

/// The boundaries that lie within each other, the widest first. Package and memory, or the package
/// alone, is what RAPL has as a total.
const NESTED: [&[Scope]; 3] =
    [&[Scope::Wall], &[Scope::Node], &[Scope::PackageAndMemory, Scope::Package]];

/// What is known of the meters besides their readings.
#[derive(Debug, Clone, Copy)]
pub struct MeterContext {
    /// The store runs on this machine. If it does not, only sources that may measure another
    /// machine are compared.
    pub is_local: bool,
    /// Whether a signal of energy may be of another machine than the one that reads it.
    pub may_be_elsewhere: fn(&str) -> bool,
    /// The largest error of a signal of energy as a share of its value, where its maker states one.
    pub stated_error: fn(&str) -> Option<f64>,
}

/// A sentence for each pair of boundaries of which the narrower one drew more than the one around
/// it, beyond the errors of both. Mean watts are compared, so that windows may differ; modelled
/// readings are not compared.
pub fn meter_breaches(readings: &[Reading], context: MeterContext) -> Vec<String> {
    let meters: Vec<Meter<'_>> = widest_first(readings, "energy")
        .into_iter()
        .filter(|(_, energy)| context.is_local || (context.may_be_elsewhere)(&energy.signal))
        .filter_map(|(_, energy)| Meter::of(energy, context.stated_error))
        .collect();
    let mut breaches = Vec::new();
    for outer in &meters {
        for inner in meters.iter().filter(|inner| inner.depth > outer.depth) {
            breaches.extend(breach(outer, inner));
        }
    }
    breaches
}

/// A reading of energy with its boundary and error.
struct Meter<'a> {
    energy: &'a Reading,
    watts: f64,
    /// The position in [`NESTED`].
    depth: usize,
    stated: Option<f64>,
}

impl<'a> Meter<'a> {
    fn of(energy: &'a Reading, stated_error: fn(&str) -> Option<f64>) -> Option<Meter<'a>> {
        let depth = NESTED.iter().position(|scopes| scopes.contains(&energy.scope))?;
        let is_measured = energy.origin == Origin::Measured && energy.window_s > 0.0;
        let watts = energy.value().filter(|_| is_measured)? / energy.window_s;
        Some(Meter { energy, watts, depth, stated: stated_error(&energy.signal) })
    }

    fn error(&self) -> f64 {
        self.stated.unwrap_or(ASSUMED_ERROR) + REFRESH_S / self.energy.window_s
    }

    fn described(&self) -> String {
        let Reading { signal, scope, source, .. } = self.energy;
        format!("{signal} ({scope}; {source}) drew {:.1} W", self.watts)
    }

    fn error_described(&self) -> String {
        let percent = 100.0 * self.error();
        match self.stated {
            Some(_) => format!("{percent:.1} %"),
            None => format!("{percent:.1} %, of which {:.0} % are assumed", 100.0 * ASSUMED_ERROR),
        }
    }
}

fn breach(outer: &Meter<'_>, inner: &Meter<'_>) -> Option<String> {
    if inner.watts * (1.0 - inner.error()) <= outer.watts * (1.0 + outer.error()) {
        return None;
    }
    let more = inner.watts - outer.watts;
    Some(format!(
        "{BREACH}{} and {}, {more:.1} W more than the boundary around it; their errors are {} and {}: \
         check that both are of this machine, that each of its power supplies is metered, and the \
         factor of the number",
        outer.described(),
        inner.described(),
        outer.error_described(),
        inner.error_described()
    ))
}

#[cfg(test)]
mod tests {
    use model::{ReadingValue, Unit};

    use super::*;

    const CONTEXT: MeterContext = MeterContext {
        is_local: true,
        may_be_elsewhere: |signal| ["energy.meter", "energy.dcmi"].contains(&signal),
        stated_error: |signal| (signal == "energy.meter").then_some(0.005),
    };

    fn joules(name: &str, watts: f64, scope: Scope) -> Reading {
        Reading {
            signal: format!("energy.{name}"),
            answer: ReadingValue::Value(watts * 100.0),
            unit: Unit::Joules,
            scope,
            source: format!("source of {name}"),
            window_s: 100.0,
            origin: Origin::Measured,
        }
    }

    fn breaches(readings: &[Reading]) -> Vec<String> {
        meter_breaches(readings, CONTEXT)
    }

    #[test]
    fn boundaries_that_lie_within_each_other_are_no_breach() {
        let all = [
            joules("meter", 200.0, Scope::Wall),
            joules("dcmi", 180.0, Scope::Node),
            joules("total", 120.0, Scope::PackageAndMemory),
            joules("package", 100.0, Scope::Package),
            // Parts of which nothing is known are within no boundary.
            joules("command", 900.0, Scope::External),
            joules("hwmon", 900.0, Scope::Component),
            joules("gpu", 900.0, Scope::Accelerator),
        ];
        assert_eq!(breaches(&all), [""; 0]);
    }

    #[test]
    fn a_narrower_boundary_that_draws_more_is_named_with_both_figures() {
        let all =
            [joules("meter", 100.0, Scope::Wall), joules("total", 120.0, Scope::PackageAndMemory)];
        assert_eq!(
            breaches(&all),
            [
                "the meters contradict each other: energy.meter (wall; source of meter) drew 100.0 W \
              and energy.total (package and memory; source of total) drew 120.0 W, 20.0 W more \
              than the boundary around it; their errors are 1.5 % and 6.0 %, of which 5 % are \
              assumed: check that both are of this machine, that each of its power supplies is \
              metered, and the factor of the number"
            ]
        );
        // Every pair is looked at, and the total of a package without memory, too.
        let all = [
            joules("meter", 50.0, Scope::Wall),
            joules("dcmi", 80.0, Scope::Node),
            joules("total", 200.0, Scope::Package),
        ];
        let found = breaches(&all);
        assert_eq!(found.len(), 3, "{found:?}");
        assert!(found.iter().all(|breach| breach.starts_with(BREACH)));
    }

    #[test]
    fn a_breach_is_beyond_the_errors_of_both_meters() {
        let of = |wall: f64, total: f64| {
            let wall = joules("meter", wall, Scope::Wall);
            breaches(&[wall, joules("total", total, Scope::PackageAndMemory)]).len()
        };
        // 100 W + 1.5 % = 101.5 W, and 101.5 W / 94 % = 107.98 W.
        assert_eq!((of(100.0, 107.97), of(100.0, 107.99)), (0, 1));
        // A short window may be off by one refresh of each sensor.
        let short = |reading: Reading| Reading {
            answer: ReadingValue::Value(reading.value().unwrap() / 100.0),
            window_s: 1.0,
            ..reading
        };
        let all = [joules("meter", 100.0, Scope::Wall), joules("total", 120.0, Scope::Package)];
        assert_eq!(breaches(&all.map(short)), [""; 0]);
    }

    #[test]
    fn modelled_and_foreign_readings_are_not_compared() {
        let model = Reading { origin: Origin::Modelled, ..joules("model", 50.0, Scope::Node) };
        let total = joules("total", 120.0, Scope::PackageAndMemory);
        assert_eq!(breaches(&[model, total.clone()]), [""; 0]);
        // The meter is the server's, and RAPL the client's.
        let readings =
            [joules("meter", 50.0, Scope::Wall), joules("dcmi", 80.0, Scope::Node), total];
        let found = meter_breaches(&readings, MeterContext { is_local: false, ..CONTEXT });
        assert_eq!(found.len(), 1, "{found:?}");
        assert!(found[0].contains("energy.meter") && found[0].contains("energy.dcmi"));
        // What could not be read contradicts nothing.
        let none = Reading {
            answer: ReadingValue::Unavailable { reason: "gone".to_owned(), remedy: None },
            ..joules("meter", 0.0, Scope::Wall)
        };
        let total = joules("total", 120.0, Scope::PackageAndMemory);
        assert_eq!(breaches(&[none, total]), [""; 0]);
    }
}
