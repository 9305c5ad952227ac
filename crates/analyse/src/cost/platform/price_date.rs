//! The day of a price, and its age.

use std::fmt;

use serde::{Deserialize, Deserializer, de};

/// A day of the Gregorian calendar, from 1970 on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct PriceDate {
    year: u16,
    month: u8,
    day: u8,
}

const FIRST_YEAR: u16 = 1970;
const LAST_YEAR: u16 = 9999;

impl PriceDate {
    /// Reads `2026-05-31`; None where it is no such day.
    pub fn parse(text: &str) -> Option<PriceDate> {
        let mut parts = text.trim().split('-');
        let mut part = |digits: usize| {
            let text = parts.next().filter(|text| text.len() == digits)?;
            text.bytes().all(|byte| byte.is_ascii_digit()).then(|| text.parse::<u16>().ok())?
        };
        let (year, month, day) = (part(4)?, part(2)?, part(2)?);
        let known = parts.next().is_none()
            && (FIRST_YEAR..=LAST_YEAR).contains(&year)
            && (1..=12).contains(&month)
            && (1..=days_of(year, month)).contains(&day);
        known.then_some(PriceDate { year, month: month as u8, day: day as u8 })
    }

    /// Days from 1 January 1970.
    pub fn days(self) -> u64 {
        let years = (FIRST_YEAR..self.year).map(|year| 365 + u64::from(is_leap(year))).sum::<u64>();
        let months: u64 =
            (1..u16::from(self.month)).map(|month| u64::from(days_of(self.year, month))).sum();
        years + months + u64::from(self.day) - 1
    }
}

const fn is_leap(year: u16) -> bool {
    year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400))
}

const fn days_of(year: u16, month: u16) -> u16 {
    match month {
        4 | 6 | 9 | 11 => 30,
        2 if is_leap(year) => 29,
        2 => 28,
        _ => 31,
    }
}

impl fmt::Display for PriceDate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:04}-{:02}-{:02}", self.year, self.month, self.day)
    }
}

impl<'de> Deserialize<'de> for PriceDate {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<PriceDate, D::Error> {
        let text = String::deserialize(from)?;
        PriceDate::parse(&text)
            .ok_or_else(|| de::Error::custom(format!("`{text}` is not a day; write 2026-05-31")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_are_counted_by_the_calendar() {
        for (text, days) in
            [("1970-01-01", 0), ("1972-02-29", 789), ("2000-03-01", 11_017), ("2026-11-29", 20_786)]
        {
            let date = PriceDate::parse(text).unwrap();
            assert_eq!((date.days(), date.to_string().as_str()), (days, text));
        }
    }

    #[test]
    fn refuses_what_is_no_day() {
        for text in [
            "2026-02-29",
            "2026-13-01",
            "2026-1-1",
            "26-01-01",
            "1969-12-31",
            "2026-01-00",
            "2026-01-01-01",
            "",
            "+026-01-01",
            "2026-05",
        ] {
            assert_eq!(PriceDate::parse(text), None, "{text}");
        }
    }
}
