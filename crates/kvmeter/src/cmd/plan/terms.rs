//! The demand and the assumptions of `kvmeter plan`, and their limits.

use analyse::cost::{GivenLevels, Platform};
use analyse::fleet_plan::{Demand, PurchaseTerms};
use report::format;

use super::PlanArgs;
use crate::exit::request;
use crate::flags::platform::{above_zero, not_below_zero};

/// Defaults: the shorter lifetime and the higher price of the thesis (chapter 5).
const YEARS: f64 = 3.0;
const USD_PER_KWH: f64 = 0.25;

/// The demand of the flags.
pub fn demand(args: &PlanArgs) -> anyhow::Result<Demand> {
    let fits = |checked: Result<f64, String>| checked.map_err(request);
    fits(above_zero("--rate", args.rate.0))?;
    if args.data.is_some_and(|data| data.0 == 0) {
        return Err(request("--data: 0 is not more than zero; leave it out if room is no matter"));
    }
    if !(args.peak_over_mean.is_finite() && args.peak_over_mean >= 1.0) {
        let peak = args.peak_over_mean;
        return Err(request(format!("--peak-over-mean: {peak} is below 1, the mean itself")));
    }
    if !(args.pue.is_finite() && args.pue >= 1.0) {
        let pue = args.pue;
        return Err(request(format!("--pue: {pue} is below 1, the power of the machines alone")));
    }
    for (name, value) in [
        ("--years", args.years),
        ("--price-per-kwh", args.price_per_kwh),
        ("--rack-power", args.rack_power),
    ] {
        fits(above_zero(name, value.unwrap_or(1.0)))?;
    }
    for (name, value) in [("--carbon", args.carbon), ("--rack-rent", args.rack_rent)] {
        fits(not_below_zero(name, value.unwrap_or(0.0)))?;
    }
    Ok(Demand {
        rate_ops_s: args.rate.0,
        peak_over_mean: args.peak_over_mean,
        data_bytes: args.data.map(|data| data.0 as f64),
        replicas: args.replicas,
        spares: args.spares,
    })
}

/// The terms for all machines; what is assumed is added to `notes`.
pub fn terms(
    args: &PlanArgs,
    platforms: &[&Platform],
    notes: &mut Vec<String>,
) -> anyhow::Result<PurchaseTerms> {
    let levels = |of: fn(&Platform) -> &Option<GivenLevels>| -> Vec<f64> {
        let given = platforms.iter().filter_map(|platform| of(platform).as_ref());
        given.flat_map(|levels| levels.values.iter().copied()).collect()
    };
    let years = levels(|platform| &platform.lifetime_years).into_iter().reduce(f64::min);
    let kwh = levels(|platform| &platform.electricity_usd_per_kwh).into_iter().reduce(f64::max);
    let mut chosen = |given: Option<f64>, own: Option<f64>, usual: f64, words: [&str; 3]| {
        let [flag, what, which] = words;
        let value = given.or(own).unwrap_or(usual);
        if given.is_none() {
            let whose = match own {
                Some(_) => format!("the {which} of the platforms"),
                None => "of the thesis".to_owned(),
            };
            let value = format::plain(value);
            notes.push(format!("Assumed {what}: {value}, {whose} ({flag} gives another)."));
        }
        value
    };
    let years = chosen(args.years, years, YEARS, ["--years", "lifetime, years", "shortest"]);
    let words = ["--price-per-kwh", "price of electricity, $/kWh", "highest"];
    let usd_per_kwh = chosen(args.price_per_kwh, kwh, USD_PER_KWH, words);
    if args.peak_over_mean == 1.0 {
        notes.push(
            "Assumed that --rate is never exceeded (--peak-over-mean gives the highest rate)."
                .to_owned(),
        );
    }
    if args.data.is_none() {
        notes.push("Room for data limits nothing: --data gives its size.".to_owned());
    }
    notes.push(
        "Machines share the load evenly and serve in sum what each served alone; networks between \
         them, staff, floor, interest and discounts are not in the model."
            .to_owned(),
    );
    Ok(PurchaseTerms {
        years,
        usd_per_kwh,
        pue: args.pue,
        usd_per_rack_unit_month: args.rack_rent.unwrap_or(0.0),
        rack_w: args.rack_power,
        carbon_g_per_kwh: args.carbon,
    })
}
