//! Platforms: price, power, height and area of machines, each value with its place in the source.
//!
//! Those of two publications are built in, with the tables that these compute from them
//! ([`published`]); others are files of the same form, which `docs/cost.md` describes. A value that
//! a source does not give is absent, with the reason.

mod built_in;
mod error;
mod given;
pub mod published;
mod read;
mod rented;

use std::collections::BTreeMap;

use jiff::civil::Date;
use model::suggest::hint;
use serde::{Deserialize, Deserializer, de};

use built_in::BUILT_IN;
pub use error::PlatformError;
pub use given::{GivenLevels, GivenValue};
use read::read;
pub use rented::{RentalOffer, RentalTerm};

/// A machine as its file describes it. Every value is absent where the source does not give it.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Platform {
    pub name: String,
    /// A description in one line.
    pub what: Option<String>,
    /// The publication, data sheet or offer that the values are from.
    pub source: Option<String>,
    /// Purchase price in US dollars.
    pub price_usd: Option<GivenValue>,
    /// Power of the idle machine in watts.
    pub idle_w: Option<GivenValue>,
    /// Power at full load in watts.
    pub full_load_w: Option<GivenValue>,
    /// Power at shares of full load, where it was measured: a graduated load.
    #[serde(default)]
    pub power_curve: Vec<LoadPoint>,
    /// Height in a rack, in units of 1.75 inches.
    pub rack_units: Option<GivenValue>,
    /// Floor that it takes, in square metres.
    pub footprint_m2: Option<GivenValue>,
    /// Storage devices that the price includes.
    pub storage_devices: Option<GivenValue>,
    /// Memory that may hold data, in GiB.
    pub memory_gib: Option<GivenValue>,
    /// Storage that may hold data, in GiB.
    pub storage_gib: Option<GivenValue>,
    /// The network's rate in each direction, in Gbit/s.
    pub network_gbit_s: Option<GivenValue>,
    /// CO2 equivalent of making the machine and of its end, in kg.
    pub embodied_kg: Option<GivenValue>,
    /// Prices of an hour where the machine is rented.
    #[serde(default)]
    pub rented: Vec<RentalOffer>,
    /// The day of its prices.
    #[serde(default, deserialize_with = "day")]
    pub priced: Option<Date>,
    /// Prices of electricity to compute with, in dollars for a kWh.
    pub electricity_usd_per_kwh: Option<GivenLevels>,
    /// Depreciation periods to compute with, in years.
    pub lifetime_years: Option<GivenLevels>,
    /// Why a value is absent, by its key.
    #[serde(default)]
    pub absent: BTreeMap<PlatformValue, String>,
}

/// Watts at a share of full load.
#[derive(Debug, Clone, Copy, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LoadPoint {
    /// 0 idle, 1 full load.
    pub load: f64,
    pub watts: f64,
}

/// A value that a platform may lack.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PlatformValue {
    PriceUsd,
    IdleW,
    FullLoadW,
    RackUnits,
    #[serde(rename = "footprint_m2")]
    FootprintM2,
    StorageDevices,
    MemoryGib,
    StorageGib,
    NetworkGbitS,
    EmbodiedKg,
    ElectricityUsdPerKwh,
    LifetimeYears,
}

impl Platform {
    /// A built-in platform by its name.
    ///
    /// Errors: there is none, with the nearest name.
    pub fn built_in(name: &str) -> Result<Platform, PlatformError> {
        match BUILT_IN.iter().find(|(known, _)| *known == name) {
            Some((_, text)) => Platform::parse(name, text),
            None => Err(PlatformError::Unknown {
                name: name.to_owned(),
                hint: hint(name, BUILT_IN.iter().map(|(known, _)| *known)),
            }),
        }
    }

    /// Reads a platform; `origin` is what messages call the text.
    ///
    /// Errors: no TOML, unknown keys, with their place; values that no machine has.
    pub fn parse(origin: &str, text: &str) -> Result<Platform, PlatformError> {
        let platform: Platform = read(origin, text)?;
        platform.check(origin)?;
        Ok(platform)
    }

