//! What a machine costs: bought, or rented on each term.

use analyse::cost::{PlatformValue, RentalTerm, absence_note, source_text};
use analyse::fleet_plan::Tenure;

use super::PlanArgs;
use super::choice::ServingMachine;
use crate::exit::request;

/// The source of numbers of flags.
pub const COMMAND_LINE: &str = "the command line";

/// One price.
pub struct Offer {
    pub tenure: Tenure,
    /// `bought`, `rented on-demand`.
    pub how: String,
    pub from: String,
}

/// Every price of the machine: purchase, and rent on the term that was chosen, else on demand and
/// reserved.
pub fn offers(args: &PlanArgs, machine: &ServingMachine<'_>) -> anyhow::Result<Vec<Offer>> {
    let platform = machine.platform.as_ref();
    let mut all = Vec::new();
    let own = machine.flag.and_then(|flag| flag.price);
    let given = platform.and_then(|platform| platform.price_usd.as_ref());
    let bought = own.map(|price| (price, COMMAND_LINE.to_owned())).or_else(|| {
        let given = given?;
        Some((given.value, source_text(platform, "price_usd", given.from.as_deref())))
    });
    if let Some((price_usd, from)) = bought {
        all.push(Offer { tenure: Tenure::Bought { price_usd }, how: "bought".to_owned(), from });
    }
    if let Some(usd_per_h) = machine.flag.and_then(|flag| flag.usd_per_h) {
        let (tenure, from) = (Tenure::Rented { usd_per_h }, COMMAND_LINE.to_owned());
        all.push(Offer { tenure, how: "rented".to_owned(), from });
    }
    let rented = platform.map(|platform| platform.rented.as_slice()).unwrap_or_default();
    let wanted = |term: RentalTerm| match args.term {
        Some(chosen) => term == chosen,
        None => term != RentalTerm::Spot,
    };
    for offer in rented.iter().filter(|offer| wanted(offer.term)) {
        all.push(Offer {
            tenure: Tenure::Rented { usd_per_h: offer.usd_per_h },
            how: format!("rented {}", offer.term),
            from: source_text(platform, "rented", offer.from.as_deref()),
        });
    }
    if !all.is_empty() {
        return Ok(all);
    }
    let others: Vec<&str> = rented.iter().map(|offer| offer.term.name()).collect();
    if !others.is_empty() {
        return Err(request(format!(
            "{}: it has no price on this term; its terms are {}: choose one with --term",
            machine.name,
            others.join(", ")
        )));
    }
    Err(request(format!(
        "{}: its price is not known{}; add `price=USD` to its --platform, or `usd_per_h=USD` where it \
         is rented",
        machine.name,
        absence_note(platform, PlatformValue::PriceUsd)
    )))
}
