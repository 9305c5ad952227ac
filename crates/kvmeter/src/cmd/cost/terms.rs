//! The assumptions of `kvmeter cost`, and their limits.

use analyse::cost::{CostTerms, Platform};

use super::CostArgs;
use crate::exit::request;
use crate::flags::platform::{above_zero, not_below_zero};
use crate::flags::share;
use crate::output_files;

/// Defaults: the values of the thesis (chapter 5).
const TARGET_OPS_S: f64 = 1e8;
const YEARS: [f64; 2] = [3.0, 5.0];
const USD_PER_KWH: [f64; 2] = [0.07, 0.25];

/// U of the servers.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Utilisation {
    Share(f64),
    /// Of each its own: how busy its CPUs were.
    Measured,
}

impl Utilisation {
    /// Whether power between that under load and that of the idle server counts.
    pub fn is_partial(self) -> bool {
        match self {
            Utilisation::Share(share) => share < 1.0,
            Utilisation::Measured => true,
        }
    }

    /// That of servers without one of their own.
    fn share(self) -> f64 {
        match self {
            Utilisation::Share(share) => share,
            Utilisation::Measured => 1.0,
        }
    }
}

/// `40%`, `0.4` or `measured`.
pub fn utilisation(text: &str) -> Result<Utilisation, String> {
    match text.trim() {
        "measured" => Ok(Utilisation::Measured),
        text => share(text).map(Utilisation::Share).map_err(|why| format!("{why}, or `measured`")),
    }
}

/// Refuses impossible numbers; the messages name the flag.
pub fn check(args: &CostArgs) -> anyhow::Result<()> {
    let fits = |checked: Result<f64, String>| checked.map(drop).map_err(request);
    if let Some(target) = args.target {
        fits(above_zero("--target", target.0))?;
    }
    for years in &args.years {
        fits(above_zero("--years", *years))?;
    }
    for price in &args.price_per_kwh {
        fits(above_zero("--price-per-kwh", *price))?;
    }
    for (name, value) in [("--carbon", args.carbon), ("--rack-rent", args.rack_rent)] {
        fits(not_below_zero(name, value.unwrap_or(0.0)))?;
    }
    fits(above_zero("--volts", args.volts.unwrap_or(1.0)))?;
    fits(not_below_zero("--at-price", args.at_price))?;
    if !(args.pue.is_finite() && args.pue >= 1.0) {
        return Err(request(format!(
            "--pue: {} is below 1, the power of the servers alone",
            args.pue
        )));
    }
    for (name, share) in [("utilisation", args.utilisation.share()), ("spread", args.spread)] {
        if !(0.0..=1.0).contains(&share) {
            return Err(request(format!("--{name}: {share} is not a share from 0 to 100 %")));
        }
    }
    if args.spread == 0.0 || args.spread == 1.0 {
        return Err(request("--spread: more than 0 and less than 100 % is needed"));
    }
    if let Some(html) = &args.html {
        output_files::check_output("--html", html, &[])?;
    }
    Ok(())
}

/// The assumptions for all candidates; defaults are added to `notes`.
pub fn terms(
    args: &CostArgs,
    platforms: &[&Platform],
    notes: &mut Vec<String>,
) -> anyhow::Result<CostTerms> {
    let years = levels(
        ("--years", "lifetimes, years"),
        &args.years,
        platforms.iter().filter_map(|p| Some(p.lifetime_years.as_ref()?.values.as_slice())),
        &YEARS,
        notes,
    )?;
    let usd_per_kwh = levels(
        ("--price-per-kwh", "prices of electricity, $/kWh"),
        &args.price_per_kwh,
        platforms
            .iter()
            .filter_map(|p| Some(p.electricity_usd_per_kwh.as_ref()?.values.as_slice())),
        &USD_PER_KWH,
        notes,
    )?;
    Ok(CostTerms {
        target_ops_s: args.target.map_or(TARGET_OPS_S, |rate| rate.0),
        years,
        usd_per_kwh,
        pue: args.pue,
        usd_per_rack_unit_month: args.rack_rent.unwrap_or(0.0),
        carbon_g_per_kwh: args.carbon,
        utilisation: args.utilisation.share(),
        at_price_usd: args.at_price,
        spread: args.spread,
    })
}

/// The flag's levels, else the platforms', else the thesis's.
fn levels<'p>(
    (flag, what): (&str, &str),
    given: &[f64],
    platforms: impl Iterator<Item = &'p [f64]>,
    thesis: &[f64],
    notes: &mut Vec<String>,
) -> anyhow::Result<Vec<f64>> {
    if !given.is_empty() {
        return Ok(given.to_vec());
    }
    let mut all: Vec<&[f64]> = platforms.collect();
    all.dedup();
    match all.as_slice() {
        [] => {
            let words: Vec<String> = thesis.iter().map(|v| report::format::plain(*v)).collect();
            notes.push(format!("Assumed {what}: {} ({flag} gives others).", words.join(", ")));
            Ok(thesis.to_vec())
        }
        [only] => Ok(only.to_vec()),
        _ => Err(request(format!("the platforms give different {what}; choose with {flag}"))),
    }
}
