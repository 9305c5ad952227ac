//! Formats numbers: SI in, text out. The only place that scales and rounds.

use model::Unit;

/// Marks a missing number.
pub const NONE: &str = "–";

/// Significant digits; histograms have three.
const LATENCY_DIGITS: i32 = 3;
const THROUGHPUT_DIGITS: i32 = 4;
/// The most decimals of a number.
const MOST_DECIMALS: i32 = 9;

/// Below it a number without a scaled unit is not worth reading.
const LEAST_READ: f64 = 0.001;

/// `1234567` as `1,234,567`.
pub fn count(value: u64) -> String {
    group(&value.to_string())
}

/// At least `digits` significant digits; the digits before the point are always all shown.
pub fn significant(value: f64, digits: i32) -> String {
    if !value.is_finite() {
        return NONE.to_owned();
    }
    if value == 0.0 {
        return "0".to_owned();
    }
    // Rounding may carry into a new digit (9.996 -> 10.0), so the exponent is that of the rounded
    // number.
    let rounded = format!("{value:.*e}", (digits - 1).max(0) as usize);
    let exponent: i32 = rounded.split_once('e').and_then(|(_, e)| e.parse().ok()).unwrap_or(0);
    let decimals = (digits - 1 - exponent).clamp(0, MOST_DECIMALS) as usize;
    let text = format!("{:.decimals$}", value.abs());
    let sign = if value < 0.0 { "-" } else { "" };
    match text.split_once('.') {
        Some((whole, fraction)) => format!("{sign}{}.{fraction}", group(whole)),
        None => format!("{sign}{}", group(&text)),
    }
}

/// The same, but what is too small to be worth reading as `< 0.001`.
pub fn readable(value: f64, digits: i32) -> String {
    match value {
        0.0 => "0".to_owned(),
        v if v.abs() >= LEAST_READ => significant(v, digits),
        v if v > 0.0 => format!("< {LEAST_READ}"),
        v if v < 0.0 => format!("> -{LEAST_READ}"),
        _ => NONE.to_owned(),
    }
}

