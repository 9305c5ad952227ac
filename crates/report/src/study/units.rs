//! Units by their symbols, of measured and published values.

use model::Unit;

use crate::format;

/// Symbols as multiples of a base unit.
const KNOWN: [(&str, &str, f64); 30] = [
    ("s", "s", 1.0),
    ("ms", "s", 1e-3),
    ("us", "s", 1e-6),
    ("µs", "s", 1e-6),
    ("ns", "s", 1e-9),
    ("ops/s", "ops/s", 1.0),
    ("op/s", "ops/s", 1.0),
    ("kops/s", "ops/s", 1e3),
    ("Kops/s", "ops/s", 1e3),
    ("Mops/s", "ops/s", 1e6),
    ("QPS", "ops/s", 1.0),
    ("W", "W", 1.0),
    ("mW", "W", 1e-3),
    ("kW", "W", 1e3),
    ("J", "J", 1.0),
    ("kJ", "J", 1e3),
    ("ops/J", "ops/J", 1.0),
    ("kops/J", "ops/J", 1e3),
    ("J/op", "J/op", 1.0),
    ("mJ/op", "J/op", 1e-3),
    ("uJ/op", "J/op", 1e-6),
    ("µJ/op", "J/op", 1e-6),
    ("Hz", "Hz", 1.0),
    ("MHz", "Hz", 1e6),
    ("GHz", "Hz", 1e9),
    ("", "", 1.0),
    ("1", "", 1.0),
    ("ratio", "", 1.0),
    ("%", "", 1e-2),
    ("MPKI", "MPKI", 1.0),
];

/// A value in another unit of the same kind; None where they are of different kinds.
pub fn converted(value: f64, from: &str, to: &str) -> Option<f64> {
    if from == to {
        return Some(value);
    }
    let of = |symbol: &str| KNOWN.iter().find(|(known, ..)| *known == symbol);
    let ((_, a, x), (_, b, y)) = (of(from)?, of(to)?);
    (a == b).then(|| value * x / y)
}

/// A value with its unit, scaled.
pub fn written(value: f64, unit: &str) -> String {
    match unit {
        "us" => format::latency(value * 1e3),
        "ops/s" => format::rate(value),
        "s" => format::seconds(value),
        "J/op" => format::value(value, Unit::JoulesPerOp),
        "$/Gop" => format::value(value, Unit::UsdPerBillionOps),
        "" => format::readable(value, 3),
        unit => format!("{} {unit}", format::readable(value, 3)),
    }
}

/// A tick on an axis of this unit.
pub fn tick(value: f64, unit: &str) -> String {
    match unit {
        "us" if value == 0.0 => "0".to_owned(),
        "us" => format::latency_tick(value * 1e3),
        "s" if value > 0.0 && value < 1.0 => format::latency_tick(value * 1e9),
        "ops/s" => format::target_rate(value),
        "J/op" | "$/Gop" if value != 0.0 => written(value, unit),
        "" => format::plain(value),
        unit => format!("{} {unit}", format::plain(value)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units_of_one_kind_are_converted_and_others_are_not() {
        assert_eq!(converted(83.0, "us", "us"), Some(83.0));
        assert!((converted(0.083, "ms", "us").unwrap() - 83.0).abs() < 1e-9);
        assert_eq!(converted(12.0, "kops/s", "ops/s"), Some(12_000.0));
        assert!((converted(40.0, "%", "").unwrap() - 0.4).abs() < 1e-12);
        assert_eq!(converted(1.0, "W", "J"), None);
        assert_eq!(converted(1.0, "furlong", "J"), None);
        assert_eq!(converted(1.0, "furlong", "furlong"), Some(1.0));
    }

    #[test]
    fn values_and_ticks() {
        assert_eq!(written(83.1, "us"), "83.1 µs");
        assert_eq!(written(12.3456, "W"), "12.3 W");
        assert_eq!(written(4e-7, "MPKI"), "< 0.001 MPKI");
        assert_eq!(written(4e-7, "J/op"), "400 nJ/op");
        assert_eq!(written(0.000_25, "$/Gop"), "0.250 $/Top");
        assert_eq!(tick(0.02, "$/Gop"), "20.0 $/Top");
        assert_eq!(tick(20.0, "us"), "20 µs");
        assert_eq!(tick(0.0, "us"), "0");
        assert_eq!(tick(0.000_005, "s"), "5 µs");
        assert_eq!(tick(30.0, "s"), "30 s");
        assert_eq!(tick(20_000.0, "ops/s"), "20 kops/s");
        assert_eq!(tick(0.5, ""), "0.5");
    }
}
