//! Energy of an operation, by each boundary at which energy was read.

use model::signal::{JOULES_PER_OP, JOULES_PER_OP_NET, OPS_PER_JOULE, OPS_PER_JOULE_NET, Signal};
use model::{Origin, Reading, ReadingValue, Scope};

/// The energy of packages and memory: of the package alone where that is all that is read.
const TOTAL: &str = "total";

/// The boundaries that stand for a whole machine, the widest first. A part of it (memory, a GPU)
/// does not.
const WIDEST_FIRST: [Scope; 6] = [
    Scope::Wall,
    Scope::Node,
    Scope::PackageAndMemory,
    Scope::Package,
    Scope::External,
    Scope::Component,
];

/// The idle machine's power and the store's location.
#[derive(Debug, Clone, Copy)]
pub struct IdleContext<'a> {
    /// `power.idle.NAME` in watts, measured before.
    pub idle: &'a [Reading],
    /// The store runs on this machine. If it does not, only sources that may measure another
    /// machine are used.
    pub is_local: bool,
    /// Whether a signal of energy may be of another machine than the one that reads it.
    pub may_be_elsewhere: fn(&str) -> bool,
}

/// The readings of `energy.NAME` that stand for a whole machine and have a value, the widest
/// boundary first; modelled ones last. Of the same boundary, the first of the readings comes first.
/// With the group `power.idle` those of the idle machine.
pub fn widest_first<'r>(readings: &'r [Reading], group: &str) -> Vec<(&'r str, &'r Reading)> {
    let named = |reading: &'r Reading| {
        let name = reading.signal.strip_prefix(group)?.strip_prefix('.')?;
        let is_whole = match reading.scope {
            Scope::Package => name == TOTAL,
            scope => WIDEST_FIRST.contains(&scope) && !name.contains('.'),
        };
        (is_whole && reading.value().is_some()).then_some((name, reading))
    };
    let mut all: Vec<(&str, &Reading)> = readings.iter().filter_map(named).collect();
    all.sort_by_key(|(name, reading)| {
        let width = WIDEST_FIRST.iter().position(|scope| *scope == reading.scope);
        // A battery's gauge is the slowest of its boundary.
        (reading.origin != Origin::Measured, width, *name == "battery")
    });
    all
}

/// The figures of a run whose `readings` hold `energy.NAME` over its window.
///
/// First the four without a boundary in their name, taken from the widest boundary that
/// was read, with its scope, source and origin: a modelled one only where none was measured.
/// Then the same by each boundary that was read. Unavailable, with the reason: no energy was
/// read, no operations; net figures also where the idle power of the same boundary and origin
/// is not known.
pub fn efficiency(readings: &[Reading], operations: u64, context: IdleContext<'_>) -> Vec<Reading> {
    let mut read = widest_first(readings, "energy");
    read.retain(|(_, energy)| context.is_local || (context.may_be_elsewhere)(&energy.signal));
    let Some((_, widest)) = read.first() else {
        return without_energy(readings, context.is_local);
    };
    let mut all = figures("", widest, operations, context.idle);
    for (name, energy) in &read {
        all.extend(figures(&format!(".{name}"), energy, operations, context.idle));
    }
    all
}

/// Gross and net of one reading of energy.
fn figures(suffix: &str, gross: &Reading, operations: u64, idle: &[Reading]) -> Vec<Reading> {
    let net = net(gross, idle);
    let of = |figure: Signal, energy: &Reading, per_joule: bool| {
        let source = match per_joule {
            true => format!("operations / {}", energy.signal),
            false => format!("{} / operations", energy.signal),
        };
        let answer = match (&energy.answer, operations) {
            (missing @ ReadingValue::Unavailable { .. }, _) => missing.clone(),
            (_, 0) => unavailable("there were no operations"),
            (ReadingValue::Value(joules), _) if per_joule && *joules <= 0.0 => {
                unavailable(&format!("{} is {joules} J, which is not above 0", energy.signal))
            }
            (ReadingValue::Value(joules), count) if per_joule => {
                ReadingValue::Value(count as f64 / joules)
            }
            (ReadingValue::Value(joules), count) => ReadingValue::Value(joules / count as f64),
        };
        let (signal, unit) = (format!("{}{suffix}", figure.name), figure.unit);
        Reading { signal, answer, unit, source: sourced(&source, energy), ..energy.clone() }
    };
    vec![
        of(OPS_PER_JOULE, gross, true),
        of(JOULES_PER_OP, gross, false),
        of(OPS_PER_JOULE_NET, &net, true),
        of(JOULES_PER_OP_NET, &net, false),
    ]
}

fn sourced(what: &str, energy: &Reading) -> String {
    format!("{what}; {}", energy.source)
}

