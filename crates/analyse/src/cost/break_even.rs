//! Cost over purchase price, and where two servers cost the same.

use super::error::{CostError, above_zero, not_below_zero};
use super::fleet::{Assumptions, HOURS_PER_YEAR, ServedLoad, ServerFleet};

/// Cost an hour of the servers that a target needs, over the purchase price of one:
/// `fixed + slope x price`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct CostLine {
    /// Energy and rent, in dollars an hour.
    pub fixed_usd_per_h: f64,
    /// `n / (8760 T_s)`: dollars an hour for each dollar of price.
    pub per_h: f64,
}

impl CostLine {
    /// Dollars an hour at a price in dollars.
    pub fn at(&self, price_usd: f64) -> f64 {
        self.fixed_usd_per_h + self.per_h * price_usd
    }
}

/// The line of a server, whose own price does not matter.
///
/// Errors: those of [`ServerFleet::of`]. Source: S. Mikrou 2019, figure 5.1.
pub fn cost_line(server: &ServedLoad, assumed: &Assumptions) -> Result<CostLine, CostError> {
    let fleet = ServerFleet::of(&ServedLoad { price_usd: 0.0, ..*server }, assumed)?;
    let per_h = fleet.servers as f64 / (assumed.years * HOURS_PER_YEAR);
    Ok(CostLine { fixed_usd_per_h: fleet.total_usd_per_h(), per_h })
}

/// The price of one `own` server at which its cluster costs what `other`'s does at
/// `other_price_usd`: `p = (f' + s' p' - f) / s`.
///
/// Below it `own` is the cheaper. Errors: a price below zero; `own` is dearer even as a gift.
pub fn break_even_price(
    own: &CostLine,
    other: &CostLine,
    other_price_usd: f64,
) -> Result<f64, CostError> {
    let other_price = not_below_zero("price of a server", other_price_usd)?;
    let slope = above_zero("servers for each dollar", own.per_h)?;
    let room = other.at(other_price) - own.fixed_usd_per_h;
    if room < 0.0 {
        return Err(CostError::NeverEven { excess_usd_per_h: -room });
    }
    Ok(room / slope)
}

/// The one price that both may have and cost the same, where the lines cross:
/// `p = (f' - f) / (s - s')`.
///
/// Errors: the lines do not cross above zero.
pub fn equal_price(a: &CostLine, b: &CostLine) -> Result<f64, CostError> {
    crossing("price", b.fixed_usd_per_h - a.fixed_usd_per_h, a.per_h - b.per_h)
}

/// The price of electricity in dollars for a kWh at which both clusters cost the same, prices of
/// servers and all else as they are: `c = (E' - E) / (e - e')`, with E the cost of equipment and
/// rent and e the kilowatts.
///
/// Errors: those of [`ServerFleet::of`]; there is no such price above zero.
pub fn break_even_electricity(
    a: &ServedLoad,
    b: &ServedLoad,
    assumed: &Assumptions,
) -> Result<f64, CostError> {
    let unit = Assumptions { usd_per_kwh: 1.0, ..*assumed };
    let (a, b) = (ServerFleet::of(a, &unit)?, ServerFleet::of(b, &unit)?);
    let rest = |fleet: &ServerFleet| fleet.equipment_usd_per_h + fleet.rack_usd_per_h;
    crossing("price of electricity", rest(&b) - rest(&a), a.energy_usd_per_h - b.energy_usd_per_h)
}

/// The lifetime in years after which both clusters have cost the same:
/// `T = (S - S') / (8760 (r' - r))`, with S the price of all servers and r what runs on every
/// hour.
///
/// Errors: those of [`ServerFleet::of`]; there is no such lifetime above zero.
pub fn break_even_years(
    a: &ServedLoad,
    b: &ServedLoad,
    assumed: &Assumptions,
) -> Result<f64, CostError> {
    let year = Assumptions { years: 1.0, ..*assumed };
    let (a, b) = (ServerFleet::of(a, &year)?, ServerFleet::of(b, &year)?);
    let running = |fleet: &ServerFleet| fleet.energy_usd_per_h + fleet.rack_usd_per_h;
    let capital = a.equipment_usd_per_h - b.equipment_usd_per_h;
    crossing("lifetime", capital, running(&b) - running(&a))
}

