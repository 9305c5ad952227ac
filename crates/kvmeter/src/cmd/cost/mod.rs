//! `kvmeter cost`: the cost of serving a load, from results, given numbers, or a publication's
//! inputs.

mod candidates;
mod graduated;
mod published;
pub mod work_units;

use std::path::PathBuf;

use analyse::cost::published::Published;
use analyse::cost::{CostTerms, Platform, SourcedCandidate, answer};
use clap::{Args, ValueHint};
use model::Rate;
use report::cost::CostView;
use report::table::Table;

use crate::exit::{ExitOutcome, request};
use crate::flags::platform::{PlatformFlag, above_zero, not_below_zero};
use crate::flags::share;
use crate::output::Output;
use crate::output_files;

/// Defaults: the values of the thesis (chapter 5).
const TARGET_OPS_S: f64 = 1e8;
const YEARS: [f64; 2] = [3.0, 5.0];
const USD_PER_KWH: [f64; 2] = [0.07, 0.25];

#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    kvmeter cost results.sqlite --platform server.toml --target 10M\n  \
    kvmeter cost results.sqlite --platform price=2400,idle=60 --utilisation 40% --pue 1.4\n  \
    kvmeter cost --platform s1,throughput=337k,watts=52,price=900 \\\n               \
    --platform s4,throughput=1.19M,watts=203,price=3000\n  \
    kvmeter cost --platform name=box,throughput=2M,watts=180 --energy-only --carbon 300\n  \
    kvmeter cost --published arm-vs-x86               the thesis's table 5.2 and its break-evens\n  \
    kvmeter cost --published mbwu                     the poster's tables\n  \
    kvmeter cost --platform mbwu-host,mbwus=6,watts=208 \\\n               \
    --platform mbwu-embedded,mbwus=0.5,watts=10.4\n\n\
    Everything that it prints is modelled. The first machine is the one that others are set\n\
    against. The formulas, and the form of a platform file, are in docs/cost.md.")]
pub struct CostArgs {
    /// Results, or a part of them: FILE?key=value. Their runs' throughput and power are taken
    #[arg(value_hint = ValueHint::FilePath, conflicts_with = "published")]
    pub files: Vec<String>,
    /// A machine: a built-in platform or a file, then numbers of your own over it: throughput, watts,
    /// idle, price, rack_units, m2, mbwus, amps, name, workload; machine=ID for results of one
    /// machine alone
    #[arg(long, value_name = "NAME|FILE[,KEY=VALUE...]", conflicts_with = "published")]
    pub platform: Vec<PlatformFlag>,
    /// Recompute a publication from its own inputs: arm-vs-x86 or mbwu
    #[arg(long, value_name = "NAME")]
    pub published: Option<String>,
    /// Operations per second of all servers together [default: 100M]
    #[arg(long, value_name = "RATE", allow_hyphen_values = true)]
    pub target: Option<Rate>,
    /// Lifetimes in years [default: the platforms', else 3,5]
    #[arg(long, value_name = "YEARS,...", value_delimiter = ',', allow_hyphen_values = true)]
    pub years: Vec<f64>,
    /// Prices of electricity, $/kWh [default: the platforms', else 0.07,0.25]
    #[arg(long, value_name = "USD,...", value_delimiter = ',', allow_hyphen_values = true)]
    pub price_per_kwh: Vec<f64>,
    /// Power usage effectiveness: watts of the building for each watt of a server
    #[arg(long, value_name = "FACTOR", allow_hyphen_values = true, default_value_t = 1.0)]
    pub pue: f64,
    /// Carbon intensity of the electricity, grams of CO2 equivalent for a kWh
    #[arg(long, value_name = "GRAMS", allow_hyphen_values = true)]
    pub carbon: Option<f64>,
    /// Rent of a rack unit, $ a month
    #[arg(long, value_name = "USD", allow_hyphen_values = true)]
    pub rack_rent: Option<f64>,
    /// Share of its full load at which a server works on average; below 100 % its idle power
    /// counts
    #[arg(long, value_name = "SHARE", allow_hyphen_values = true, default_value = "100%", value_parser = share)]
    pub utilisation: f64,
    /// Price of the other server for which break-even prices are shown, where it has none
    #[arg(long, value_name = "USD", allow_hyphen_values = true, default_value_t = 3000.0)]
    pub at_price: f64,
    /// Relative range of each assumption, up and down, for the sensitivity of the verdict
    #[arg(long, value_name = "SHARE", allow_hyphen_values = true, default_value = "20%", value_parser = share)]
    pub spread: f64,
    /// Leave prices of servers out: energy and break-even prices alone
    #[arg(long)]
    pub energy_only: bool,
    /// Volts, for MBWUs whose power is given in amperes
    #[arg(long, value_name = "VOLTS", allow_hyphen_values = true)]
    pub volts: Option<f64>,
    /// Write a page with the tables and with cost drawn against price
    #[arg(long, value_name = "OUT", value_hint = ValueHint::FilePath)]
    pub html: Option<PathBuf>,
    /// Print Markdown
    #[arg(long, conflicts_with = "json")]
    pub markdown: bool,
    /// One JSON object
    #[arg(long)]
    pub json: bool,
}

pub fn run(args: &CostArgs, show: &Output) -> anyhow::Result<ExitOutcome> {
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
fn check(args: &CostArgs) -> anyhow::Result<()> {
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
    fn show(&self, args: &CostArgs, show: &Output) -> anyhow::Result<ExitOutcome> {
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
            let object = report::cost::object(&view, self.candidates);
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
fn text(tables: &[Table], args: &CostArgs, show: &Output) -> String {
    let written = tables.iter().map(|table| match args.markdown {
        true => report::markdown::table(table),
        false => report::terminal::table(table, show.style()),
    });
    written.collect::<Vec<_>>().join("\n")
}
