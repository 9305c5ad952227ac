//! The answer: what has changed, the latest first.

use analyse::gate::signed_percent;
use analyse::{CHANGES_FROM, ChangePoint};

use super::HistorySeries;
use crate::format;

/// The most changes with a sentence each.
const MOST: usize = 5;

/// A value with its unit.
pub(super) fn shown(series: &HistorySeries, value: f64) -> String {
    let number = format::readable(value, 3);
    if series.unit.is_empty() { number } else { format!("{number} {}", series.unit) }
}

/// From here on a change is shown as a multiple.
const MULTIPLE: f64 = 3.0;

/// `-5.2 %`, `x 12.0`.
pub(super) fn change_of(change: &ChangePoint) -> String {
    match change.ratio() {
        ratio if ratio.is_finite() && ratio >= MULTIPLE => {
            format!("x {}", format::significant(ratio, 3))
        }
        ratio if ratio.is_finite() => signed_percent(ratio - 1.0),
        _ => "from 0".to_owned(),
    }
}

/// One sentence for each of the latest changes, or one that says that there is none.
pub fn sentences(all: &[HistorySeries]) -> Vec<String> {
    let changes = all.iter().flat_map(|own| own.changes.iter().map(move |change| (own, change)));
    let mut changes: Vec<(&HistorySeries, &ChangePoint)> = changes.collect();
    changes.sort_by_key(|(own, change)| std::cmp::Reverse(&own.points[change.at].started_at));
    let mut said: Vec<String> =
        changes.iter().take(MOST).map(|(own, change)| sentence(own, change)).collect();
    if changes.len() > MOST {
        said.push(format!("{} earlier changes are in the table.", changes.len() - MOST));
    }
    let enough = all.iter().filter(|own| own.points.len() >= CHANGES_FROM).count();
    if said.is_empty() && enough > 0 {
        let results = all.iter().map(|own| own.points.len()).max().unwrap_or_default();
        said.push(format!("No change was found in {enough} series of up to {results} results."));
    }
    if enough < all.len() {
        said.push(format!(
            "{} of {} series have fewer than {CHANGES_FROM} results, too few to distinguish a \
             change from chance.",
            all.len() - enough,
            all.len()
        ));
    }
    said
}

fn sentence(series: &HistorySeries, change: &ChangePoint) -> String {
    let (point, earlier) = (&series.points[change.at], &series.points[change.at - 1]);
    let verb = if change.after < change.before { "fell" } else { "rose" };
    let judged = match series.is_worse(change) {
        Some(true) => " (worse)",
        Some(false) => " (better)",
        None => "",
    };
    let version = match earlier.version == point.version {
        true => point.version.clone(),
        false => format!("{}, before {}", point.version, earlier.version),
    };
    let title = &series.title;
    let first: String = title.chars().take(1).flat_map(char::to_uppercase).collect();
    let rest: String = title.chars().skip(1).collect();
    format!(
        "{first}{rest} {verb} from {} to {}, {}{judged}, with the result of {} ({version}; {}).",
        shown(series, change.before),
        shown(series, change.after),
        change_of(change),
        point.day(),
        point.file,
    )
}