fn crossing(what: &'static str, rise: f64, run: f64) -> Result<f64, CostError> {
    let at = rise / run;
    if at.is_finite() && at > 0.0 { Ok(at) } else { Err(CostError::NoCrossing { what }) }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ASSUMED: Assumptions = Assumptions {
        target_ops_s: 1e7,
        years: 3.0,
        usd_per_kwh: 0.15,
        pue: 1.4,
        usd_per_rack_unit_month: 5.0,
    };
    /// Cheap and slow, and frugal for each operation; then dear and fast.
    const SMALL: ServedLoad =
        ServedLoad { price_usd: 500.0, throughput_ops_s: 2e5, power_w: 30.0, rack_units: 1.0 };
    const LARGE: ServedLoad =
        ServedLoad { price_usd: 1800.0, throughput_ops_s: 8e5, power_w: 160.0, rack_units: 1.0 };

    fn total(server: &ServedLoad, assumed: &Assumptions) -> f64 {
        ServerFleet::of(server, assumed).unwrap().total_usd_per_h()
    }

    #[test]
    fn a_cost_line_agrees_with_the_fleet() {
        let line = cost_line(&SMALL, &ASSUMED).unwrap();
        for price_usd in [0.0, 500.0, 12_345.0] {
            let fleet = total(&ServedLoad { price_usd, ..SMALL }, &ASSUMED);
            assert!((line.at(price_usd) - fleet).abs() < 1e-9);
        }
    }

    #[test]
    fn costs_are_equal_at_every_break_even() {
        let (small, large) =
            (cost_line(&SMALL, &ASSUMED).unwrap(), cost_line(&LARGE, &ASSUMED).unwrap());
        let price_usd = break_even_price(&small, &large, LARGE.price_usd).unwrap();
        let there = ServedLoad { price_usd, ..SMALL };
        assert!((total(&there, &ASSUMED) - total(&LARGE, &ASSUMED)).abs() < 1e-9);

        let usd_per_kwh = break_even_electricity(&SMALL, &LARGE, &ASSUMED).unwrap();
        let there = Assumptions { usd_per_kwh, ..ASSUMED };
        assert!((total(&SMALL, &there) - total(&LARGE, &there)).abs() < 1e-9);
        let cheap = ServedLoad { rack_units: 0.1, ..SMALL };
        let cheap_line = cost_line(&cheap, &ASSUMED).unwrap();
        let price = equal_price(&cheap_line, &large).unwrap();
        assert!((cheap_line.at(price) - large.at(price)).abs() < 1e-9);
        let years = break_even_years(&cheap, &LARGE, &ASSUMED).unwrap();
        let there = Assumptions { years, ..ASSUMED };
        assert!((total(&cheap, &there) - total(&LARGE, &there)).abs() < 1e-9);
    }

    #[test]
    fn lines_without_a_crossing_are_an_error() {
        let (small, large) = (
            CostLine { fixed_usd_per_h: 9.0, per_h: 0.02 },
            CostLine { fixed_usd_per_h: 1.0, per_h: 0.01 },
        );
        let error = break_even_price(&small, &large, 100.0).unwrap_err();
        assert_eq!(error, CostError::NeverEven { excess_usd_per_h: 7.0 });
        assert_eq!(equal_price(&small, &large), Err(CostError::NoCrossing { what: "price" }));
        assert_eq!(equal_price(&small, &small), Err(CostError::NoCrossing { what: "price" }));
        assert!(break_even_price(&small, &large, -1.0).is_err());
        let twin = break_even_electricity(&SMALL, &SMALL, &ASSUMED);
        assert_eq!(twin, Err(CostError::NoCrossing { what: "price of electricity" }));
    }
}
