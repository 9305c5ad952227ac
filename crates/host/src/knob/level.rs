//! The syntax of levels: `LEVEL` or `LEVEL@CPUS`, frequencies, lists of CPUs.

use model::cpu_list;

use super::error::KnobRefusal;
use crate::format;

/// The level, and the CPUs behind its `@` if there are any.
pub(super) fn scoped(level: &str) -> Result<(&str, Option<Vec<u32>>), KnobRefusal> {
    let Some((level, list)) = level.rsplit_once('@') else { return Ok((level, None)) };
    match cpu_list::parse(list).filter(|cpus| !cpus.is_empty()) {
        Some(cpus) => Ok((level, Some(cpus))),
        None => Err(KnobRefusal::Level(format!(
            "`{list}` after the @ is not a list of CPUs such as 0-3,8"
        ))),
    }
}

/// Kilohertz of `2.1GHz`, `2100MHz` or `2100000`.
pub(super) fn frequency(text: &str) -> Option<u64> {
    let lower = text.trim().to_ascii_lowercase();
    let (digits, scale) = if let Some(digits) = lower.strip_suffix("ghz") {
        (digits, 1e6)
    } else if let Some(digits) = lower.strip_suffix("mhz") {
        (digits, 1e3)
    } else {
        (lower.strip_suffix("khz").unwrap_or(&lower), 1.0)
    };
    let value = digits.trim().parse::<f64>().ok()? * scale;
    (value.is_finite() && (1.0..1e9).contains(&value)).then_some(value.round() as u64)
}

/// The lowest and the highest kilohertz of `min`, `max`, `all`, `F` or `F..F` within a range.
pub(super) fn span(text: &str, least: u64, most: u64) -> Result<(u64, u64), KnobRefusal> {
    let one = |text: &str| match text {
        "min" => Ok(least),
        "max" => Ok(most),
        text => frequency(text).ok_or_else(|| {
            KnobRefusal::Level(format!("`{text}` is not a frequency such as 1.5GHz"))
        }),
    };
    let (low, high) = match text.split_once("..") {
        Some((low, high)) => (one(low)?, one(high)?),
        None if text == "all" => (least, most),
        None => (one(text)?, one(text)?),
    };
    if low > high {
        return Err(KnobRefusal::Level("write the lower frequency first".to_owned()));
    }
    if low < least || high > most {
        let (least, most) = (format::kilohertz(least), format::kilohertz(most));
        return Err(KnobRefusal::Level(format!("the hardware runs from {least} to {most}")));
    }
    Ok((low, high))
}

/// `1GHz..2.2GHz` or one frequency, as [`span`] reads it.
pub(super) fn span_text(low: u64, high: u64) -> String {
    let text = |value: u64| match value % 10_000 {
        0 => format!("{}GHz", value as f64 / 1e6),
        _ => format!("{value}kHz"),
    };
    if low == high { text(low) } else { format!("{}..{}", text(low), text(high)) }
}

/// The values of each CPU, policy or package; a single value if all are the same.
pub(super) fn tally(values: Vec<(String, Vec<u32>)>) -> String {
    let mut groups: Vec<(String, Vec<u32>)> = Vec::new();
    for (value, of) in values {
        match groups.iter_mut().find(|(known, _)| *known == value) {
            Some((_, all)) => all.extend(of),
            None => groups.push((value, of)),
        }
    }
    if let [(value, _)] = groups.as_slice() {
        return value.clone();
    }
    let text = |(value, of): &mut (String, Vec<u32>)| {
        of.sort_unstable();
        format!("{value}@{}", cpu_list::show(of))
    };
    groups.iter_mut().map(text).collect::<Vec<_>>().join(" ")
}

/// The levels of CPUs that differ, as on hybrid machines: `LEVEL` if every CPU has it, else
/// `LEVEL@CPUS`. Each can be used as it stands.
pub(super) fn common(tables: Vec<(Vec<String>, Vec<u32>)>) -> Vec<String> {
    let mut known: Vec<(String, usize, Vec<u32>)> = Vec::new();
    let count = tables.len();
    for (levels, cpus) in tables {
        for level in levels {
            match known.iter_mut().find(|(name, ..)| *name == level) {
                Some((_, tables, of)) => {
                    *tables += 1;
                    of.extend(&cpus);
                }
                None => known.push((level, 1, cpus.clone())),
            }
        }
    }
    let text = |(level, tables, mut of): (String, usize, Vec<u32>)| {
        of.sort_unstable();
        if tables == count { level } else { format!("{level}@{}", cpu_list::show(&of)) }
    };
    known.into_iter().map(text).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frequencies_and_spans() {
        assert_eq!(frequency("2.1GHz"), Some(2_100_000));
        assert_eq!(frequency("800 mhz"), Some(800_000));
        assert_eq!(frequency("1200000"), Some(1_200_000));
        assert!(
            [frequency(""), frequency("fast"), frequency("-1GHz"), frequency("nan")]
                .iter()
                .all(Option::is_none)
        );
        let span = |text: &str| span(text, 1_000_000, 3_000_000).ok();
        assert_eq!(span("all"), Some((1_000_000, 3_000_000)));
        assert_eq!(span("min"), Some((1_000_000, 1_000_000)));
        assert_eq!(span("1.5GHz..max"), Some((1_500_000, 3_000_000)));
        assert_eq!((span("3.1GHz"), span("2GHz..1GHz"), span("..")), (None, None, None));
        assert_eq!(span_text(1_500_000, 3_000_000), "1.5GHz..3GHz");
        assert_eq!(span_text(2_133_333, 2_133_333), "2133333kHz");
    }

    #[test]
    fn cpus_behind_a_level() {
        assert_eq!(scoped("C1@0-1,3").unwrap(), ("C1", Some(vec![0, 1, 3])));
        assert_eq!(scoped("none").unwrap(), ("none", None));
        assert!(scoped("none@").is_err() && scoped("none@x").is_err());
        let values = vec![("a".into(), vec![0]), ("b".into(), vec![1]), ("a".into(), vec![2])];
        assert_eq!(tally(values), "a@0,2 b@1");
        assert_eq!(tally(vec![("a".into(), vec![0]), ("a".into(), vec![1])]), "a");
    }
}
