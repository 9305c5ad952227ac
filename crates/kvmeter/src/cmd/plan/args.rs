//! Arguments of `plan`.

use std::path::PathBuf;

use analyse::cost::RentalTerm;
use analyse::slo::Objective;
use clap::{Args, ValueHint};
use model::{Bytes, Rate};

use crate::flags::platform::PlatformFlag;

/// More copies or spare machines are taken for a mistake.
const MOST_REPLICAS: u64 = 1_000;
const MOST_SPARES: u64 = 1_000_000;

#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    kvmeter plan results.sqlite --rate 5M --slo 'p99<1ms' --data 2TiB --replicas 2 \\\n               \
    --platform server.toml --peak-over-mean 3\n  \
    kvmeter plan results.sqlite --rate 5M --platform price=2400,watts=180,memory=256GiB\n  \
    kvmeter plan results.sqlite --rate 5M --platform cloud.toml --term reserved --html plan.html\n  \
    kvmeter plan results.sqlite --rate 5M --platform name=m7i.4xlarge --prices list.csv --region eu\n  \
    kvmeter plan --rate 100M --spares 0 --platform s1,throughput=337k,watts=52,price=850 \\\n               \
    --platform s4,throughput=1.19M,watts=203,price=3000\n\n\
    Capacity is the highest rate that held the objective: of a `kvmeter search`, or of open loops\n\
    at several rates. Everything that it prints is modelled. The formulas are in docs/plan.md.")]
pub struct PlanArgs {
    /// Results files, or parts of them: FILE?key=value; their open loops give capacities
    #[arg(value_hint = ValueHint::FilePath)]
    pub files: Vec<String>,
    /// Operations per second of all clients, on average
    #[arg(long, value_name = "RATE", allow_hyphen_values = true)]
    pub rate: Rate,
    /// Latency objective: 'p99<1ms', 'read.p99.9<500us & mean<200us' [default: that of the results]
    #[arg(long, value_name = "OBJECTIVE")]
    pub slo: Option<Objective>,
    /// Keys and values, each counted once; without it room for data limits nothing
    #[arg(long, value_name = "SIZE", allow_hyphen_values = true)]
    pub data: Option<Bytes>,
    /// Copies of each record
    #[arg(long, value_name = "N", allow_hyphen_values = true, default_value_t = 1,
        value_parser = clap::value_parser!(u64).range(1..=MOST_REPLICAS))]
    pub replicas: u64,
    /// The highest rate over the average one
    #[arg(long, value_name = "FACTOR", allow_hyphen_values = true, default_value_t = 1.0)]
    pub peak_over_mean: f64,
    /// Machines that may fail at the peak: 1 is N+1
    #[arg(long, value_name = "N", allow_hyphen_values = true, default_value_t = 1,
        value_parser = clap::value_parser!(u64).range(0..=MOST_SPARES))]
    pub spares: u64,
    /// A machine: a built-in platform or a file, then your own values: price or usd_per_h, watts,
    /// idle, memory, storage, network (Gbit/s), rack_units, embodied_kg, throughput, name; machine=ID
    /// applies it to the results of that machine alone
    #[arg(long, value_name = "NAME|FILE[,KEY=VALUE...]")]
    pub platform: Vec<PlatformFlag>,
    /// Term of rented machines: on-demand, reserved or spot [default: on-demand and reserved]
    #[arg(long, value_name = "TERM", value_parser = term)]
    pub term: Option<RentalTerm>,
    /// A table of instance types and dollars an hour, CSV or JSON: the prices of machines of that name
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub prices: Option<PathBuf>,
    /// The region of --prices
    #[arg(long, value_name = "NAME", requires = "prices")]
    pub region: Option<String>,
    /// Lifetime in years [default: the platforms', else 3]
    #[arg(long, value_name = "YEARS", allow_hyphen_values = true)]
    pub years: Option<f64>,
    /// Price of electricity, $/kWh [default: the platforms' highest, else 0.25]
    #[arg(long, value_name = "USD", allow_hyphen_values = true)]
    pub price_per_kwh: Option<f64>,
    /// Power usage effectiveness: watts of the building for each watt of a machine
    #[arg(long, value_name = "FACTOR", allow_hyphen_values = true, default_value_t = 1.0)]
    pub pue: f64,
    /// Carbon intensity of the electricity, grams of CO2 equivalent for a kWh
    #[arg(long, value_name = "GRAMS", allow_hyphen_values = true)]
    pub carbon: Option<f64>,
    /// Rent of a rack unit, $ a month
    #[arg(long, value_name = "USD", allow_hyphen_values = true)]
    pub rack_rent: Option<f64>,
    /// Watts that a rack may draw
    #[arg(long, value_name = "WATTS", allow_hyphen_values = true)]
    pub rack_power: Option<f64>,
    /// Write an HTML page: the sentence, the fleet, cost against latency and power, assumptions
    #[arg(long, value_name = "OUT", value_hint = ValueHint::FilePath)]
    pub html: Option<PathBuf>,
    /// Print Markdown
    #[arg(long, conflicts_with = "json")]
    pub markdown: bool,
    /// Print one JSON object
    #[arg(long)]
    pub json: bool,
}

fn term(text: &str) -> Result<RentalTerm, String> {
    let names = RentalTerm::ALL.map(RentalTerm::name);
    RentalTerm::from_name(text).ok_or_else(|| model::suggest::hint(text, names))
}
