use thiserror::Error;

use crate::cost::CostError;

/// Why there is no plan. Every one is for the user to mend.
#[derive(Debug, Clone, PartialEq, Error)]
pub enum PurchaseError {
    #[error("there is no machine to choose from")]
    NoChoice,
    /// `key` is the key of the platform, `size` an example.
    #[error(
        "{name}: how much {what} it has for data is not known; add `{key}={size}` to its \
         --platform, or leave out --data"
    )]
    NoRoom { name: String, what: &'static str, key: &'static str, size: &'static str },
    #[error(
        "{name}: one machine draws {watts:.0} W, more than the {rack_w:.0} W of a rack; raise \
         --rack-power, or leave that machine out"
    )]
    AboveRackPower { name: String, watts: f64, rack_w: f64 },
    #[error("{name}: {error}")]
    Cost { name: String, error: CostError },
    #[error(transparent)]
    Terms(#[from] CostError),
}