/// `energy.NAME.net`: the joules beyond those that the idle machine would have drawn in the
/// same window. May be below zero, where a run drew less than the idle machine.
///
/// Unavailable where the idle power of the same boundary and origin is not known.
pub fn net(energy: &Reading, idle: &[Reading]) -> Reading {
    let signal = format!("{}.net", energy.signal);
    let idle_signal = energy.signal.replacen("energy.", "power.idle.", 1);
    let idle_power = idle.iter().find(|idle| idle.signal == idle_signal);
    let answer = match (&energy.answer, idle_power.map(|idle| (idle, &idle.answer))) {
        (missing @ ReadingValue::Unavailable { .. }, _) => missing.clone(),
        (_, None) => ReadingValue::Unavailable {
            reason: "the idle power was not measured before the run".to_owned(),
            remedy: Some("measure it with `--idle-power 10s`, or `idle` in [probes]".to_owned()),
        },
        (_, Some((idle, _))) if (idle.scope, idle.origin) != (energy.scope, energy.origin) => {
            unavailable(&format!(
                "{idle_signal} is of another boundary or kind than {}",
                energy.signal
            ))
        }
        (_, Some((_, missing @ ReadingValue::Unavailable { .. }))) => missing.clone(),
        (ReadingValue::Value(gross), Some((_, ReadingValue::Value(watts)))) => {
            ReadingValue::Value(gross - watts * energy.window_s)
        }
    };
    let source = format!("{} - {idle_signal} x window; {}", energy.signal, energy.source);
    Reading { signal, answer, source, ..energy.clone() }
}

/// The four figures of a run without energy, with the reason of the sensor that most machines have.
fn without_energy(readings: &[Reading], here: bool) -> Vec<Reading> {
    let why = match here {
        false => ReadingValue::Unavailable {
            reason: "the store runs on another machine, whose energy is not read".to_owned(),
            remedy: Some(
                "connect that machine to a meter, plug or management controller that can be read \
                 from here (`--probes meter=PORT`, `plug=URL`, `snmp=ADDRESS/OID`, `command=...`)"
                    .to_owned(),
            ),
        },
        true => {
            let total = readings.iter().find(|reading| reading.signal == "energy.total");
            let missing = total.map(|reading| &reading.answer);
            let (reason, remedy) = match missing {
                Some(ReadingValue::Unavailable { reason, remedy }) => {
                    (reason.as_str(), remedy.clone())
                }
                _ => ("no energy was read", None),
            };
            let own = "without a sensor, give the power of the machine: `--probes model=IDLE:FULL`";
            let remedy = remedy.map_or(own.to_owned(), |remedy| format!("{remedy}; {own}"));
            ReadingValue::Unavailable { reason: reason.to_owned(), remedy: Some(remedy) }
        }
    };
    let like = |figure: Signal| Reading {
        signal: figure.name.to_owned(),
        answer: why.clone(),
        unit: figure.unit,
        scope: model::Scope::Node,
        source: "operations and energy".to_owned(),
        window_s: 0.0,
        origin: model::Origin::Measured,
    };
    vec![like(OPS_PER_JOULE), like(JOULES_PER_OP), like(OPS_PER_JOULE_NET), like(JOULES_PER_OP_NET)]
}

fn unavailable(reason: &str) -> ReadingValue {
    ReadingValue::Unavailable { reason: reason.to_owned(), remedy: None }
}

#[cfg(test)]
mod tests {
    use model::Unit;

    use super::*;

    fn may_be_elsewhere(signal: &str) -> bool {
        signal == "energy.dcmi"
    }

    fn reading(signal: &str, value: f64, unit: Unit, scope: Scope, origin: Origin) -> Reading {
        Reading {
            signal: signal.to_owned(),
            answer: ReadingValue::Value(value),
            unit,
            scope,
            source: "a sensor".to_owned(),
            window_s: 10.0,
            origin,
        }
    }

    fn joules(name: &str, value: f64, scope: Scope) -> Reading {
        let signal = format!("energy.{name}");
        reading(&signal, value, Unit::Joules, scope, Origin::Measured)
    }

