//! Flags of `kvmeter cost`: machines with their numbers, and assumptions.

use std::path::PathBuf;
use std::str::FromStr;

use clap::{Args, ValueHint};
use model::suggest::hint;
use model::{Count, Rate};

use crate::flags::share;

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
pub struct Cost {
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

/// The value of `--platform`: `NAME|FILE` and numbers.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct PlatformFlag {
    /// As it was written.
    pub text: String,
    /// The name or path of a platform; None if only numbers are given.
    pub base: Option<String>,
    pub name: Option<String>,
    pub workload: Option<String>,
    /// The machine of a results file that it describes.
    pub machine: Option<String>,
    pub throughput: Option<Rate>,
    pub watts: Option<f64>,
    pub idle: Option<f64>,
    pub price: Option<f64>,
    pub rack_units: Option<f64>,
    pub m2: Option<f64>,
    pub mbwus: Option<f64>,
    pub amps: Option<f64>,
}

const KEYS: [&str; 11] = [
    "name",
    "workload",
    "machine",
    "throughput",
    "watts",
    "idle",
    "price",
    "rack_units",
    "m2",
    "mbwus",
    "amps",
];

impl FromStr for PlatformFlag {
    type Err = String;

    fn from_str(text: &str) -> Result<PlatformFlag, String> {
        let mut flag = PlatformFlag { text: text.to_owned(), ..PlatformFlag::default() };
        for (at, part) in text.split(',').enumerate() {
            let Some((key, value)) = part.split_once('=') else {
                if at > 0 || part.is_empty() {
                    return Err(format!(
                        "`{part}` is not `key=value`; keys are {}",
                        KEYS.join(", ")
                    ));
                }
                flag.base = Some(part.to_owned());
                continue;
            };
            let value = value.trim();
            match key.trim() {
                "name" => flag.name = Some(value.to_owned()),
                "workload" => flag.workload = Some(value.to_owned()),
                "machine" => flag.machine = Some(value.to_owned()),
                "throughput" => {
                    let rate: Rate = value.parse().map_err(|e| format!("throughput: {e}"))?;
                    above_zero("throughput", rate.0)?;
                    flag.throughput = Some(rate);
                }
                "watts" => flag.watts = Some(above_zero("watts", number("watts", value)?)?),
                "idle" => flag.idle = Some(not_below_zero("idle", number("idle", value)?)?),
                "price" => flag.price = Some(not_below_zero("price", price(value)?)?),
                "rack_units" => {
                    flag.rack_units = Some(above_zero("rack_units", number("rack_units", value)?)?);
                }
                "m2" => flag.m2 = Some(above_zero("m2", number("m2", value)?)?),
                "mbwus" => flag.mbwus = Some(above_zero("mbwus", number("mbwus", value)?)?),
                "amps" => flag.amps = Some(above_zero("amps", number("amps", value)?)?),
                wrong => return Err(format!("`{wrong}` is no key; {}", hint(wrong, KEYS))),
            }
        }
        Ok(flag)
    }
}

/// `3000`, `3k`, `$3,000` without the comma: a number of dollars.
fn price(text: &str) -> Result<f64, String> {
    let digits = text.strip_prefix('$').unwrap_or(text);
    match digits.parse::<Count>() {
        Ok(Count(whole)) => Ok(whole as f64),
        Err(_) => number("price", digits),
    }
}

fn number(key: &str, text: &str) -> Result<f64, String> {
    let value = text.parse::<f64>().ok().filter(|value| value.is_finite());
    value.ok_or_else(|| format!("{key}: `{text}` is not a number"))
}

pub fn above_zero(key: &str, value: f64) -> Result<f64, String> {
    let fits = value.is_finite() && value > 0.0;
    fits.then_some(value).ok_or_else(|| format!("{key}: {value} is not more than zero"))
}

pub fn not_below_zero(key: &str, value: f64) -> Result<f64, String> {
    let fits = value.is_finite() && value >= 0.0;
    fits.then_some(value).ok_or_else(|| format!("{key}: {value} is not a number from zero up"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parses_a_machine() {
        let flag: PlatformFlag = "s1,throughput=337k,watts=52.5,price=$3k".parse().unwrap();
        assert_eq!(flag.base.as_deref(), Some("s1"));
        assert_eq!(flag.throughput, Some(Rate(337e3)));
        assert_eq!((flag.watts, flag.price, flag.idle), (Some(52.5), Some(3000.0), None));
        let flag: PlatformFlag = "name=box,price=899.95".parse().unwrap();
        assert_eq!((flag.base, flag.name.as_deref()), (None, Some("box")));
        assert_eq!(flag.price, Some(899.95));
    }

    #[test]
    fn parse_errors_name_the_mistake() {
        for (text, word) in [
            ("s1,wats=5", "did you mean `watts`?"),
            ("s1,s2", "`s2` is not `key=value`"),
            ("", "is not `key=value`"),
            ("s1,watts=much", "watts: `much`"),
            ("s1,watts=0", "watts: 0 is not more than zero"),
            ("s1,price=-5", "price: -5"),
            ("s1,throughput=0", "throughput: 0"),
            ("s1,m2=nan", "m2: `nan`"),
        ] {
            let error = text.parse::<PlatformFlag>().unwrap_err();
            assert!(error.contains(word), "{text}: {error}");
        }
    }
}
