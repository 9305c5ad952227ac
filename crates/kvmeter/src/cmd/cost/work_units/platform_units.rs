//! MBWUs and costs of a platform of the command line.

use analyse::cost::{GivenValue, Platform, PlatformUnits, PlatformValue};

use crate::exit::request;
use crate::flags::platform::PlatformFlag;

/// `volts` converts a current; `without_money` leaves prices out.
pub(super) fn unit(
    volts: Option<f64>,
    without_money: bool,
    flag: &PlatformFlag,
) -> anyhow::Result<PlatformUnits> {
    let platform = flag.base.as_deref().map(study::open_platform).transpose()?;
    let named = platform.as_ref().map(|platform| platform.name.clone());
    let name = flag.name.clone().or(named).unwrap_or_else(|| "platform".to_owned());
    let mbwus = flag.mbwus.ok_or_else(|| {
        request(format!("--platform {}: `mbwus=` is missing, and another one has it", flag.text))
    })?;
    let from = |of: fn(&Platform) -> &Option<GivenValue>| {
        platform.as_ref().and_then(|platform| of(platform).as_ref()).map(|given| given.value)
    };
    let price_usd = flag.price.or_else(|| from(|p| &p.price_usd));
    if price_usd.is_none() && !without_money {
        let why = platform.as_ref().map(|p| p.why_absent(PlatformValue::PriceUsd));
        return Err(request(format!(
            "{name}: its price is not known{}; add `price=USD` to its --platform, or leave out \
             money with --energy-only",
            why.map_or(String::new(), |why| format!(" ({why})"))
        )));
    }
    let watts = flag.watts.or_else(|| Some(volts? * flag.amps?));
    Ok(PlatformUnits {
        name,
        mbwus,
        price_usd: price_usd.filter(|_| !without_money),
        watts: watts.or_else(|| from(|p| &p.full_load_w)),
        amps: flag.amps,
        m2: flag.m2.or_else(|| from(|p| &p.footprint_m2)),
    })
}