fn group(digits: &str) -> String {
    let mut out = String::with_capacity(digits.len() + digits.len() / 3);
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

/// Nanoseconds as microseconds, without the unit: for a column headed µs.
pub fn micros(nanoseconds: f64) -> String {
    significant(nanoseconds / 1e3, LATENCY_DIGITS)
}

/// Operations per second as thousands, without the unit: for a column headed kops/s.
pub fn kops(ops_s: f64) -> String {
    significant(ops_s / 1e3, THROUGHPUT_DIGITS)
}

/// Nanoseconds with the unit that suits them: `812 ns`, `12.3 µs`, `4.56 ms`, `1.20 s`.
pub fn latency(nanoseconds: f64) -> String {
    scaled(nanoseconds, LATENCY_DIGITS, 1e3, &["ns", "µs", "ms", "s"])
}

/// A tick on a latency axis: the same, without trailing zeros.
pub fn latency_tick(nanoseconds: f64) -> String {
    let (value, unit) = scale(nanoseconds, 1e3, &["ns", "µs", "ms", "s"]);
    format!("{} {unit}", plain(value))
}

/// Operations per second with the unit that suits them: `812 ops/s`, `12.34 kops/s`.
pub fn rate(ops_s: f64) -> String {
    scaled(ops_s, THROUGHPUT_DIGITS, 1e3, &["ops/s", "kops/s", "Mops/s", "Gops/s"])
}

/// A target rate, without trailing zeros: `20 kops/s`.
pub fn target_rate(ops_s: f64) -> String {
    let (value, unit) = scale(ops_s, 1e3, &["ops/s", "kops/s", "Mops/s", "Gops/s"]);
    format!("{} {unit}", plain(value))
}

/// A number of things, short: `812`, `12.3k`, `1M`.
pub fn count_short(value: f64) -> String {
    let (value, unit) = scale(value, 1e3, &["", "k", "M", "G", "T"]);
    format!("{}{unit}", plain((value * 100.0).round() / 100.0))
}

/// Bytes in powers of 1024: `512 B`, `1.50 GiB`.
pub fn bytes(value: f64) -> String {
    if value.abs() < 1024.0 {
        return format!("{} B", significant(value, if value.fract() == 0.0 { 1 } else { 3 }));
    }
    scaled(value, 3, 1024.0, &["B", "KiB", "MiB", "GiB", "TiB", "PiB"])
}

/// A span: `12.3 ms`, `9.98 s`, `2 min 05 s`, `1 h 02 min`.
pub fn seconds(value: f64) -> String {
    if !value.is_finite() {
        return NONE.to_owned();
    }
    let whole = value.round() as u64;
    match value {
        0.0 => "0 s".to_owned(),
        v if v < 1.0 => latency(v * 1e9),
        v if v < 59.95 => format!("{} s", significant(v, 3)),
        v if v < 3599.5 => format!("{} min {:02} s", whole / 60, whole % 60),
        _ => format!("{} h {:02} min", whole / 3600, whole % 3600 / 60),
    }
}

/// A share between 0 and 1: `12.3 %`.
pub fn percent(share: f64) -> String {
    format!("{} %", readable(share * 100.0, 3))
}

/// A quotient: `1.23×`.
pub fn ratio(value: f64) -> String {
    format!("{}×", readable(value, 3))
}

/// A tick on an axis of quotients: `2×`.
pub fn ratio_tick(value: f64) -> String {
    format!("{}×", plain(value))
}

/// Dollars to the cent, and below ten cents two digits: `12.29`, `0.45`, `0.0031`.
pub fn usd(value: f64) -> String {
    let cents = (value * 100.0).round() / 100.0;
    match cents.abs() {
        whole if whole >= 1.0 => significant(cents, whole.log10().floor() as i32 + 3),
        part if part >= 0.1 => significant(cents, 2),
        _ => significant(value, 2),
    }
}

/// A price in whole dollars: `4,100`.
pub fn dollars(value: f64) -> String {
    if value.is_finite() { significant(value.round(), 1) } else { NONE.to_owned() }
}

/// Any value in an SI unit, scaled as usual for that unit.
pub fn value(value: f64, unit: Unit) -> String {
    match unit {
        Unit::Count if value.fract() == 0.0 && (0.0..9e15).contains(&value) => count(value as u64),
        Unit::Count | Unit::Ratio => readable(value, 3),
        Unit::Bytes => bytes(value),
        Unit::BytesPerSecond => scaled(value, 3, 1e3, &["B/s", "kB/s", "MB/s", "GB/s", "TB/s"]),
        Unit::Seconds => seconds(value),
        Unit::Nanoseconds => latency(value),
        Unit::OpsPerSecond => rate(value),
        Unit::JoulesPerOp => {
            let (value, unit) = up_from(value, &["nJ/op", "µJ/op", "mJ/op", "J/op"]);
            format!("{} {unit}", significant(value, 3))
        }
        Unit::UsdPerBillionOps => {
            let (value, unit) = up_from(value, &["$/Top", "$/Gop"]);
            format!("{} {unit}", readable(value, 3))
        }
        Unit::JouleSeconds => format!("{value:.2e} {}", unit.symbol()),
        Unit::Hertz => scaled(value, 3, 1e3, &["Hz", "kHz", "MHz", "GHz"]),
        Unit::CpuSecondsPerMillionOps
        | Unit::PerMillionOps
        | Unit::PerThousandInstructions
        | Unit::Joules
        | Unit::Watts
        | Unit::Celsius
        | Unit::OpsPerJoule => {
            format!("{} {}", readable(value, 3), unit.symbol())
        }
    }
}

/// Two values of one kind, with the unit once where one is usual: `172.4 → 203.3 kops/s`.
pub fn change(a: Option<f64>, b: Option<f64>, unit: Unit) -> String {
    let side = |side: Option<f64>, text: fn(f64) -> String| side.map_or(NONE.to_owned(), text);
    match unit {
        Unit::OpsPerSecond => format!("{} → {} kops/s", side(a, kops), side(b, kops)),
        Unit::Nanoseconds => format!("{} → {} µs", side(a, micros), side(b, micros)),
        _ => {
            let side = |side: Option<f64>| side.map_or(NONE.to_owned(), |v| value(v, unit));
            format!("{} → {}", side(a), side(b))
        }
    }
}

/// `p50`, `p99.9`, `p99.9996`: as many nines as it needs. Only the maximum is `max`.
pub fn percentile(percentile: f64) -> String {
    if percentile >= 100.0 {
        return "max".to_owned();
    }
    // Two digits of what lies above it tell it from its neighbours, and never round to 100.
    let above = (100.0 - percentile).max(1e-11);
    let decimals = (1 - above.log10().floor() as i32).clamp(1, 13) as usize;
    let text = format!("{percentile:.decimals$}");
    format!("p{}", text.trim_end_matches('0').trim_end_matches('.'))
}

/// A round number without trailing zeros.
pub fn plain(value: f64) -> String {
    let text = significant((value * 1e6).round() / 1e6, 6);
    if text.contains('.') {
        text.trim_end_matches('0').trim_end_matches('.').to_owned()
    } else {
        text
    }
}

fn scale<'u>(value: f64, step: f64, units: &[&'u str]) -> (f64, &'u str) {
    let mut value = value;
    let mut at = 0;
    // 999.96 is written 1.00 of the next unit, not 1,000 of this one.
    while value.abs() >= step * 0.9995 && at + 1 < units.len() {
        value /= step;
        at += 1;
    }
    (value, units[at])
}

/// A value in the last of the units, each a thousand of the one before, in the one that suits it.
fn up_from<'u>(value: f64, units: &[&'u str]) -> (f64, &'u str) {
    scale(value * 1e3_f64.powi(units.len() as i32 - 1), 1e3, units)
}

