//! Prices that are old.

use analyse::cost::Platform;
use jiff::civil::Date;

const MAX_DAYS: i64 = 365;

/// A sentence for each platform whose prices are older than a year.
pub fn warnings(platforms: &[&Platform]) -> Vec<String> {
    warnings_on(jiff::Zoned::now().date(), platforms)
}

fn warnings_on(today: Date, platforms: &[&Platform]) -> Vec<String> {
    let mut all = Vec::new();
    for platform in platforms {
        let Some(priced) = platform.priced else { continue };
        let days = priced.duration_until(today).as_hours() / 24;
        let words = format!(
            "Warning: the prices of platform {} are of {priced}, {days} days old: look them up anew.",
            platform.name
        );
        if days > MAX_DAYS && !all.contains(&words) {
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
        let today = Date::constant(2026, 11, 29);
        let old = of("2025-11-28");
        let words = warnings_on(today, &[&old, &old]);
        assert_eq!(words.len(), 1);
        assert!(words[0].contains("2025-11-28, 366 days old"), "{words:?}");
        assert!(warnings_on(today, &[&of("2025-11-29"), &of("2027-01-01")]).is_empty());
    }
}
