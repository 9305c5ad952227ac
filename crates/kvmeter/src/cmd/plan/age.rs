//! Prices that are old.

use std::time::{SystemTime, UNIX_EPOCH};

use analyse::cost::Platform;

const SECONDS_PER_DAY: u64 = 86_400;
const DAYS_PER_YEAR: u64 = 365;

/// A sentence for each platform whose prices are older than a year.
pub fn warnings(platforms: &[&Platform]) -> Vec<String> {
    let elapsed = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    warnings_on(elapsed.as_secs() / SECONDS_PER_DAY, platforms)
}

fn warnings_on(today: u64, platforms: &[&Platform]) -> Vec<String> {
    let mut all = Vec::new();
    for platform in platforms {
        let Some(priced) = platform.priced else { continue };
        let age = today.saturating_sub(priced.days());
        let words = format!(
            "Warning: the prices of platform {} are of {priced}, {age} days old: look them up anew.",
            platform.name
        );
        if age > DAYS_PER_YEAR && !all.contains(&words) {
            all.push(words);
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prices_older_than_a_year_are_warned_of_once() {
        let of = |day: &str| {
            Platform::parse("p", &format!("name = \"p\"\npriced = \"{day}\"\n")).unwrap()
        };
        // 29 November 2026.
        let today = 20_786;
        let old = of("2025-11-28");
        let words = warnings_on(today, &[&old, &old]);
        assert_eq!(words.len(), 1);
        assert!(words[0].contains("2025-11-28, 366 days old"), "{words:?}");
        assert!(warnings_on(today, &[&of("2025-11-29"), &of("2027-01-01")]).is_empty());
    }
}
