//! The quantiles of the normal distribution.

/// The value below which a standard normal number lies with probability `p`, 0 < p < 1.
///
/// Wichura's rational approximations, "Algorithm AS 241: The Percentage Points of the Normal
/// Distribution", Applied Statistics 37(3), 1988 (PPND16): relative error about 1e-16.
pub fn quantile(p: f64) -> f64 {
    let q = p - 0.5;
    if q.abs() <= 0.425 {
        let r = 0.180625 - q * q;
        return q * ratio(r, &MIDDLE);
    }
    let tail = if q < 0.0 { p } else { 1.0 - p };
    let r = (-tail.ln()).sqrt();
    let size = if r <= 5.0 { ratio(r - 1.6, &SHOULDER) } else { ratio(r - 5.0, &FAR) };
    if q < 0.0 { -size } else { size }
}

/// Numerator and denominator by descending power.
type Rational = ([f64; 8], [f64; 8]);

fn ratio(x: f64, (above, below): &Rational) -> f64 {
    let at = |polynomial: &[f64; 8]| polynomial.iter().fold(0.0, |sum, c| sum * x + c);
    at(above) / at(below)
}

const MIDDLE: Rational = (
    [
        2.509_080_928_730_122_7e3,
        3.343_057_558_358_813e4,
        6.726_577_092_700_87e4,
        4.592_195_393_154_987e4,
        1.373_169_376_550_946e4,
        1.971_590_950_306_551_3e3,
        1.331_416_678_917_843_8e2,
        3.387_132_872_796_366_5,
    ],
    [
        5.226_495_278_852_855e3,
        2.872_908_573_572_194_3e4,
        3.930_789_580_009_271e4,
        2.121_379_430_158_659_7e4,
        5.394_196_021_424_751e3,
        6.871_870_074_920_579e2,
        4.231_333_070_160_091e1,
        1.0,
    ],
);

const SHOULDER: Rational = (
    [
        7.745_450_142_783_414e-4,
        2.272_384_498_926_918_4e-2,
        2.417_807_251_774_506e-1,
        1.270_458_252_452_368_4,
        3.647_848_324_763_204_5,
        5.769_497_221_460_691,
        4.630_337_846_156_546,
        1.423_437_110_749_683_5,
    ],
    [
        1.050_750_071_644_416_9e-9,
        5.475_938_084_995_345e-4,
        1.519_866_656_361_645_7e-2,
        1.481_039_764_274_800_8e-1,
        6.897_673_349_851e-1,
        1.676_384_830_183_803_8,
        2.053_191_626_637_759,
        1.0,
    ],
);

const FAR: Rational = (
    [
        2.010_334_399_292_288_1e-7,
        2.711_555_568_743_487_6e-5,
        1.242_660_947_388_078_4e-3,
        2.653_218_952_657_612_4e-2,
        2.965_605_718_285_048_7e-1,
        1.784_826_539_917_291_3,
        5.463_784_911_164_114,
        6.657_904_643_501_103,
    ],
    [
        2.044_263_103_389_939_8e-15,
        1.421_511_758_316_446e-7,
        1.846_318_317_510_054_8e-5,
        7.868_691_311_456_133e-4,
        1.487_536_129_085_061_5e-2,
        1.369_298_809_227_358e-1,
        5.998_322_065_558_88e-1,
        1.0,
    ],
);

#[cfg(test)]
mod tests {
    use super::*;

    /// P(0 < Z < z) by Simpson's rule over the density.
    fn half(z: f64) -> f64 {
        let steps = 20_000;
        let h = z / steps as f64;
        let density = |x: f64| (-x * x / 2.0).exp() / std::f64::consts::TAU.sqrt();
        let inner: f64 =
            (1..steps).map(|i| density(i as f64 * h) * if i % 2 == 1 { 4.0 } else { 2.0 }).sum();
        (density(0.0) + inner + density(z)) * h / 3.0
    }

    #[test]
    fn inverts_the_integral_of_the_density() {
        for p in [0.5001, 0.6, 0.75, 0.9, 0.924, 0.926, 0.975, 0.999, 0.999_999] {
            assert!((half(quantile(p)) - (p - 0.5)).abs() < 1e-12, "{p}");
            assert!((quantile(1.0 - p) + quantile(p)).abs() < 1e-9 * quantile(p), "{p}");
        }
    }

    #[test]
    fn reaches_the_far_tail() {
        // Where 1 - P(Z < z) is about density(z) / z * (1 - 1/z^2 + 3/z^4 - 15/z^6 + 105/z^8).
        for p in [1e-12f64, 1e-15, 1e-30, 1e-100] {
            let z = -quantile(p);
            let r = 1.0 / (z * z);
            let series = 1.0 - r * (1.0 - 3.0 * r * (1.0 - 5.0 * r * (1.0 - 7.0 * r)));
            let log = -z * z / 2.0 - (z * std::f64::consts::TAU.sqrt()).ln() + series.ln();
            assert!((log - p.ln()).abs() < 1e-4, "{p}: {log} {}", p.ln());
        }
    }
}
