//! What a machine costs: bought, or rented on each term.

use analyse::cost::{PlatformValue, RentalTerm, absence_note, source_text};
use analyse::fleet_plan::PricingModel;

use super::PlanArgs;
use super::choice::ServingMachine;
use super::measured::BYTES_PER_GIB;
use super::price_table::{InstancePrice, PriceTable};
use crate::exit::request;

/// The source of numbers of flags.
pub const COMMAND_LINE: &str = "the command line";

/// One price.
pub struct Offer {
    pub pricing: PricingModel,
    /// `bought`, `rented on-demand`.
    pub how: String,
    pub from: String,
}

/// Every price of the machine: purchase, and rent on the term that was chosen, else on demand and
/// reserved. With the memory of the instance type, in bytes, where a table has it.
pub fn offers(
    args: &PlanArgs,
    prices: Option<&PriceTable>,
    machine: &ServingMachine<'_>,
) -> anyhow::Result<(Vec<Offer>, Option<f64>)> {
    let platform = machine.platform.as_ref();
    let mut all = Vec::new();
    let own = machine.flag.and_then(|flag| flag.price);
    let given = platform.and_then(|platform| platform.price_usd.as_ref());
    let bought = own.map(|price| (price, COMMAND_LINE.to_owned())).or_else(|| {
        let given = given?;
        Some((given.value, source_text(platform, "price_usd", given.from.as_deref())))
    });
    if let Some((price_usd, from)) = bought {
        all.push(Offer {
            pricing: PricingModel::Bought { price_usd },
            how: "bought".to_owned(),
            from,
        });
    }
    if let Some(usd_per_h) = machine.flag.and_then(|flag| flag.usd_per_h) {
        let (pricing, from) = (PricingModel::Rented { usd_per_h }, COMMAND_LINE.to_owned());
        all.push(Offer { pricing, how: "rented".to_owned(), from });
    }
    let rented = platform.map(|platform| platform.rented.as_slice()).unwrap_or_default();
    let wanted = |term: RentalTerm| match args.term {
        Some(chosen) => term == chosen,
        None => term != RentalTerm::Spot,
    };
    for offer in rented.iter().filter(|offer| wanted(offer.term)) {
        all.push(Offer {
            pricing: PricingModel::Rented { usd_per_h: offer.usd_per_h },
            how: format!("rented {}", offer.term),
            from: source_text(platform, "rented", offer.from.as_deref()),
        });
    }
    let names =
        [machine.flag.and_then(|flag| flag.name.as_deref()), platform.map(|it| it.name.as_str())];
    let names: Vec<&str> = names.into_iter().flatten().collect();
    let listed = prices.map(|table| table.of(&names, args.region.as_deref())).transpose()?;
    let listed = listed.unwrap_or_default();
    for row in listed.iter().filter(|row| wanted(row.term)) {
        all.push(Offer {
            pricing: PricingModel::Rented { usd_per_h: row.usd_per_h },
            how: format!("rented {}", row.term),
            from: source(prices, row),
        });
    }
    let memory = listed.iter().find_map(|row| row.memory_gib).map(|gib| gib * BYTES_PER_GIB);
    if !all.is_empty() {
        return Ok((all, memory));
    }
    let others = rented.iter().map(|offer| offer.term).chain(listed.iter().map(|row| row.term));
    let others: Vec<&str> = others.map(RentalTerm::name).collect();
    if !others.is_empty() {
        return Err(request(format!(
            "{}: it has no price on this term; its terms are {}: choose one with --term",
            machine.name,
            others.join(", ")
        )));
    }
    if let Some(table) = prices {
        let (name, file) = (&machine.name, &table.file);
        let example = &table.rows[0].instance;
        return Err(request(format!(
            "{name}: --prices {file} has no machine of that name; name the instance type in its \
             --platform, as in `name={example}`"
        )));
    }
    Err(request(format!(
        "{}: its price is not known{}; add `price=USD` to its --platform, or `usd_per_h=USD` where it \
         is rented",
        machine.name,
        absence_note(platform, PlatformValue::PriceUsd)
    )))
}

/// `list.csv, line 3 (16 vCPUs)`.
fn source(prices: Option<&PriceTable>, row: &InstancePrice) -> String {
    let file = prices.map_or("", |table| table.file.as_str());
    let cpus =
        row.vcpus.map_or(String::new(), |cpus| format!(" ({} vCPUs)", report::format::plain(cpus)));
    format!("{file}, {}{cpus}", row.place)
}
