//! `kvmeter cost`: the cost of serving a load, from results, given numbers, or a publication's
//! inputs.

mod candidates;
mod graduated;
mod object;
mod published;
pub mod work_units;

use analyse::cost::published::Published;
use analyse::cost::{CostTerms, Platform, answer};
use report::cost::CostView;
use report::table::Table;

use crate::cost_flags::{Cost, above_zero, not_below_zero};
use crate::exit::{ExitOutcome, request};
use crate::output::Output;
use crate::output_files;
use candidates::SourcedCandidate;

/// Defaults: the values of the thesis (chapter 5).
const TARGET_OPS_S: f64 = 1e8;
const YEARS: [f64; 2] = [3.0, 5.0];
const USD_PER_KWH: [f64; 2] = [0.07, 0.25];

pub fn run(args: &Cost, show: &Output) -> anyhow::Result<ExitOutcome> {
    check(args)?;
    if let Some(name) = &args.published {
        return match Published::named(name)? {
            Published::Clusters(table) => published::clusters(args, &table, show),
            Published::WorkUnits(table) => work_units::published(args, &table, show),
        };
    }
    if args.platform.iter().any(|flag| flag.mbwus.is_some()) {
        return work_units::given(args, show);
    }
    let candidates = candidates::gather(args)?;
    let platforms: Vec<&Platform> =
        candidates.iter().filter_map(|one| one.platform.as_ref()).collect();
    let mut notes = Vec::new();
    let terms = terms(args, &platforms, &mut notes)?;
    for note in candidates.iter().flat_map(|one| &one.notes) {
        if !notes.contains(note) {
            notes.push(note.clone());
        }
    }
    let title = "What it costs";
    let shown = CostOutput {
        title,
        candidates: &candidates,
        terms: &terms,
        printed: &[],
        headline: None,
        notes,
    };
    shown.show(args, show)
}

/// Refuses impossible numbers; the messages name the flag.
fn check(args: &Cost) -> anyhow::Result<()> {
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
        return Err(request(format!("--pue: {} is below 1, what the servers draw", args.pue)));
    }
    for (name, share) in [("utilisation", args.utilisation), ("spread", args.spread)] {
        if !(0.0..=1.0).contains(&share) {
            return Err(request(format!("--{name}: {share} is no share from 0 to 100 %")));
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
fn terms(
    args: &Cost,
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
        utilisation: args.utilisation,
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
        _ => Err(request(format!("the platforms give different {what}; say which with {flag}"))),
    }
}

/// The output of `kvmeter cost`.
pub(super) struct CostOutput<'a> {
    title: &'a str,
    candidates: &'a [SourcedCandidate],
    terms: &'a CostTerms,
    printed: &'a [report::cost::PrintedCost],
    headline: Option<&'a str>,
    notes: Vec<String>,
}

impl CostOutput<'_> {
    fn show(&self, args: &Cost, show: &Output) -> anyhow::Result<ExitOutcome> {
        let candidates: Vec<_> = self.candidates.iter().map(|one| one.candidate.clone()).collect();
        let answer = answer(&candidates, self.terms).map_err(|error| request(error.to_string()))?;
        let view = CostView {
            title: self.title,
            answer: &answer,
            terms: self.terms,
            printed: self.printed,
            headline: self.headline,
            notes: &self.notes,
        };
        if args.json {
            let object = object::object(&view, self.candidates);
            show.json(&object)?;
        } else {
            show.print_styled(&text(&report::cost::tables(&view), args, show))?;
        }
        if let Some(html) = &args.html {
            let page = report::cost::page(&view);
            output_files::write(html, page.as_bytes())?;
            show.note(&format!("page     {}", html.display()));
        }
        Ok(ExitOutcome::Done)
    }
}

/// Tables in the chosen format.
fn text(tables: &[Table], args: &Cost, show: &Output) -> String {
    let written = tables.iter().map(|table| match args.markdown {
        true => report::markdown::table(table),
        false => report::terminal::table(table, show.style()),
    });
    written.collect::<Vec<_>>().join("\n")
}
