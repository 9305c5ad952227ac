//! The value of `--platform`.

use std::str::FromStr;

use model::suggest::hint;
use model::{Bytes, Count, Rate};

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
    /// Dollars an hour, of a rented machine.
    pub usd_per_h: Option<f64>,
    /// Of the machine, for data.
    pub memory: Option<Bytes>,
    pub storage: Option<Bytes>,
    /// Gbit/s in each direction.
    pub network: Option<f64>,
    pub embodied_kg: Option<f64>,
}

const KEYS: [&str; 16] = [
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
    "usd_per_h",
    "memory",
    "storage",
    "network",
    "embodied_kg",
];

impl PlatformFlag {
    /// A built-in platform, or a file, as it is.
    pub fn named(platform: &str) -> PlatformFlag {
        let (text, base) = (platform.to_owned(), Some(platform.to_owned()));
        PlatformFlag { text, base, ..PlatformFlag::default() }
    }
}

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
                "usd_per_h" => {
                    flag.usd_per_h = Some(above_zero("usd_per_h", number("usd_per_h", value)?)?);
                }
                "memory" => flag.memory = Some(size("memory", value)?),
                "storage" => flag.storage = Some(size("storage", value)?),
                "network" => flag.network = Some(above_zero("network", number("network", value)?)?),
                "embodied_kg" => {
                    let kg = number("embodied_kg", value)?;
                    flag.embodied_kg = Some(not_below_zero("embodied_kg", kg)?);
                }
                wrong => return Err(format!("`{wrong}` is not a key; {}", hint(wrong, KEYS))),
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

fn size(key: &str, text: &str) -> Result<Bytes, String> {
    let bytes: Bytes = text.parse().map_err(|error| format!("{key}: {error}"))?;
    above_zero(key, bytes.0 as f64).map(|_| bytes)
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
    fits.then_some(value).ok_or_else(|| format!("{key}: {value} is not a number of 0 or more"))
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
