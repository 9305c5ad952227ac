//! The servers that a target needs, and their cost.

use super::error::{CostError, above_zero, not_below_zero};

/// Of a year of 365 days.
pub const HOURS_PER_YEAR: f64 = 8760.0;
/// Units of a full-height rack.
pub const RACK_UNITS_PER_RACK: f64 = 42.0;

const WATTS_PER_KILOWATT: f64 = 1e3;
const MONTHS_PER_YEAR: f64 = 12.0;
/// More servers are taken for a mistaken unit.
const MAX_SERVERS: f64 = 1e9;
/// A quotient of rates within this relative distance of a whole number is that number.
const ROUNDING: f64 = 1e-9;

/// One server under the load.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ServedLoad {
    /// Purchase price C_s.
    pub price_usd: f64,
    /// Operations a second that one server serves.
    pub throughput_ops_s: f64,
    /// Power averaged over its life, `U P_a + (1 - U) P_i`.
    pub power_w: f64,
    /// Height in a rack; 0 where no rent is paid for it.
    pub rack_units: f64,
}

/// Assumptions for all servers.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Assumptions {
    /// Operations a second of all servers together.
    pub target_ops_s: f64,
    /// Lifetime T_s, over which a server is written off.
    pub years: f64,
    /// Price of electricity C_ph.
    pub usd_per_kwh: f64,
    /// Power usage effectiveness: what the building draws for each watt of a server. 1 in the
    /// thesis.
    pub pue: f64,
    /// Rent of a rack unit for a month. 0 in the thesis.
    pub usd_per_rack_unit_month: f64,
}

/// The cost of all servers together.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ServerFleet {
    pub servers: u64,
    /// With cooling and losses: times PUE.
    pub power_w: f64,
    pub equipment_usd_per_h: f64,
    pub energy_usd_per_h: f64,
    pub rack_usd_per_h: f64,
}

/// `n = ceil(target / throughput)`: whole servers; both rates in operations a second.
///
/// A quotient within 1e-9 of a whole number is that number. Errors: a rate of zero or below or
/// not finite; more than 10^9 servers. Source: the server columns of S. Mikrou 2019, table 5.2.
pub fn servers_for(target_ops_s: f64, throughput_ops_s: f64) -> Result<u64, CostError> {
    let target = above_zero("target throughput", target_ops_s)?;
    let own = above_zero("throughput of a server", throughput_ops_s)?;
    let quotient = target / own;
    if quotient > MAX_SERVERS {
        return Err(CostError::TooMany { servers: quotient });
    }
    Ok((quotient * (1.0 - ROUNDING)).ceil().max(1.0) as u64)
}

/// `C_e = C_ph P PUE`, in dollars an hour.
///
/// `power_w` P is the average power in watts, of one server or of many; `usd_per_kwh` C_ph.
/// Errors: PUE below 1; a power or price below zero or not finite.
/// Source: S. Mikrou 2019, equation 5.3, where PUE is 1.
pub fn energy_usd_per_h(power_w: f64, usd_per_kwh: f64, pue: f64) -> Result<f64, CostError> {
    let power = not_below_zero("power", power_w)?;
    let price = not_below_zero("price of a kWh", usd_per_kwh)?;
    if !(pue.is_finite() && pue >= 1.0) {
        return Err(CostError::Impossible { what: "PUE", value: pue, must: "1 or more" });
    }
    Ok(price * power / WATTS_PER_KILOWATT * pue)
}

/// `P = 1000 C_e / (n C_ph)`, in watts: the average power of each of `servers` whose energy costs
/// `usd_per_h` together, without PUE. The inverse of [`energy_usd_per_h`], for tables that print
/// the cost and not the power.
///
/// Errors: no server, a price of zero or below, a cost below zero.
pub fn power_of_cost_w(usd_per_h: f64, servers: u64, usd_per_kwh: f64) -> Result<f64, CostError> {
    let cost = not_below_zero("cost of energy", usd_per_h)?;
    let n = above_zero("number of servers", servers as f64)?;
    Ok(cost / (n * above_zero("price of a kWh", usd_per_kwh)?) * WATTS_PER_KILOWATT)
}

