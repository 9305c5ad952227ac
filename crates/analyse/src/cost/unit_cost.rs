//! What an MBWU costs on platforms, and what one saves over another.

use super::error::CostError;
use super::fleet::HOURS_PER_YEAR;
use super::work_unit::{
    equivalent, kwh_per_mbwu, m2_per_mbwu, saving, usd_per_mbwu, watts_per_mbwu,
};

/// A platform and the MBWUs that it generates.
#[derive(Debug, Clone, PartialEq)]
pub struct PlatformUnits {
    pub name: String,
    pub mbwus: f64,
    pub price_usd: Option<f64>,
    pub watts: Option<f64>,
    pub amps: Option<f64>,
    pub m2: Option<f64>,
}

/// A cost of an MBWU.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UnitCost {
    Usd,
    Amperes,
    Watts,
    /// In a year.
    Kwh,
    Area,
}

impl UnitCost {
    pub const ALL: [UnitCost; 5] =
        [UnitCost::Usd, UnitCost::Amperes, UnitCost::Watts, UnitCost::Kwh, UnitCost::Area];

    /// Its unit, for people.
    pub const fn unit(self) -> &'static str {
        match self {
            UnitCost::Usd => "$/MBWU",
            UnitCost::Amperes => "A/MBWU",
            UnitCost::Watts => "W/MBWU",
            UnitCost::Kwh => "kWh/MBWU a year",
            UnitCost::Area => "m2/MBWU",
        }
    }

    /// Its name in JSON.
    pub const fn key(self) -> &'static str {
        match self {
            UnitCost::Usd => "usd_per_mbwu",
            UnitCost::Amperes => "a_per_mbwu",
            UnitCost::Watts => "w_per_mbwu",
            UnitCost::Kwh => "kwh_per_mbwu_year",
            UnitCost::Area => "m2_per_mbwu",
        }
    }

    /// On a platform, where it is known.
    fn on(self, platform: &PlatformUnits) -> Result<Option<f64>, CostError> {
        let PlatformUnits { mbwus, price_usd, watts, amps, m2, .. } = *platform;
        let per: Option<Result<f64, CostError>> = match self {
            UnitCost::Usd => price_usd.map(|price| usd_per_mbwu(price, mbwus)),
            UnitCost::Amperes => amps.map(|amps| watts_per_mbwu(amps, mbwus)),
            UnitCost::Watts => watts.map(|watts| watts_per_mbwu(watts, mbwus)),
            UnitCost::Kwh => watts.map(|watts| kwh_per_mbwu(watts, mbwus, HOURS_PER_YEAR)),
            UnitCost::Area => m2.map(|m2| m2_per_mbwu(m2, mbwus)),
        };
        per.transpose()
    }
}

impl PlatformUnits {
    /// The costs that are known.
    ///
    /// # Errors
    /// A number cannot be.
    pub fn costs(&self) -> Result<Vec<(UnitCost, f64)>, CostError> {
        let known = |cost: UnitCost| {
            cost.on(self).map(|value| value.map(|value| (cost, value))).transpose()
        };
        UnitCost::ALL.into_iter().filter_map(known).collect()
    }
}

/// An MBWU on two platforms, the first the one that the second would replace.
#[derive(Debug, Clone, PartialEq)]
pub struct UnitComparison {
    /// How the devices were preconditioned, or the workload.
    pub title: String,
    pub platforms: [String; 2],
    pub mbwus: [f64; 2],
    pub savings: Vec<UnitSaving>,
    /// Platforms of the second kind that are worth one of the first.
    pub equivalent: f64,
    /// As printed.
    pub printed_equivalent: Option<f64>,
}

/// A cost of an MBWU on both platforms.
#[derive(Debug, Clone, PartialEq)]
pub struct UnitSaving {
    pub cost: UnitCost,
    pub values: [f64; 2],
    /// Share that the second saves.
    pub saving: f64,
    pub printed_saving: Option<f64>,
}

impl UnitComparison {
    /// By every cost that both have.
    ///
    /// # Errors
    /// A number cannot be.
    pub fn of(
        title: &str,
        host: &PlatformUnits,
        own: &PlatformUnits,
    ) -> Result<UnitComparison, CostError> {
        let mut savings = Vec::new();
        for cost in UnitCost::ALL {
            let (Some(a), Some(b)) = (cost.on(host)?, cost.on(own)?) else { continue };
            let saving = saving(b, a)?;
            savings.push(UnitSaving { cost, values: [a, b], saving, printed_saving: None });
        }
        Ok(UnitComparison {
            title: title.to_owned(),
            platforms: [host.name.clone(), own.name.clone()],
            mbwus: [host.mbwus, own.mbwus],
            savings,
            equivalent: equivalent(own.mbwus, host.mbwus)?,
            printed_equivalent: None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_costs_that_both_know_are_compared() {
        let host = PlatformUnits {
            name: "host".to_owned(),
            mbwus: 6.0,
            price_usd: Some(600.0),
            watts: Some(60.0),
            amps: None,
            m2: None,
        };
        let own = PlatformUnits { mbwus: 0.5, price_usd: None, watts: Some(1.0), ..host.clone() };
        let compared = UnitComparison::of("", &host, &own).unwrap();
        let costs: Vec<UnitCost> = compared.savings.iter().map(|saving| saving.cost).collect();
        assert_eq!(costs, [UnitCost::Watts, UnitCost::Kwh]);
        assert_eq!((compared.savings[0].values, compared.savings[0].saving), ([10.0, 2.0], 0.8));
        assert_eq!(compared.equivalent, 12.0);
        assert_eq!(host.costs().unwrap()[0], (UnitCost::Usd, 100.0));
        let none = PlatformUnits { mbwus: 0.0, ..own };
        assert!(none.costs().is_err() && UnitComparison::of("", &host, &none).is_err());
    }
}
