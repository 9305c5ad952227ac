use std::collections::HashMap;

/// Event totals of a whole run, from cachegrind's file.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct EventTotals {
    pub instructions: u64,
    /// Conditional and indirect ones.
    pub branches: u64,
    pub mispredicts: u64,
    pub i1_misses: u64,
    pub d1_misses: u64,
    pub ll_misses: u64,
}

impl EventTotals {
    /// Parses the line of event names and the summary; an error says what is wrong.
    pub(super) fn parse(text: &str) -> Result<EventTotals, &'static str> {
        let line = |key: &str| text.lines().rev().find_map(|line| line.strip_prefix(key));
        let names = line("events:").ok_or("names no events")?.split_whitespace();
        let numbers = line("summary:").ok_or("has no summary: the run was cut off")?;
        let numbers: Option<Vec<u64>> =
            numbers.split_whitespace().map(|number| number.parse().ok()).collect();
        let numbers = numbers.ok_or("has a summary that holds more than numbers")?;
        let events: HashMap<&str, u64> = names.zip(numbers).collect();
        let sum = |names: &[&str]| -> Result<u64, &'static str> {
            let each: Option<Vec<u64>> = names.iter().map(|n| events.get(n).copied()).collect();
            Ok(each.ok_or("lacks events: it was written without simulation")?.iter().sum())
        };
        Ok(EventTotals {
            instructions: sum(&["Ir"])?,
            branches: sum(&["Bc", "Bi"])?,
            mispredicts: sum(&["Bcm", "Bim"])?,
            i1_misses: sum(&["I1mr"])?,
            d1_misses: sum(&["D1mr", "D1mw"])?,
            ll_misses: sum(&["ILmr", "DLmr", "DLmw"])?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_the_summary_by_event_names() {
        let text = "desc: I1 cache: 32768 B\ncmd: true\n\
                    events: Ir I1mr ILmr Dr D1mr DLmr Dw D1mw DLmw Bc Bcm Bi Bim\n\
                    fl=a.c\nfn=main\n1 2 3 4 5 6 7 8 9 10 11 12 13 14\n\
                    summary: 1000 11 10 300 12 13 100 5 3 200 20 30 4\n";
        let totals = EventTotals::parse(text).unwrap();
        assert_eq!(
            totals,
            EventTotals {
                instructions: 1000,
                branches: 230,
                mispredicts: 24,
                i1_misses: 11,
                d1_misses: 17,
                ll_misses: 26,
            }
        );
        assert!(EventTotals::parse("events: Ir\nsummary: 5\n").unwrap_err().contains("simulation"));
        assert!(EventTotals::parse("events: Ir\n").unwrap_err().contains("cut off"));
        assert!(EventTotals::parse("events: Ir\nsummary: x\n").is_err());
        assert!(EventTotals::parse("").is_err());
    }
}