/// `C_p = T_s C_ph P PUE`, in dollars over a server's life of `years` T_s, with 8,760 hours to a
/// year.
///
/// Errors: a lifetime of zero or below; those of [`energy_usd_per_h`].
/// Source: S. Mikrou 2019, equation 5.2.
pub fn lifetime_energy_usd(
    years: f64,
    power_w: f64,
    usd_per_kwh: f64,
    pue: f64,
) -> Result<f64, CostError> {
    let hours = above_zero("lifetime in years", years)? * HOURS_PER_YEAR;
    Ok(hours * energy_usd_per_h(power_w, usd_per_kwh, pue)?)
}

/// `C_t = C_s + C_p`, in dollars over the life of one server.
///
/// Errors: a price below zero; those of [`lifetime_energy_usd`].
/// Source: S. Mikrou 2019, equation 5.1.
pub fn total_usd(server: &ServedLoad, assumed: &Assumptions) -> Result<f64, CostError> {
    let price = not_below_zero("price of a server", server.price_usd)?;
    let Assumptions { years, usd_per_kwh, pue, .. } = *assumed;
    Ok(price + lifetime_energy_usd(years, server.power_w, usd_per_kwh, pue)?)
}

impl ServerFleet {
    /// The servers that the target needs: with `n` from [`servers_for`],
    /// `n C_s / (8760 T_s)` for equipment, `n C_e` for energy, and `12 n R r / 8760` for R rack
    /// units at a rent of r a month.
    ///
    /// Errors: those of [`servers_for`] and [`energy_usd_per_h`]; a lifetime of zero or below; a
    /// price, rent or height below zero.
    /// Source: S. Mikrou 2019, figure 5.1, whose curves have neither PUE nor rent.
    pub fn of(server: &ServedLoad, assumed: &Assumptions) -> Result<ServerFleet, CostError> {
        let servers = servers_for(assumed.target_ops_s, server.throughput_ops_s)?;
        ServerFleet::of_servers(servers, server, assumed)
    }

    /// So many servers, whatever their number is for; their throughput and the target do not matter.
    ///
    /// Errors: those of [`energy_usd_per_h`]; a lifetime of zero or below; a price, rent or height
    /// below zero.
    pub fn of_servers(
        servers: u64,
        server: &ServedLoad,
        assumed: &Assumptions,
    ) -> Result<ServerFleet, CostError> {
        let n = servers as f64;
        let hours = above_zero("lifetime in years", assumed.years)? * HOURS_PER_YEAR;
        let price = not_below_zero("price of a server", server.price_usd)?;
        let units = not_below_zero("rack units", server.rack_units)?;
        let rent = not_below_zero("rent of a rack unit", assumed.usd_per_rack_unit_month)?;
        let each = energy_usd_per_h(server.power_w, assumed.usd_per_kwh, assumed.pue)?;
        Ok(ServerFleet {
            servers,
            power_w: n * server.power_w * assumed.pue,
            equipment_usd_per_h: n * price / hours,
            energy_usd_per_h: n * each,
            rack_usd_per_h: n * units * rent * MONTHS_PER_YEAR / HOURS_PER_YEAR,
        })
    }

    pub fn total_usd_per_h(&self) -> f64 {
        self.equipment_usd_per_h + self.energy_usd_per_h + self.rack_usd_per_h
    }

    /// Dollars for 10^9 operations, all the time at `target_ops_s`.
    pub fn usd_per_gop(&self, target_ops_s: f64) -> f64 {
        const SECONDS_PER_HOUR: f64 = 3600.0;
        self.total_usd_per_h() / (target_ops_s * SECONDS_PER_HOUR) * 1e9
    }

    /// Racks of 42 units that hold servers of `rack_units` each, at least one: as many whole
    /// servers in a rack as fit, `ceil(n / floor(42 / R))`; a server higher than a rack takes
    /// `ceil(R / 42)` of them.
    ///
    /// Errors: a height of zero or below.
    pub fn racks(&self, rack_units: f64) -> Result<u64, CostError> {
        let units = above_zero("rack units", rack_units)?;
        let fit = (RACK_UNITS_PER_RACK / units).floor();
        Ok(match fit >= 1.0 {
            true => (self.servers as f64 / fit).ceil() as u64,
            false => self.servers * (units / RACK_UNITS_PER_RACK).ceil() as u64,
        })
    }

    /// Square metres for servers of `footprint_m2` each: `n A`.
    ///
    /// Errors: a footprint of zero or below.
    pub fn floor_m2(&self, footprint_m2: f64) -> Result<f64, CostError> {
        Ok(self.servers as f64 * above_zero("footprint", footprint_m2)?)
    }

