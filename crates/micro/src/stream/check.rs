//! Checks the results in the arrays.

use super::kernels::Q;

/// What STREAM begins with.
pub(super) const START: [f64; 3] = [1.0, 2.0, 0.0];
/// Rounding adds up over rounds, a few times 1e-16 each.
const TOLERANCE: f64 = 1e-10;

/// The values of `a`, `b` and `c` after some rounds of the four kernels: the first array stays,
/// up to rounding, the others are `q` and `1 + q` times it.
pub(super) fn expected(rounds: usize) -> [f64; 3] {
    match rounds {
        0 => START,
        _ => [1.0, Q, 1.0 + Q],
    }
}

/// The largest relative error of some elements that should all be `expected`.
pub(super) fn worst(elements: &[f64], expected: f64) -> f64 {
    // `max` ignores NaN.
    let off = |x: &f64| if x.is_nan() { f64::INFINITY } else { ((x - expected) / expected).abs() };
    elements.iter().map(off).fold(0.0, f64::max)
}

/// Whether an error is small enough to be rounding.
pub(super) fn passes(error: f64) -> bool {
    error < TOLERANCE
}

#[cfg(test)]
mod tests {
    use super::super::kernels::{ArrayPart, Stores, StreamKernel, Vectors, run};
    use super::*;

    #[test]
    fn the_closed_form_agrees_with_a_thousand_rounds() {
        let [mut a, mut b, mut c] = START.map(|start| [start; 8]);
        let mut part = ArrayPart { a: &mut a, b: &mut b, c: &mut c };
        for _ in 0..1000 {
            for kernel in StreamKernel::ALL {
                run(kernel, Stores::Plain, Vectors::detect(), &mut part);
            }
        }
        for (elements, expected) in [&a, &b, &c].into_iter().zip(expected(1000)) {
            assert!(passes(worst(elements, expected)), "{elements:?} {expected}");
        }
    }

    #[test]
    fn a_wrong_element_is_detected() {
        assert!(passes(worst(&[1.0, 1.0 + 1e-13], 1.0)));
        assert!(!passes(worst(&[1.0, 1.0 + 1e-9, 1.0], 1.0)));
        assert!(!passes(worst(&[1.0, f64::NAN], 1.0)));
        assert!(!passes(worst(&[0.0], 1.0)));
    }
}
