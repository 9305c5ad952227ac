//! Sizes, intervals and probabilities as text.

use crate::effect::{EffectScale, EffectSize};
use crate::interval::{Interval, IntervalMethod, NoInterval, TAIL};
use crate::quantile::student;

pub(super) fn between(interval: &Result<Interval, NoInterval>) -> String {
    match interval {
        Ok(i) => format!(" (95 % {} to {})", number(i.low), number(i.high)),
        Err(_) => String::new(),
    }
}

pub(super) fn listed(words: &[&str]) -> String {
    match words {
        [] => String::new(),
        [one] => (*one).to_owned(),
        [first @ .., last] => format!("{} and {last}", first.join(", ")),
    }
}

/// How a size and its interval are written: a quotient far from 1 is not a percentage.
#[derive(Clone, Copy)]
pub(super) enum SizeFormat {
    Percent,
    Times,
    Amount,
}

pub(super) fn size_format(size: &EffectSize) -> SizeFormat {
    let ends = size.interval.as_ref().map_or([size.value; 2], |i| [i.low, i.high]);
    let far = |ratio: f64| !(0.1..2.0).contains(&ratio);
    match size.scale {
        EffectScale::Difference => SizeFormat::Amount,
        EffectScale::Ratio if far(size.value) || ends.into_iter().any(far) => SizeFormat::Times,
        EffectScale::Ratio => SizeFormat::Percent,
    }
}

/// `12.3 % higher`, `2.31 times as high`, `0.12 W lower`.
pub(super) fn change(size: &EffectSize, unit: &str) -> String {
    let way = |up: bool| if up { "higher" } else { "lower" };
    match size_format(size) {
        SizeFormat::Times => format!("{} times as high", number(size.value)),
        SizeFormat::Percent => {
            let change = size.value - 1.0;
            format!("{} {}", percent(change.abs()), way(change > 0.0))
        }
        SizeFormat::Amount => {
            format!("{} {}", amount(size.value.abs(), unit), way(size.value > 0.0))
        }
    }
}

/// How many repeats would show a difference of this size, by the spread of those that there are,
/// if `family` comparisons are corrected together; None where it is within 5 %, or where more than a
/// thousand would be needed.
///
/// The difference has to be as large as its standard error times the quantiles of the level and of
/// a power of 80 % (Cohen 1988, ch. 2). The level is Bonferroni's, the strictest that Holm's
/// correction may take; the error falls with the root of the repeats.
pub(super) fn repeats_needed(
    size: &EffectSize,
    interval: &Interval,
    repeats: usize,
    family: usize,
) -> Option<usize> {
    const MOST: usize = 1000;
    const WORTH_SHOWING: f64 = 0.05;
    /// The normal distribution's quantile at 80 %.
    const POWER: f64 = 0.8416;
    let IntervalMethod::Contrast { df, .. } = interval.method else { return None };
    let (effect, half) = match size.scale {
        EffectScale::Ratio => (size.value.ln().abs(), (interval.high / interval.low).ln() / 2.0),
        EffectScale::Difference => (size.value.abs(), (interval.high - interval.low) / 2.0),
    };
    let least = match size.scale {
        EffectScale::Ratio => WORTH_SHOWING.ln_1p(),
        EffectScale::Difference => 0.0,
    };
    let error = half / student(1.0 - TAIL, df);
    let tail = TAIL / family.max(1) as f64;
    let known = repeats.max(1) as f64;
    let suffice = |repeats: usize| {
        let repeats = repeats as f64;
        let df = df * (repeats - 1.0) / (known - 1.0).max(1.0);
        (student(1.0 - tail, df) + POWER) * error / (repeats / known).sqrt() <= effect
    };
    if effect <= least || !suffice(MOST) {
        return None;
    }
    let (mut short, mut enough) = (repeats, MOST);
    while enough > short + 1 {
        let middle = usize::midpoint(short, enough);
        if suffice(middle) { enough = middle } else { short = middle }
    }
    Some(enough)
}

/// An end of an interval: `+8.1 %`, `2.1`, `-0.3 W`.
pub(super) fn end(format: SizeFormat, value: f64, unit: &str) -> String {
    let sign = |value: f64| if value < 0.0 { "-" } else { "+" };
    match format {
        SizeFormat::Times => number(value),
        SizeFormat::Percent => format!("{}{}", sign(value - 1.0), percent((value - 1.0).abs())),
        SizeFormat::Amount => format!("{}{}", sign(value), amount(value.abs(), unit)),
    }
}

pub(super) fn amount(value: f64, unit: &str) -> String {
    match unit {
        "" => number(value),
        // As `--json` has it.
        "us" => format!("{} µs", number(value)),
        _ => format!("{} {unit}", number(value)),
    }
}

pub(super) fn percent(share: f64) -> String {
    let percent = share * 100.0;
    match percent {
        0.0 => "0 %".to_owned(),
        p if p >= 9.95 => format!("{p:.0} %"),
        p if p >= 0.095 => format!("{p:.1} %"),
        p => format!("{p:.2} %"),
    }
}

pub(super) fn probability(p: f64) -> String {
    match p {
        p if p < 0.001 => "p < 0.001".to_owned(),
        p if p < 0.1 => format!("p = {p:.3}"),
        p => format!("p = {p:.2}"),
    }
}

/// Three digits, without an exponent in the usual range.
pub(super) fn number(value: f64) -> String {
    let size = value.abs();
    match size {
        0.0 => "0".to_owned(),
        s if !(1e-4..1e7).contains(&s) => format!("{value:.2e}"),
        _ => {
            let decimals = (2 - size.log10().floor() as i32).clamp(0, 6) as usize;
            grouped(&format!("{value:.decimals$}"))
        }
    }
}

/// `12,345` of `12345`; digits behind a point stay as they are.
fn grouped(number: &str) -> String {
    let (whole, rest) = number.split_at(number.find('.').unwrap_or(number.len()));
    let digits = whole.trim_start_matches('-').len();
    let mut out = String::new();
    for (place, digit) in whole.chars().rev().enumerate() {
        if place > 0 && place % 3 == 0 && place < digits {
            out.insert(0, ',');
        }
        out.insert(0, digit);
    }
    out + rest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_rounded_to_three_digits() {
        for (value, text) in [
            (0.0, "0"),
            (1.234, "1.23"),
            (12.34, "12.3"),
            (1234.4, "1,234"),
            (-1_234_567.0, "-1,234,567"),
            (0.0123, "0.0123"),
            (1e-9, "1.00e-9"),
            (-2.5, "-2.50"),
        ] {
            assert_eq!(number(value), text);
        }
        assert_eq!(percent(0.12345), "12 %");
        assert_eq!(percent(0.0123), "1.2 %");
        assert_eq!(percent(0.0001), "0.01 %");
        assert_eq!(end(SizeFormat::Percent, 0.91, ""), "-9.0 %");
        assert_eq!(end(SizeFormat::Times, 2.5, ""), "2.50");
        assert_eq!(end(SizeFormat::Amount, -0.3, "W"), "-0.300 W");
        assert_eq!(probability(0.0), "p < 0.001");
        assert_eq!(probability(0.0312), "p = 0.031");
        assert_eq!(listed(&["a", "b", "c"]), "a, b and c");
    }
}