fn scaled(value: f64, digits: i32, step: f64, units: &[&str]) -> String {
    let (value, unit) = scale(value, step, units);
    format!("{} {unit}", readable(value, digits))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_significant_digits() {
        for (value, text) in [
            (0.0, "0"),
            (0.012345, "0.0123"),
            (1.0, "1.00"),
            (9.996, "10.0"),
            (99.95, "100"),
            (123.4, "123"),
            (12_345.6, "12,346"),
            (-1.5, "-1.50"),
            (f64::NAN, NONE),
        ] {
            assert_eq!(significant(value, 3), text, "{value}");
        }
        for (value, text) in [
            (12.2861, "12.29"),
            (0.448, "0.45"),
            (0.999, "1.00"),
            (0.9949, "0.99"),
            (0.003_14, "0.0031"),
            (4100.0, "4,100.00"),
            (-9.906, "-9.91"),
        ] {
            assert_eq!(usd(value), text, "{value}");
        }
        assert_eq!((dollars(4099.6), dollars(0.0)), ("4,100".to_owned(), "0".to_owned()));
        for (value, text) in [
            (0.000_000_387, "< 0.001"),
            (-0.000_1, "> -0.001"),
            (0.001, "0.00100"),
            (0.0, "0"),
            (-0.0, "0"),
            (1234.6, "1,235"),
            (f64::NAN, NONE),
        ] {
            assert_eq!(readable(value, 3), text, "{value}");
        }
        assert_eq!(count(1_234_567), "1,234,567");
        assert_eq!(count(999), "999");
    }

    #[test]
    fn units_are_scaled() {
        assert_eq!(latency(812.0), "812 ns");
        assert_eq!(latency(1e-12), "< 0.001 ns");
        assert_eq!(latency(12_340.0), "12.3 µs");
        assert_eq!(latency(999_960.0), "1.00 ms");
        assert_eq!(latency(1.2e9), "1.20 s");
        assert_eq!(latency_tick(2e7), "20 ms");
        assert_eq!(rate(812_345.0), "812.3 kops/s");
        assert_eq!(target_rate(20_000.0), "20 kops/s");
        assert_eq!(bytes(512.0), "512 B");
        assert_eq!(bytes(1.5 * 1024f64.powi(3)), "1.50 GiB");
        assert_eq!(seconds(0.25), "250 ms");
        assert_eq!(seconds(9.98), "9.98 s");
        assert_eq!(seconds(59.97), "1 min 00 s");
        assert_eq!(seconds(125.0), "2 min 05 s");
        assert_eq!(seconds(3725.0), "1 h 02 min");
        assert_eq!(percent(0.1234), "12.3 %");
        assert_eq!(count_short(1e6), "1M");
        assert_eq!(count_short(12_340.0), "12.34k");
        assert_eq!(percentile(99.9), "p99.9");
        assert_eq!(percentile(100.0 - 1e-2), "p99.99");
    }

    #[test]
    fn only_the_maximum_is_p100() {
        for (value, text) in [
            (0.0, "p0"),
            (50.0, "p50"),
            (82.217_2, "p82.2"),
            (99.0, "p99"),
            (99.95, "p99.95"),
            (99.999, "p99.999"),
            (99.9996, "p99.9996"),
            (99.999_68, "p99.99968"),
            (100.0 * (1.0 - 1e-9), "p99.9999999"),
            (100.0, "max"),
        ] {
            assert_eq!(percentile(value), text, "{value}");
        }
        // In order, and none twice: what lies above shrinks by a twelfth of a decade.
        let names: Vec<f64> = (0..96)
            .map(|i| percentile(100.0 * (1.0 - 10f64.powf(-f64::from(i) / 12.0))))
            .map(|name| name[1..].parse().unwrap())
            .collect();
        assert!(names.windows(2).all(|pair| pair[0] < pair[1]), "{names:?}");
        assert!(names.iter().all(|name| *name < 100.0));
    }

    #[test]
    fn every_unit_is_written() {
        assert_eq!(value(1e6, Unit::Count), "1,000,000");
        assert_eq!(value(2.5555, Unit::Ratio), "2.56");
        assert_eq!(value(4e-7, Unit::Ratio), "< 0.001");
        assert_eq!(value(4e-7, Unit::PerMillionOps), "< 0.001 /Mop");
        assert_eq!(value(2048.0, Unit::Bytes), "2.00 KiB");
        assert_eq!(value(1.25e10, Unit::BytesPerSecond), "12.5 GB/s");
        assert_eq!(value(2.5e9, Unit::Hertz), "2.50 GHz");
        assert_eq!(value(4.2, Unit::CpuSecondsPerMillionOps), "4.20 CPU-s/Mop");
        assert_eq!(value(65.0, Unit::Watts), "65.0 W");
        assert_eq!(change(Some(1e5), Some(2e5), Unit::OpsPerSecond), "100.0 → 200.0 kops/s");
        assert_eq!(change(None, Some(1500.0), Unit::Nanoseconds), "– → 1.50 µs");
        assert_eq!(change(Some(1.0), Some(2048.0), Unit::Bytes), "1 B → 2.00 KiB");
    }
}