    fn find<'a>(all: &'a [Reading], signal: &str) -> &'a Reading {
        all.iter().find(|reading| reading.signal == signal).unwrap()
    }

    #[test]
    fn widest_boundary_is_the_headline_and_each_has_its_own_figures() {
        let readings = [
            joules("total", 200.0, Scope::PackageAndMemory),
            joules("meter", 1000.0, Scope::Wall),
            joules("gpu", 5.0, Scope::Accelerator),
            reading("energy.model", 900.0, Unit::Joules, Scope::Node, Origin::Modelled),
        ];
        let idle = [
            reading("power.idle.meter", 60.0, Unit::Watts, Scope::Wall, Origin::Measured),
            reading("power.idle.model", 50.0, Unit::Watts, Scope::Node, Origin::Measured),
        ];
        let context = IdleContext { idle: &idle, is_local: true, may_be_elsewhere };
        let all = efficiency(&readings, 50_000, context);
        let headline = find(&all, "ops_per_joule");
        assert_eq!((headline.value(), headline.scope), (Some(50.0), Scope::Wall));
        assert_eq!(headline.unit, Unit::OpsPerJoule);
        assert!(headline.source.starts_with("operations / energy.meter"), "{headline:?}");
        assert_eq!(find(&all, "joules_per_op").value(), Some(0.02));
        // 1000 J - 60 W x 10 s.
        assert_eq!(find(&all, "joules_per_op_net").value(), Some(0.008));
        assert_eq!(find(&all, "ops_per_joule_net").value(), Some(125.0));
        assert_eq!(find(&all, "ops_per_joule.total").value(), Some(250.0));
        assert_eq!(find(&all, "ops_per_joule_net.total").value(), None);
        assert_eq!(find(&all, "ops_per_joule.model").origin, Origin::Modelled);
        // A measured idle power is not taken from a modelled energy.
        assert_eq!(find(&all, "joules_per_op_net.model").value(), None);
        assert!(!all.iter().any(|reading| reading.signal.ends_with(".gpu")));
    }

    #[test]
    fn boundaries_are_ordered_by_width_and_then_by_the_readings() {
        let model = reading("energy.model", 1.0, Unit::Joules, Scope::Node, Origin::Modelled);
        let readings = [
            joules("meter", 1.0, Scope::Wall),
            joules("wall", 1.0, Scope::Wall),
            joules("command", 1.0, Scope::External),
            joules("dcmi", 1.0, Scope::Node),
            joules("gpu", 1.0, Scope::Accelerator),
            joules("hwmon", 1.0, Scope::Component),
            joules("hwmon.ina226.vdd", 1.0, Scope::Component),
            joules("battery", 1.0, Scope::Node),
            model,
            joules("total", 1.0, Scope::Package),
            joules("package", 1.0, Scope::Package),
            joules("dram", 1.0, Scope::Memory),
            joules("psys", 1.0, Scope::Node),
        ];
        let names: Vec<&str> =
            widest_first(&readings, "energy").into_iter().map(|(name, _)| name).collect();
        let expected =
            ["meter", "wall", "dcmi", "psys", "battery", "total", "command", "hwmon", "model"];
        assert_eq!(names, expected);
    }

    #[test]
    fn a_model_is_the_headline_only_without_a_measurement() {
        let modelled = reading("energy.model", 100.0, Unit::Joules, Scope::Node, Origin::Modelled);
        let context = IdleContext { idle: &[], is_local: true, may_be_elsewhere };
        let all = efficiency(&[modelled], 1000, context);
        let headline = find(&all, "ops_per_joule");
        assert_eq!((headline.value(), headline.origin), (Some(10.0), Origin::Modelled));
    }

    #[test]
    fn energy_of_the_client_machine_is_not_the_stores() {
        let readings =
            [joules("total", 200.0, Scope::PackageAndMemory), joules("dcmi", 900.0, Scope::Node)];
        let context = IdleContext { idle: &[], is_local: false, may_be_elsewhere };
        let all = efficiency(&readings, 900, context);
        assert_eq!(find(&all, "ops_per_joule").scope, Scope::Node);
        assert!(!all.iter().any(|reading| reading.signal.ends_with(".total")));
        let all = efficiency(&readings[..1], 900, context);
        let ReadingValue::Unavailable { reason, .. } = &find(&all, "ops_per_joule").answer else {
            panic!("energy of the client");
        };
        assert!(reason.contains("another machine"), "{reason}");
    }

    #[test]
    fn no_energy_or_no_operations_is_unavailable() {
        let mut none = joules("total", 1.0, Scope::Package);
        none.answer =
            ReadingValue::Unavailable { reason: "no RAPL".into(), remedy: Some("x".into()) };
        let context = IdleContext { idle: &[], is_local: true, may_be_elsewhere };
        let all = efficiency(&[none], 5, context);
        assert_eq!(all.len(), 4);
        assert!(all.iter().all(|reading| reading.value().is_none()));
        let ReadingValue::Unavailable { reason, remedy } = &all[0].answer else {
            panic!("{all:?}")
        };
        assert!(reason == "no RAPL" && remedy.as_ref().unwrap().contains("model=IDLE:FULL"));
        let total = joules("total", 0.0, Scope::Package);
        let all = efficiency(&[total], 0, context);
        assert_eq!(find(&all, "joules_per_op").value(), None);
        assert_eq!(find(&all, "ops_per_joule").value(), None);
        // Less than the idle machine: negative joules, and no operations for them.
        let total = joules("total", 100.0, Scope::Package);
        let idle =
            [reading("power.idle.total", 11.0, Unit::Watts, Scope::Package, Origin::Measured)];
        let all =
            efficiency(&[total], 10, IdleContext { idle: &idle, is_local: true, may_be_elsewhere });
        assert_eq!(find(&all, "joules_per_op_net").value(), Some(-1.0));
        assert_eq!(find(&all, "ops_per_joule_net").value(), None);
    }
}
