//! Lists of CPUs and of other numbers as the kernel writes them: `0-3,8`.

use std::collections::BTreeSet;

/// A corrupt file must not exhaust memory.
const LONGEST_RANGE: u32 = 1 << 16;

/// The numbers of a list, in order and once each. `None` where it is not a list; an empty text is
/// an empty one.
pub fn parse(text: &str) -> Option<Vec<u32>> {
    let mut numbers = BTreeSet::new();
    let text = text.trim();
    for part in text.split(',').filter(|_| !text.is_empty()) {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let (first, last): (u32, u32) = (first.trim().parse().ok()?, last.trim().parse().ok()?);
        if first > last || last - first > LONGEST_RANGE {
            return None;
        }
        numbers.extend(first..=last);
    }
    Some(numbers.into_iter().collect())
}

/// The shortest list of numbers that are in order.
pub fn show(numbers: &[u32]) -> String {
    let mut runs: Vec<(u32, u32)> = Vec::new();
    for &number in numbers {
        match runs.last_mut() {
            Some((_, last)) if *last + 1 == number => *last = number,
            _ => runs.push((number, number)),
        }
    }
    let run = |(first, last): &(u32, u32)| match first == last {
        true => first.to_string(),
        false => format!("{first}-{last}"),
    };
    runs.iter().map(run).collect::<Vec<_>>().join(",")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_read_back() {
        for (text, numbers, shown) in [
            ("0\n", vec![0], "0"),
            ("0-3,8,10-11\n", vec![0, 1, 2, 3, 8, 10, 11], "0-3,8,10-11"),
            ("8,0-1, 1", vec![0, 1, 8], "0-1,8"),
            ("1000000", vec![1_000_000], "1000000"),
            ("", vec![], ""),
        ] {
            assert_eq!(parse(text).as_ref(), Some(&numbers), "{text}");
            assert_eq!(show(&numbers), shown);
        }
        for text in ["a", "3-1", "0-", "-1", "1-2-3", "0-99999999", "0-4294967295", "0,,1", "0,"] {
            assert_eq!(parse(text), None, "{text}");
        }
    }
}
