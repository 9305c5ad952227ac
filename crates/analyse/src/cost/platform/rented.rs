//! Prices of machines that are rented by the hour.

use std::fmt;

use serde::Deserialize;

/// A price of an hour, and its term.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RentalOffer {
    pub term: RentalTerm,
    /// US dollars an hour; of a reservation with all that is paid before, spread over its hours.
    pub usd_per_h: f64,
    /// Where in the platform's source it stands; None where the file does not say.
    pub from: Option<String>,
}

impl RentalOffer {
    pub(super) fn is_possible(&self) -> bool {
        self.usd_per_h.is_finite() && self.usd_per_h > 0.0
    }
}

/// What is promised for an hour's price.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RentalTerm {
    /// By the hour, without a promise.
    OnDemand,
    /// For a year or longer, used or not.
    Reserved,
    /// Spare machines, which may be taken back at any time.
    Spot,
}

impl RentalTerm {
    pub const ALL: [RentalTerm; 3] = [RentalTerm::OnDemand, RentalTerm::Reserved, RentalTerm::Spot];

    /// The name in files and flags.
    pub const fn name(self) -> &'static str {
        match self {
            RentalTerm::OnDemand => "on-demand",
            RentalTerm::Reserved => "reserved",
            RentalTerm::Spot => "spot",
        }
    }

    /// Reads a name as [`RentalTerm::name`] has it; spaces, `_` and case do not matter.
    pub fn from_name(text: &str) -> Option<RentalTerm> {
        let name = text.trim().to_ascii_lowercase().replace([' ', '_'], "-");
        let name = if name == "ondemand" { "on-demand" } else { name.as_str() };
        RentalTerm::ALL.into_iter().find(|term| term.name() == name)
    }
}

impl fmt::Display for RentalTerm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn terms_are_read_as_clouds_write_them() {
        for term in RentalTerm::ALL {
            assert_eq!(RentalTerm::from_name(term.name()), Some(term));
        }
        for text in ["OnDemand", "on demand", "ON_DEMAND"] {
            assert_eq!(RentalTerm::from_name(text), Some(RentalTerm::OnDemand), "{text}");
        }
        assert_eq!(RentalTerm::from_name("monthly"), None);
    }
}