    /// Why a value is not there.
    pub fn why_absent(&self, value: PlatformValue) -> &str {
        self.absent.get(&value).map_or("the platform file does not state it", String::as_str)
    }

    fn check(&self, origin: &str) -> Result<(), PlatformError> {
        let no = |key, value: f64, why| {
            Err(PlatformError::Impossible {
                origin: origin.to_owned(),
                key,
                value: value.to_string(),
                why,
            })
        };
        let above_zero = [
            ("full_load_w", &self.full_load_w),
            ("rack_units", &self.rack_units),
            ("footprint_m2", &self.footprint_m2),
            ("storage_devices", &self.storage_devices),
            ("memory_gib", &self.memory_gib),
            ("storage_gib", &self.storage_gib),
            ("network_gbit_s", &self.network_gbit_s),
        ];
        for (key, given) in above_zero {
            if let Some(given) = given
                && !(given.value.is_finite() && given.value > 0.0)
            {
                return no(key, given.value, "it must be more than zero");
            }
        }
        let not_below_zero = [
            ("price_usd", &self.price_usd),
            ("idle_w", &self.idle_w),
            ("embodied_kg", &self.embodied_kg),
        ];
        for (key, given) in not_below_zero {
            if let Some(given) = given
                && !(given.value.is_finite() && given.value >= 0.0)
            {
                return no(key, given.value, "it must not be below zero");
            }
        }
        if let Some(offer) = self.rented.iter().find(|offer| !offer.is_possible()) {
            return no("rented", offer.usd_per_h, "dollars an hour must be more than zero");
        }
        let levels = [
            ("electricity_usd_per_kwh", &self.electricity_usd_per_kwh, 0.0),
            ("lifetime_years", &self.lifetime_years, f64::MIN_POSITIVE),
        ];
        for (key, levels, least) in levels {
            let Some(levels) = levels else { continue };
            if levels.values.is_empty() {
                return no(key, f64::NAN, "the list is empty; leave the key out");
            }
            if let Some(value) = levels.values.iter().find(|v| !(v.is_finite() && **v >= least)) {
                return no(key, *value, "it must be a finite number above zero");
            }
        }
        if let (Some(idle), Some(full)) = (&self.idle_w, &self.full_load_w)
            && idle.value > full.value
        {
            return no("idle_w", idle.value, "it is more than full_load_w");
        }
        for point in &self.power_curve {
            if !(0.0..=1.0).contains(&point.load) {
                return no("power_curve", point.load, "a load is a share from 0 to 1");
            }
            if !(point.watts.is_finite() && point.watts >= 0.0) {
                return no("power_curve", point.watts, "watts must not be below zero");
            }
        }
        if self.power_curve.windows(2).any(|pair| pair[0].load >= pair[1].load) {
            return no("power_curve", self.power_curve[0].load, "its loads must rise");
        }
        Ok(())
    }
}

