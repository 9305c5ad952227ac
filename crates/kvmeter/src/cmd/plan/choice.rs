//! From numbers with sources to choices.

use analyse::cost::{GivenNumbers, LoadPower, Platform, RequiredNumbers, SourcedCandidate};
use analyse::fleet_plan::{DataRoom, HeldPoint, MachineChoice, MachinePower, NetworkRoom};
use analyse::search::RateTrial;
use report::fleet_plan::ChoiceSource;

use super::PlanArgs;
use super::price_table::PriceTable;
use super::prices::{Offer, offers};
use crate::exit::request;
use crate::flags::platform::PlatformFlag;

/// A choice with the sources of its numbers.
pub struct ChosenMachine {
    pub choice: MachineChoice,
    pub source: ChoiceSource,
    pub platform: Option<Platform>,
    /// Data that it held when its capacity was measured.
    pub measured_bytes: Option<f64>,
    pub notes: Vec<String>,
}

/// One machine with a store, before its price.
pub struct ServingMachine<'a> {
    pub name: String,
    pub flag: Option<&'a PlatformFlag>,
    pub platform: Option<Platform>,
    pub capacity_ops_s: f64,
    pub capacity_from: String,
    pub repeats_ops_s: Vec<f64>,
    pub trials: Vec<Vec<RateTrial>>,
    pub held: Vec<HeldPoint>,
    pub write_share: f64,
    /// Why the power is not known, where it is not.
    pub power: Result<LoadPower, String>,
    pub data_room: DataRoom,
    pub network: Option<NetworkRoom>,
    /// Data that it held when its capacity was measured.
    pub measured_bytes: Option<f64>,
    pub notes: Vec<String>,
}

/// A choice for each price of the machine.
pub fn choices(
    args: &PlanArgs,
    prices: Option<&PriceTable>,
    mut machine: ServingMachine<'_>,
) -> anyhow::Result<Vec<ChosenMachine>> {
    let (offers, memory_bytes) = offers(args, prices, &machine)?;
    if machine.data_room.in_memory {
        machine.data_room.bytes = machine.data_room.bytes.or(memory_bytes);
    }
    let several = offers.len() > 1;
    offers.into_iter().map(|offer| choice(args, &machine, offer, several)).collect()
}

fn choice(
    args: &PlanArgs,
    machine: &ServingMachine<'_>,
    offer: Offer,
    several: bool,
) -> anyhow::Result<ChosenMachine> {
    let platform = machine.platform.as_ref();
    let name = match several || !offer.pricing.is_bought() {
        true => format!("{}, {}", machine.name, offer.how),
        false => machine.name.clone(),
    };
    let sourced = match (&machine.power, offer.pricing.is_bought()) {
        (Ok(power), _) => Some(sourced(args, machine, power.clone())?),
        (Err(why), true) => return Err(request(why.clone())),
        (Err(_), false) => None,
    };
    let candidate = sourced.as_ref().map(|one| &one.candidate);
    let mut notes = machine.notes.clone();
    if let Some(one) = sourced.as_ref().filter(|one| one.candidate.curve.is_none()) {
        notes.push(format!(
            "{}: its idle power is not known, so it is taken to draw {} W at any load.",
            machine.name,
            report::format::significant(one.candidate.active_w, 3)
        ));
    }
    let embodied = platform.and_then(|platform| platform.embodied_kg.as_ref());
    let choice = MachineChoice {
        name,
        capacity_ops_s: machine.capacity_ops_s,
        repeats_ops_s: machine.repeats_ops_s.clone(),
        trials: machine.trials.clone(),
        held: machine.held.clone(),
        write_share: machine.write_share,
        pricing: offer.pricing,
        power: candidate.map(|one| MachinePower {
            active_w: one.active_w,
            repeats_w: machine.power.as_ref().map_or(Vec::new(), |power| power.repeats_w.clone()),
            curve: one.curve.clone(),
        }),
        rack_units: candidate.and_then(|one| one.rack_units),
        data_room: machine.data_room,
        network: machine.network,
        embodied_kg: machine
            .flag
            .and_then(|flag| flag.embodied_kg)
            .or_else(|| embodied.map(|given| given.value)),
    };
    let source = ChoiceSource {
        capacity: machine.capacity_from.clone(),
        price: offer.from,
        power: match &machine.power {
            Ok(power) => power.from.clone(),
            Err(_) => "not known".to_owned(),
        },
        platform: platform.and_then(|platform| platform.source.clone()),
    };
    let (platform, measured_bytes) = (machine.platform.clone(), machine.measured_bytes);
    Ok(ChosenMachine { choice, source, platform, measured_bytes, notes })
}

/// With the curve of its power, by the rules of `kvmeter cost`.
fn sourced(
    args: &PlanArgs,
    machine: &ServingMachine<'_>,
    power: LoadPower,
) -> anyhow::Result<SourcedCandidate> {
    let given = machine.flag.map_or_else(GivenNumbers::default, |flag| GivenNumbers {
        idle_w: flag.idle,
        price_usd: flag.price,
        rack_units: flag.rack_units,
        footprint_m2: flag.m2,
    });
    let required = RequiredNumbers {
        price: false,
        idle_power: false,
        rack_units: args.rack_rent.is_some_and(|rent| rent > 0.0),
    };
    let name = (machine.name.clone(), String::new());
    let capacity = (machine.capacity_ops_s, machine.capacity_from.clone());
    SourcedCandidate::new(name, capacity, power, machine.platform.clone(), &given, required)
        .map_err(|error| request(error.to_string()))
}
