//! What a billion operations of a run cost on its platform.

use model::signal::{JOULES_PER_OP, USD_PER_GOP};
use model::{Origin, Reading, ReadingValue, Unavailable};

use super::fleet::HOURS_PER_YEAR;
use super::platform::{GivenLevels, Platform};

/// Written off over so many years where the platform does not say.
const USUAL_YEARS: f64 = 3.0;
/// Dollars for a kWh where the platform does not say: the lower price of the first document.
const USUAL_USD_PER_KWH: f64 = 0.07;
const SECONDS_PER_YEAR: f64 = HOURS_PER_YEAR * 3600.0;
const JOULES_PER_KWH: f64 = 3.6e6;
const BILLION: f64 = 1e9;

/// `usd_per_gop`: price over the operations of its lifetime at this throughput, and the energy of
/// the operations; of a platform with several lifetimes or prices of electricity by the first. It
/// is modelled: prices are not measured. The energy's scope stands for both.
///
/// Unavailable: the platform is, or has no price; no energy was read; no operations.
pub fn usd_per_gop(
    platform: Result<&Platform, &Unavailable>,
    readings: &[Reading],
    ops_s: f64,
) -> Reading {
    let energy = readings.iter().find(|reading| reading.signal == JOULES_PER_OP.name);
    let unavailable = |reason: &str, remedy: Option<&str>| Reading {
        answer: ReadingValue::Unavailable {
            reason: reason.to_owned(),
            remedy: remedy.map(str::to_owned),
        },
        ..USD_PER_GOP.value(0.0, energy.map_or(0.0, |energy| energy.window_s))
    };
    let platform = match platform {
        Ok(platform) => platform,
        Err(why) => return unavailable(&why.reason, Some(&why.remedy)),
    };
    let Some(price) = &platform.price_usd else {
        return unavailable(&format!("the platform {} has no price", platform.name), None);
    };
    let joules = match energy.map(|energy| &energy.answer) {
        Some(ReadingValue::Value(joules)) => *joules,
        Some(ReadingValue::Unavailable { reason, remedy }) => {
            return unavailable(reason, remedy.as_deref());
        }
        None => return unavailable("no energy was read in this run", None),
    };
    if ops_s <= 0.0 {
        return unavailable("there were no operations", None);
    }
    let first = |of: &Option<GivenLevels>, usual: f64| {
        of.as_ref().and_then(|levels| levels.values.first().copied()).unwrap_or(usual)
    };
    let years = first(&platform.lifetime_years, USUAL_YEARS);
    let usd_per_kwh = first(&platform.electricity_usd_per_kwh, USUAL_USD_PER_KWH);
    let equipment = price.value / (years * SECONDS_PER_YEAR * ops_s);
    let usd = (equipment + joules / JOULES_PER_KWH * usd_per_kwh) * BILLION;
    let source = format!(
        "{} $ over {years} years and {usd_per_kwh} $/kWh (platform {}); {}",
        price.value,
        platform.name,
        energy.map_or("", |energy| &energy.source)
    );
    let window_s = energy.map_or(0.0, |energy| energy.window_s);
    let scope = energy.map_or(USD_PER_GOP.scope, |energy| energy.scope);
    Reading { source, scope, origin: Origin::Modelled, ..USD_PER_GOP.value(usd, window_s) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn energy(joules: f64) -> Reading {
        JOULES_PER_OP.value(joules, 10.0)
    }

    #[test]
    fn price_and_energy_of_a_billion_operations_by_hand() {
        // 2,400 $ over 2 years at 1,000 operations a second are 63,072,000,000 of them: 38.05 $ for
        // a billion. 0.1 J each are 27.78 kWh, at 0.2 $ 5.556 $.
        let text = "name = \"box\"\nprice_usd = 2400\nlifetime_years = [2, 5]\n\
                    electricity_usd_per_kwh = 0.2\n";
        let platform = Platform::parse("box", text).unwrap();
        let reading = usd_per_gop(Ok(&platform), &[energy(0.1)], 1e3);
        let usd = reading.value().unwrap();
        assert!((usd - (2400.0 / 63.072 + 0.1e9 / 3.6e6 * 0.2)).abs() < 1e-9, "{usd}");
        assert_eq!(reading.origin, Origin::Modelled);
        assert!(reading.source.contains("2400 $ over 2 years and 0.2 $/kWh (platform box)"));
    }

    #[test]
    fn what_is_missing_is_named() {
        let reason = |platform: Result<&Platform, &Unavailable>, readings: &[Reading], ops_s| {
            match usd_per_gop(platform, readings, ops_s).answer {
                ReadingValue::Unavailable { reason, .. } => reason,
                ReadingValue::Value(value) => panic!("{value}"),
            }
        };
        let platform = Platform::parse("box", "name = \"box\"\nprice_usd = 1\n").unwrap();
        let free = Platform::parse("free", "name = \"free\"\n").unwrap();
        let unnamed = Unavailable::new("no platform is named", "name one");
        assert_eq!(reason(Err(&unnamed), &[energy(1.0)], 1.0), "no platform is named");
        assert_eq!(reason(Ok(&free), &[energy(1.0)], 1.0), "the platform free has no price");
        assert_eq!(reason(Ok(&platform), &[], 1.0), "no energy was read in this run");
        assert_eq!(reason(Ok(&platform), &[energy(1.0)], 0.0), "there were no operations");
    }
}