/// The day as text, `2026-05-31`.
fn day<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Date>, D::Error> {
    let text = String::deserialize(from)?;
    let not_a_day = |_| de::Error::custom(format!("`{text}` is not a day; write 2026-05-31"));
    Date::strptime("%Y-%m-%d", &text).map(Some).map_err(not_a_day)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_built_in_platform_reads_and_says_what_it_lacks() {
        for (name, _) in BUILT_IN {
            let platform = Platform::built_in(name).unwrap();
            assert_eq!(platform.name, *name);
            assert!(platform.source.is_some() && platform.what.is_some());
            let given = [
                (platform.price_usd.is_some(), PlatformValue::PriceUsd),
                (platform.idle_w.is_some(), PlatformValue::IdleW),
                (platform.full_load_w.is_some(), PlatformValue::FullLoadW),
                (platform.rack_units.is_some(), PlatformValue::RackUnits),
                (platform.footprint_m2.is_some(), PlatformValue::FootprintM2),
                (platform.lifetime_years.is_some(), PlatformValue::LifetimeYears),
                (platform.electricity_usd_per_kwh.is_some(), PlatformValue::ElectricityUsdPerKwh),
            ];
            for (is_given, want) in given {
                assert_ne!(
                    is_given,
                    platform.absent.contains_key(&want),
                    "{}: {want:?} is given, or absent for a reason",
                    platform.name
                );
            }
        }
    }

    #[test]
    fn values_are_what_the_sources_print() {
        let idle = |name| Platform::built_in(name).unwrap().idle_w.unwrap();
        assert_eq!(["s1", "s2", "s3", "s4"].map(|name| idle(name).value), [41., 133., 163., 104.]);
        assert_eq!(idle("s1").from.as_deref(), Some("table 5.1"));
        let price = |name| Platform::built_in(name).unwrap().price_usd.unwrap().value;
        assert_eq!((price("mbwu-host"), price("mbwu-embedded")), (4100.0, 120.0));
        let s1 = Platform::built_in("s1").unwrap();
        assert!(s1.why_absent(PlatformValue::PriceUsd).contains("thesis"));
        assert_eq!(s1.electricity_usd_per_kwh.unwrap().values, [0.07, 0.25]);
    }

    #[test]
    fn a_value_stands_alone_or_with_its_place() {
        let text = "name = \"x\"\nprice_usd = 900\nidle_w = { value = 4.5, from = \"meter\" }\n\
                    lifetime_years = 4\nelectricity_usd_per_kwh = [0.1, 0.3]\n\
                    power_curve = [{ load = 0.0, watts = 5 }, { load = 1.0, watts = 9.5 }]\n";
        let platform = Platform::parse("x.toml", text).unwrap();
        assert_eq!(platform.price_usd.unwrap(), GivenValue { value: 900.0, from: None });
        assert_eq!(platform.idle_w.unwrap().from.as_deref(), Some("meter"));
        assert_eq!(platform.lifetime_years.unwrap().values, [4.0]);
        assert_eq!(platform.electricity_usd_per_kwh.unwrap().values, [0.1, 0.3]);
        assert_eq!(platform.power_curve[1], LoadPoint { load: 1.0, watts: 9.5 });
    }

    #[test]
    fn mistakes_are_shown() {
        let cases = [
            ("pric_usd = 1", vec!["x.toml", "x.toml:2:1", "did you mean `price_usd`?"]),
            ("price_usd = \"dear\"", vec!["x.toml:2:1", "a number, or `{ value"]),
            ("price_usd = { vale = 1 }", vec!["vale"]),
            ("price_usd = -1", vec!["`price_usd` is -1", "below zero"]),
            ("price_usd = nan", vec!["`price_usd` is NaN"]),
            ("rack_units = 0", vec!["`rack_units` is 0", "more than zero"]),
            ("idle_w = 9\nfull_load_w = 8", vec!["`idle_w` is 9", "more than full_load_w"]),
            ("lifetime_years = 0", vec!["`lifetime_years` is 0"]),
            ("lifetime_years = []", vec!["`lifetime_years`", "leave the key out"]),
            ("power_curve = [{ load = 2, watts = 1 }]", vec!["share from 0 to 1"]),
            (
                "power_curve = [{ load = 1, watts = 1 }, { load = 0, watts = 1 }]",
                vec!["its loads must rise"],
            ),
            ("priced = \"2026-02-29\"", vec!["`2026-02-29` is not a day"]),
            ("priced = \"May 2026\"", vec!["`May 2026` is not a day; write 2026-05-31"]),
            ("[absent]\nprise_usd = \"x\"", vec!["did you mean `price_usd`?"]),
        ];
        for (line, words) in cases {
            let error = Platform::parse("x.toml", &format!("name = \"x\"\n{line}\n")).unwrap_err();
            for word in words {
                assert!(error.to_string().contains(word), "{word}: {error}");
            }
        }
        let error = Platform::built_in("mbwu-hots").unwrap_err().to_string();
        assert!(error.contains("did you mean `mbwu-host`?"), "{error}");
    }
}
