//! `kvmeter cost`: the cost of serving a load, from results, given numbers, or a publication's
//! inputs.

pub mod candidates;
mod graduated;
mod output;
mod published;
mod terms;
pub mod work_units;

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use analyse::cost::Platform;
use analyse::cost::published::Published;
use clap::{Args, FromArgMatches, ValueHint};
use model::Rate;

use self::output::CostOutput;
use self::terms::{Utilisation, check, terms, utilisation};
use crate::exit::ExitOutcome;
use crate::flags::platform::PlatformFlag;
use crate::flags::share;
use crate::output::Output;

#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    kvmeter cost results.sqlite --platform server.toml --target 10M\n  \
    kvmeter cost results.sqlite --platform price=2400,idle=60 --utilisation 40% --pue 1.4\n  \
    kvmeter cost --platform s1,throughput=337k,watts=52,price=900 \\\n               \
    --platform s4,throughput=1.19M,watts=203,price=3000\n  \
    kvmeter cost --platform name=box,throughput=2M,watts=180 --energy-only --carbon 300\n  \
    kvmeter cost both.sqlite --energy-only --utilisation measured --average
  \
    kvmeter cost --published arm-vs-x86               the thesis's table 5.2 and its break-evens\n  \
    kvmeter cost --published mbwu                     the poster's tables\n  \
    kvmeter cost --platform mbwu-host,mbwus=6,watts=208 \\\n               \
    --platform mbwu-embedded,mbwus=0.5,watts=10.4\n\n\
    Everything that it prints is modelled. All other machines are compared with the first one.\n\
    The formulas, and the form of a platform file, are in docs/cost.md.")]
pub struct CostArgs {
    /// Results files, or parts of them: FILE?key=value; their runs give throughput and power
    #[arg(value_hint = ValueHint::FilePath, conflicts_with = "published")]
    pub files: Vec<String>,
    /// A machine: a built-in platform or a file, then your own values: throughput, watts, idle,
    /// price, rack_units, m2, mbwus, amps, name, workload; machine=ID applies it to the results of
    /// that machine alone
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
    /// Average load of a server as a share of its full load, or `measured`: how busy its CPUs were;
    /// below 100 % its idle power counts
    #[arg(long, value_name = "SHARE", allow_hyphen_values = true, default_value = "100%", value_parser = utilisation)]
    pub utilisation: Utilisation,
    /// Add a row for each machine: the mean of all its others, as in the thesis's table 5.2
    #[arg(long, conflicts_with = "published")]
    pub average: bool,
    /// Price of the other server in break-even prices, if it has none
    #[arg(long, value_name = "USD", allow_hyphen_values = true, default_value_t = 3000.0)]
    pub at_price: f64,
    /// Relative range of each assumption, up and down, for the sensitivity of the verdict
    #[arg(long, value_name = "SHARE", allow_hyphen_values = true, default_value = "20%", value_parser = share)]
    pub spread: f64,
    /// Leave out prices of servers: show only energy and break-even prices
    #[arg(long)]
    pub energy_only: bool,
    /// Volts, for MBWUs whose power is given in amperes
    #[arg(long, value_name = "VOLTS", allow_hyphen_values = true)]
    pub volts: Option<f64>,
    /// Write an HTML page with the tables and a figure of cost against price
    #[arg(long, value_name = "OUT", value_hint = ValueHint::FilePath)]
    pub html: Option<PathBuf>,
    /// Print Markdown
    #[arg(long, conflicts_with = "json")]
    pub markdown: bool,
    /// Print one JSON object
    #[arg(long)]
    pub json: bool,
}

/// `kvmeter cost FILE --platform NAME`, of the energy alone where the platform has no price.
pub fn of_results(file: &Path, platform: &str, show: &Output) -> anyhow::Result<ExitOutcome> {
    let is_priced = study::open_platform(platform)?.price_usd.is_some();
    let words: [&OsStr; 4] =
        ["cost".as_ref(), file.as_os_str(), "--platform".as_ref(), platform.as_ref()];
    let energy_only = (!is_priced).then(|| OsStr::new("--energy-only"));
    let command = CostArgs::augment_args(clap::Command::new("cost"));
    let matches = command.try_get_matches_from(words.into_iter().chain(energy_only))?;
    run(&CostArgs::from_arg_matches(&matches)?, show)
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
