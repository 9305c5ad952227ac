//! The answer in words.

use analyse::fleet_plan::{MixedFleet, PlannedFleet};

use super::PlanView;
use crate::format;

/// What to buy or rent, and the runner-up.
pub fn sentences(view: &PlanView<'_>) -> Vec<String> {
    let first = view.plan.first();
    let mut all = vec![purchase(view, first)];
    all.push(match view.plan.runner_up() {
        Some(second) => runner_up(view, first, second),
        None => "There is no runner-up: this is the only machine with a capacity and a price."
            .to_owned(),
    });
    all.extend(view.mixed.map(|mixed| several_kinds(view, first, mixed)));
    all.extend(certainty(view, first));
    all
}

/// The fleet of several kinds, which is cheaper.
fn several_kinds(view: &PlanView<'_>, first: &PlannedFleet, mixed: &MixedFleet) -> String {
    let kinds = mixed.machines.iter().map(|(choice, machines)| {
        format!("{} of {}", format::count(*machines), view.choices[*choice].name)
    });
    let kinds: Vec<String> = kinds.collect();
    let watts =
        mixed.watts.map_or(String::new(), |watts| format!(", {} W", format::dollars(watts)));
    let proof = match mixed.gap > 0.0 {
        true => format!("another mixture is at most {} cheaper", format::percent(mixed.gap)),
        false => "no mixture is cheaper".to_owned(),
    };
    format!(
        "Several kinds together cost {} less: {}, ${} a month{watts}; {proof}.",
        format::percent(1.0 - mixed.usd_per_h / first.cost.total_usd_per_h()),
        kinds.join(" and "),
        money(mixed.usd_per_month())
    )
}

/// How sure the first choice is; None where no capacity was repeated.
fn certainty(view: &PlanView<'_>, first: &PlannedFleet) -> Option<String> {
    let own = view.confidence?.choices.get(first.choice)?;
    let interval = own.usd_per_month.map_or(String::new(), |(low, high)| {
        format!("It costs ${} to ${} a month with 95 % confidence. ", money(low), money(high))
    });
    let share = format::percent(own.cheapest_share);
    Some(format!(
        "{interval}It is the cheapest in {share} of the resamples of repeated capacities."
    ))
}

fn purchase(view: &PlanView<'_>, fleet: &PlannedFleet) -> String {
    let choice = &view.choices[fleet.choice];
    let verb = if choice.pricing.is_bought() { "Buy" } else { "Rent" };
    let mut parts = vec![format!(
        "${} a month (${} over {} years)",
        money(fleet.usd_per_month()),
        money(fleet.usd_over_life()),
        format::plain(fleet.years)
    )];
    parts.extend(fleet.watts.map(|watts| format!("{} W", format::dollars(watts))));
    parts.extend(fleet.rack_units.map(|units| match units == 1.0 {
        true => "1 rack unit".to_owned(),
        false => format!("{} rack units", format::plain(units)),
    }));
    let served = match view.objective {
        Some(objective) => format!(" at {objective}"),
        None => String::new(),
    };
    let spare = match fleet.size.spares {
        0 => String::new(),
        1 => ", one of them spare".to_owned(),
        spares => format!(", {spares} of them spare"),
    };
    format!(
        "{verb} {} of {}{spare} for {}{served}: {}; {} decides how many.",
        format::count(fleet.machines()),
        choice.name,
        format::target_rate(view.demand.peak_ops_s()),
        parts.join(", "),
        fleet.size.binding().name()
    )
}

fn runner_up(view: &PlanView<'_>, first: &PlannedFleet, second: &PlannedFleet) -> String {
    let (own, other) = (first.cost.total_usd_per_h(), second.cost.total_usd_per_h());
    let more = match own > 0.0 && other > own {
        true => format!("costs {} more", format::percent(other / own - 1.0)),
        false => "costs as much".to_owned(),
    };
    format!(
        "Runner-up: {} of {}, which {more}, ${} a month; {} decides how many.",
        format::count(second.machines()),
        view.choices[second.choice].name,
        money(second.usd_per_month()),
        second.size.binding().name()
    )
}

/// Whole dollars where there are many.
pub(super) fn money(usd: f64) -> String {
    const MANY: f64 = 1_000.0;
    if usd >= MANY { format::dollars(usd) } else { format::usd(usd) }
}
