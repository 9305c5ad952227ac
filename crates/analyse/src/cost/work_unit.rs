//! The cost of a media-based work unit (MBWU) on a platform that generates `mbwus` of them.
//!
//! Source of all: J. Liu, P. Kufeldt, C. Maltzahn, "MBWU: Benefit Quantification for Data Access
//! Function Offloading", ISC High Performance 2019 workshops, and their poster.

use super::error::{CostError, above_zero, not_below_zero};

const MBWUS: &str = "number of MBWUs";

/// `price / N`, in dollars for an MBWU.
///
/// Errors: a price below zero; N of zero or below or not finite.
pub fn usd_per_mbwu(price_usd: f64, mbwus: f64) -> Result<f64, CostError> {
    Ok(not_below_zero("price of the platform", price_usd)? / above_zero(MBWUS, mbwus)?)
}

/// `P / N`, in watts for an MBWU, from the platform's power while it generates all N.
///
/// Also amperes for an MBWU from a current, which compares platforms at one voltage.
/// Errors: a power below zero; N of zero or below or not finite.
pub fn watts_per_mbwu(power_w: f64, mbwus: f64) -> Result<f64, CostError> {
    Ok(not_below_zero("power of the platform", power_w)? / above_zero(MBWUS, mbwus)?)
}

/// `P h / (1000 N)`, in kWh for an MBWU that is generated for `hours`.
///
/// Errors: those of [`watts_per_mbwu`]; hours below zero.
pub fn kwh_per_mbwu(power_w: f64, mbwus: f64, hours: f64) -> Result<f64, CostError> {
    Ok(watts_per_mbwu(power_w, mbwus)? * not_below_zero("hours", hours)? / 1e3)
}

/// `A / N`, in square metres for an MBWU.
///
/// Errors: a footprint below zero; N of zero or below or not finite.
pub fn m2_per_mbwu(footprint_m2: f64, mbwus: f64) -> Result<f64, CostError> {
    Ok(not_below_zero("footprint", footprint_m2)? / above_zero(MBWUS, mbwus)?)
}

/// `1 - own / other`: the share that one platform saves over another, of any cost of an MBWU;
/// below zero where it costs more.
///
/// Errors: `own` below zero; `other` of zero or below or not finite.
pub fn saving(own: f64, other: f64) -> Result<f64, CostError> {
    let own = not_below_zero("cost of an MBWU", own)?;
    Ok(1.0 - own / above_zero("cost of an MBWU to compare with", other)?)
}

/// `N' / N`: platforms of N MBWUs that are worth one of N'.
///
/// Errors: a number of zero or below or not finite.
pub fn equivalent(own_mbwus: f64, other_mbwus: f64) -> Result<f64, CostError> {
    Ok(above_zero(MBWUS, other_mbwus)? / above_zero(MBWUS, own_mbwus)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn by_hand() {
        assert_eq!(usd_per_mbwu(120.0, 0.5), Ok(240.0));
        assert_eq!(watts_per_mbwu(30.0, 6.0), Ok(5.0));
        assert_eq!(kwh_per_mbwu(30.0, 6.0, 1000.0), Ok(5.0));
        assert_eq!(m2_per_mbwu(0.6, 6.0), Ok(0.09999999999999999));
        assert_eq!(saving(1.0, 4.0), Ok(0.75));
        assert_eq!(saving(4.0, 1.0), Ok(-3.0));
        assert_eq!(equivalent(0.5, 6.0), Ok(12.0));
    }

    #[test]
    fn no_unit_has_no_cost() {
        for mbwus in [0.0, -1.0, f64::NAN, f64::INFINITY] {
            let error = usd_per_mbwu(1.0, mbwus).unwrap_err().to_string();
            assert!(error.contains("number of MBWUs"), "{error}");
        }
        assert!(saving(1.0, 0.0).is_err());
        assert!(usd_per_mbwu(-1.0, 1.0).is_err());
    }
}