    /// Kilograms of CO2 equivalent an hour, `P / 1000 x I / 1000`, of electricity whose carbon
    /// intensity I is `g_per_kwh`; PUE is in P. What making the servers emitted is not in it.
    ///
    /// Errors: an intensity below zero or not finite.
    /// Source: the location-based method of the GHG Protocol's Scope 2 Guidance (2015).
    pub fn carbon_kg_per_h(&self, g_per_kwh: f64) -> Result<f64, CostError> {
        const GRAMS_PER_KILOGRAM: f64 = 1e3;
        let intensity = not_below_zero("carbon intensity", g_per_kwh)?;
        Ok(self.power_w / WATTS_PER_KILOWATT * intensity / GRAMS_PER_KILOGRAM)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ASSUMED: Assumptions = Assumptions {
        target_ops_s: 1e6,
        years: 4.0,
        usd_per_kwh: 0.2,
        pue: 1.5,
        usd_per_rack_unit_month: 73.0,
    };
    const SERVER: ServedLoad =
        ServedLoad { price_usd: 3504.0, throughput_ops_s: 3e5, power_w: 100.0, rack_units: 2.0 };

    #[test]
    fn servers_are_whole_numbers() {
        assert_eq!(servers_for(1e6, 3e5), Ok(4));
        assert_eq!(servers_for(1e6, 5e5), Ok(2));
        assert_eq!(servers_for(1.0, 1e9), Ok(1));
        // Back from a number of servers that was printed.
        for n in [83, 297, 368, 704] {
            assert_eq!(servers_for(1e8, 1e8 / f64::from(n)), Ok(n as u64));
        }
        assert!(matches!(servers_for(1e18, 1.0), Err(CostError::TooMany { .. })));
        for wrong in [0.0, -1.0, f64::NAN, f64::INFINITY] {
            assert!(servers_for(wrong, 1.0).is_err() && servers_for(1.0, wrong).is_err());
        }
    }

    #[test]
    fn costs_by_hand() {
        let fleet = ServerFleet::of(&SERVER, &ASSUMED).unwrap();
        assert_eq!(fleet.servers, 4);
        assert!((fleet.power_w - 600.0).abs() < 1e-9);
        // 4 x 3504 $ over 4 x 8760 h; 0.6 kW at 0.2 $; 8 units at 73 $ x 12 / 8760 h.
        assert!((fleet.equipment_usd_per_h - 0.4).abs() < 1e-12);
        assert!((fleet.energy_usd_per_h - 0.12).abs() < 1e-12);
        assert!((fleet.rack_usd_per_h - 0.8).abs() < 1e-12);
        assert!((fleet.total_usd_per_h() - 1.32).abs() < 1e-12);
        assert!((fleet.usd_per_gop(1e6) - 1.32 / 3.6).abs() < 1e-12);
        assert!((fleet.carbon_kg_per_h(400.0).unwrap() - 0.24).abs() < 1e-12);
        assert_eq!(fleet.racks(2.0), Ok(1));
        assert_eq!(fleet.racks(30.0), Ok(4));
        assert_eq!(fleet.racks(50.0), Ok(8));
        assert!((fleet.floor_m2(0.6).unwrap() - 2.4).abs() < 1e-12);
        // One server over its life: 3504 $ and 35,040 h of 0.1 kW x 1.5 at 0.2 $.
        assert!((total_usd(&SERVER, &ASSUMED).unwrap() - (3504.0 + 1051.2)).abs() < 1e-9);
    }

    #[test]
    fn refuses_impossible_inputs_by_name() {
        let with = |change: fn(&mut ServedLoad, &mut Assumptions)| {
            let (mut server, mut assumed) = (SERVER, ASSUMED);
            change(&mut server, &mut assumed);
            ServerFleet::of(&server, &assumed).unwrap_err().to_string()
        };
        assert!(with(|_, a| a.years = 0.0).contains("lifetime in years is 0"));
        assert!(with(|_, a| a.pue = 0.9).contains("PUE is 0.9: it must be 1 or more"));
        assert!(with(|_, a| a.usd_per_kwh = -0.1).contains("price of a kWh"));
        assert!(with(|_, a| a.usd_per_rack_unit_month = f64::NAN).contains("rent"));
        assert!(with(|s, _| s.price_usd = -1.0).contains("price of a server"));
        assert!(with(|s, _| s.power_w = f64::INFINITY).contains("power"));
        assert!(with(|s, _| s.throughput_ops_s = 0.0).contains("throughput of a server"));
    }
}
