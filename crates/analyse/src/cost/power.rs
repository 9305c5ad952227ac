//! Power over utilisation.

use super::error::{CostError, above_zero, not_below_zero, share};

/// `P = U P_a + (1 - U) P_i`, in watts.
///
/// `utilisation` U is a share of time or of full load, 0 to 1; `active_w` P_a the power at full
/// load, `idle_w` P_i that of the idle server. Errors: a share outside 0 to 1, a power below zero
/// or not finite. Source: S. Mikrou 2019, equation 5.2, after Loghin et al., PVLDB 8(7), 2015.
pub fn average_power_w(utilisation: f64, active_w: f64, idle_w: f64) -> Result<f64, CostError> {
    let u = share("utilisation", utilisation)?;
    let active = not_below_zero("power under load", active_w)?;
    let idle = not_below_zero("idle power", idle_w)?;
    Ok(u * active + (1.0 - u) * idle)
}

/// Power at every load from 0 to 1, straight between the loads at which it is known.
///
/// Two points are the line of [`average_power_w`]; more are a server's energy proportionality as
/// a graduated load shows it (Barroso and Hölzle, IEEE Computer 40(12), 2007): one that draws
/// half of its power at a tenth of its load costs more at low utilisation than the line says.
#[derive(Debug, Clone, PartialEq)]
pub struct PowerCurve {
    /// (load, watts), loads rising from 0 to 1.
    points: Vec<(f64, f64)>,
}

impl PowerCurve {
    /// From `idle_w` at load 0 to `full_w` at load 1.
    ///
    /// Errors: a power below zero or not finite.
    pub fn line(idle_w: f64, full_w: f64) -> Result<PowerCurve, CostError> {
        PowerCurve::through(&[(0.0, idle_w), (1.0, full_w)])
    }

    /// Through (load, watts).
    ///
    /// Errors: fewer than two points, a first load that is not 0 or a last that is not 1, loads
    /// that do not rise, a power below zero or not finite.
    pub fn through(points: &[(f64, f64)]) -> Result<PowerCurve, CostError> {
        match (points.first(), points.last()) {
            (Some(first), Some(last)) if points.len() > 1 && first.0 == 0.0 && last.0 == 1.0 => {}
            _ => return Err(CostError::ShortCurve),
        }
        if !points.windows(2).all(|pair| pair[0].0 < pair[1].0) {
            return Err(CostError::UnorderedCurve);
        }
        for (_, watts) in points {
            not_below_zero("power", *watts)?;
        }
        Ok(PowerCurve { points: points.to_vec() })
    }

    pub fn idle_w(&self) -> f64 {
        self.points.first().map_or(0.0, |point| point.1)
    }

    pub fn full_w(&self) -> f64 {
        self.points.last().map_or(0.0, |point| point.1)
    }

    /// Watts at `load`.
    ///
    /// Errors: a load outside 0 to 1.
    pub fn at(&self, load: f64) -> Result<f64, CostError> {
        let load = share("utilisation", load)?;
        let upper = self.points.iter().position(|point| point.0 >= load).unwrap_or(0).max(1);
        let ((x0, y0), (x1, y1)) = (self.points[upper - 1], self.points[upper]);
        average_power_w((load - x0) / (x1 - x0), y1, y0)
    }

    /// The load at which the server draws `watts`: the inverse of [`PowerCurve::at`].
    ///
    /// Errors: a power outside of the curve, a curve that does not rise everywhere.
    pub fn load_at(&self, watts: f64) -> Result<f64, CostError> {
        if !self.points.windows(2).all(|pair| pair[0].1 < pair[1].1) {
            return Err(CostError::FlatCurve);
        }
        let (low, high) = (self.idle_w(), self.full_w());
        if !(low..=high).contains(&watts) {
            return Err(CostError::OutsideCurve { watts, low, high });
        }
        let upper = self.points.iter().position(|point| point.1 >= watts).unwrap_or(0).max(1);
        let ((x0, y0), (x1, y1)) = (self.points[upper - 1], self.points[upper]);
        Ok(x0 + (watts - y0) / (y1 - y0) * (x1 - x0))
    }

    /// The same curve with every power times `factor`.
    ///
    /// Errors: a factor of zero or below, or not finite.
    pub fn scaled(&self, factor: f64) -> Result<PowerCurve, CostError> {
        let factor = above_zero("factor of power", factor)?;
        let points = self.points.iter().map(|(load, watts)| (*load, watts * factor)).collect();
        Ok(PowerCurve { points })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_the_average_of_the_thesis() {
        let line = PowerCurve::line(41.0, 50.0).unwrap();
        for u in [0.0, 0.25, 0.8, 1.0] {
            assert_eq!(line.at(u).unwrap(), average_power_w(u, 50.0, 41.0).unwrap());
        }
        assert!((line.at(0.8).unwrap() - 48.2).abs() < 1e-12);
    }

    #[test]
    fn curve_follows_and_inverts_a_graduated_load() {
        let curve = PowerCurve::through(&[(0.0, 50.0), (0.1, 100.0), (1.0, 190.0)]).unwrap();
        assert_eq!(curve.at(0.05).unwrap(), 75.0);
        assert_eq!(curve.at(0.1).unwrap(), 100.0);
        assert!((curve.at(0.55).unwrap() - 145.0).abs() < 1e-9);
        for load in [0.0, 0.03, 0.1, 0.5, 1.0] {
            let back = curve.load_at(curve.at(load).unwrap()).unwrap();
            assert!((back - load).abs() < 1e-12, "{load} {back}");
        }
        assert_eq!((curve.idle_w(), curve.full_w()), (50.0, 190.0));
        assert!((curve.scaled(2.0).unwrap().at(0.05).unwrap() - 150.0).abs() < 1e-12);
    }

    #[test]
    fn refuses_invalid_curves() {
        assert_eq!(PowerCurve::through(&[(0.0, 1.0)]), Err(CostError::ShortCurve));
        assert_eq!(PowerCurve::through(&[(0.0, 1.0), (0.9, 2.0)]), Err(CostError::ShortCurve));
        let unordered = [(0.0, 1.0), (0.5, 2.0), (0.5, 3.0), (1.0, 4.0)];
        assert_eq!(PowerCurve::through(&unordered), Err(CostError::UnorderedCurve));
        assert!(PowerCurve::line(-1.0, 5.0).is_err());
        assert!(PowerCurve::line(1.0, f64::NAN).is_err());
        let line = PowerCurve::line(10.0, 20.0).unwrap();
        assert!(line.at(1.1).is_err() && line.at(f64::NAN).is_err());
        assert!(matches!(line.load_at(25.0), Err(CostError::OutsideCurve { .. })));
        assert_eq!(PowerCurve::line(9.0, 9.0).unwrap().load_at(9.0), Err(CostError::FlatCurve));
    }
}
