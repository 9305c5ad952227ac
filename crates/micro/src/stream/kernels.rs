//! The four loops of STREAM over three arrays of doubles, with ordinary stores and with stores
//! that go past the caches.
//!
//! The ordinary ones are plain loops that the compiler turns to vectors, once for each set of
//! instructions that the processor may have; `copy` is `memcpy`, as compilers make of that loop.
#![allow(unsafe_code, reason = "instructions that the processor may lack, and streaming stores")]

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// The scalar of `scale` and `triad`. With the square root of two less one, a round of the four
/// kernels leaves the first array as it was (q + q + q * q = 1), so that any number of rounds can
/// be checked; the loops' time does not depend on it.
pub(crate) const Q: f64 = std::f64::consts::SQRT_2 - 1.0;

/// One of STREAM's loops.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum StreamKernel {
    /// `c = a`
    Copy,
    /// `b = q * c`
    Scale,
    /// `c = a + b`
    Add,
    /// `a = b + q * c`
    Triad,
}

impl StreamKernel {
    /// In STREAM's order.
    pub const ALL: [StreamKernel; 4] =
        [StreamKernel::Copy, StreamKernel::Scale, StreamKernel::Add, StreamKernel::Triad];

    /// Arrays that the loop reads or writes. STREAM counts each once, and so does kvmeter: what
    /// a processor reads of a line only to overwrite it is not counted.
    pub const fn arrays(self) -> u64 {
        match self {
            StreamKernel::Copy | StreamKernel::Scale => 2,
            StreamKernel::Add | StreamKernel::Triad => 3,
        }
    }

    pub const fn name(self) -> &'static str {
        match self {
            StreamKernel::Copy => "copy",
            StreamKernel::Scale => "scale",
            StreamKernel::Add => "add",
            StreamKernel::Triad => "triad",
        }
    }
}

/// How the kernels write their results.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Stores {
    /// Through the caches: the processor may read each line before it is written.
    #[default]
    Plain,
    /// Past the caches (non-temporal), in all four kernels.
    Streaming,
}

impl FromStr for Stores {
    type Err = String;
    fn from_str(text: &str) -> Result<Stores, String> {
        match text {
            "plain" => Ok(Stores::Plain),
            "streaming" if cfg!(target_arch = "x86_64") => Ok(Stores::Streaming),
            "streaming" => {
                Err("streaming stores are built for x86-64 only; use `plain`".to_owned())
            }
            _ => Err(format!("`{text}` is not one of plain, streaming")),
        }
    }
}

impl fmt::Display for Stores {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Stores::Plain => "plain",
            Stores::Streaming => "streaming",
        })
    }
}

/// The instruction set of the ordinary loops.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Vectors {
    /// Those that every processor of the architecture has.
    Baseline,
    Avx2,
    Avx512,
}

impl Vectors {
    /// The widest instruction set of this processor.
    pub fn detect() -> Vectors {
        #[cfg(target_arch = "x86_64")]
        {
            if is_x86_feature_detected!("avx512f") && is_x86_feature_detected!("fma") {
                return Vectors::Avx512;
            }
            if is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma") {
                return Vectors::Avx2;
            }
        }
        Vectors::Baseline
    }
}

/// A thread's part of the three arrays, of one length.
pub(crate) struct ArrayPart<'a> {
    pub a: &'a mut [f64],
    pub b: &'a mut [f64],
    pub c: &'a mut [f64],
}

/// Runs a kernel once over a part. `vectors` must be of this processor.
pub(crate) fn run(
    kernel: StreamKernel,
    stores: Stores,
    vectors: Vectors,
    part: &mut ArrayPart<'_>,
) {
    let ArrayPart { a, b, c } = part;
    if stores == Stores::Streaming {
        return streaming::run(kernel, a, b, c);
    }
    if kernel == StreamKernel::Copy {
        return c.copy_from_slice(a);
    }
    match vectors {
        // SAFETY: only `Vectors::detect` makes these, after it has checked the processor.
        #[cfg(target_arch = "x86_64")]
        Vectors::Avx512 => unsafe { wide::avx512(kernel, a, b, c) },
        // SAFETY: as above.
        #[cfg(target_arch = "x86_64")]
        Vectors::Avx2 => unsafe { wide::avx2(kernel, a, b, c) },
        _ => plain(kernel, a, b, c, |b, c| b + Q * c),
    }
}

#[inline(always)]
fn plain(
    kernel: StreamKernel,
    a: &mut [f64],
    b: &mut [f64],
    c: &mut [f64],
    triad: impl Fn(f64, f64) -> f64,
) {
    match kernel {
        StreamKernel::Copy => c.copy_from_slice(a),
        StreamKernel::Scale => b.iter_mut().zip(&*c).for_each(|(b, c)| *b = Q * c),
        StreamKernel::Add => c.iter_mut().zip(&*a).zip(&*b).for_each(|((c, a), b)| *c = a + b),
        StreamKernel::Triad => {
            a.iter_mut().zip(&*b).zip(&*c).for_each(|((a, b), c)| *a = triad(*b, *c))
        }
    }
}

#[cfg(target_arch = "x86_64")]
mod wide {
    use super::{Q, StreamKernel, plain};

    #[target_feature(enable = "avx2,fma")]
    pub fn avx2(kernel: StreamKernel, a: &mut [f64], b: &mut [f64], c: &mut [f64]) {
        plain(kernel, a, b, c, |b, c| f64::mul_add(Q, c, b));
    }

    #[target_feature(enable = "avx512f,fma")]
    pub fn avx512(kernel: StreamKernel, a: &mut [f64], b: &mut [f64], c: &mut [f64]) {
        plain(kernel, a, b, c, |b, c| f64::mul_add(Q, c, b));
    }
}

#[cfg(target_arch = "x86_64")]
mod streaming {
    use std::arch::x86_64::{
        _mm_add_pd, _mm_load_pd, _mm_mul_pd, _mm_set1_pd, _mm_sfence, _mm_stream_pd,
    };

    use super::{Q, StreamKernel, plain};

    /// Doubles of a vector.
    const WIDE: usize = 2;

    pub fn run(kernel: StreamKernel, a: &mut [f64], b: &mut [f64], c: &mut [f64]) {
        let n = a.len().min(b.len()).min(c.len()) / WIDE * WIDE;
        for array in [&*a, &*b, &*c] {
            assert!(array.as_ptr().align_offset(16) == 0, "arrays lie on lines of the cache");
        }
        // A power of two of bytes, written whole by four stores each: the processor joins them.
        let (pa, pb, pc) = (a.as_mut_ptr(), b.as_mut_ptr(), c.as_mut_ptr());
        for i in (0..n).step_by(WIDE) {
            // SAFETY: `i + 1` is inside all three arrays, which are aligned as the instructions
            // demand (asserted above) and do not overlap, being three exclusive borrows; SSE2 is
            // part of the architecture.
            unsafe {
                let q = _mm_set1_pd(Q);
                match kernel {
                    StreamKernel::Copy => _mm_stream_pd(pc.add(i), _mm_load_pd(pa.add(i))),
                    StreamKernel::Scale => {
                        _mm_stream_pd(pb.add(i), _mm_mul_pd(q, _mm_load_pd(pc.add(i))));
                    }
                    StreamKernel::Add => {
                        let sum = _mm_add_pd(_mm_load_pd(pa.add(i)), _mm_load_pd(pb.add(i)));
                        _mm_stream_pd(pc.add(i), sum);
                    }
                    StreamKernel::Triad => {
                        let scaled = _mm_mul_pd(q, _mm_load_pd(pc.add(i)));
                        _mm_stream_pd(pa.add(i), _mm_add_pd(_mm_load_pd(pb.add(i)), scaled));
                    }
                }
            }
        }
        // SAFETY: a fence touches no memory. It ends the stores inside the measured time.
        unsafe { _mm_sfence() };
        plain(kernel, &mut a[n..], &mut b[n..], &mut c[n..], |b, c| b + Q * c);
    }
}

#[cfg(not(target_arch = "x86_64"))]
mod streaming {
    use super::{Q, StreamKernel, plain};

    /// [`super::Stores::Streaming`] is refused on this architecture.
    pub fn run(kernel: StreamKernel, a: &mut [f64], b: &mut [f64], c: &mut [f64]) {
        plain(kernel, a, b, c, |b, c| b + Q * c);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::region::{PageSize, Placement, Region};

    /// Each kernel with every way of doing it, against its definition.
    #[test]
    fn kernels_agree_with_their_definition() {
        let mut ways = vec![(Stores::Plain, Vectors::Baseline), (Stores::Plain, Vectors::detect())];
        if cfg!(target_arch = "x86_64") {
            ways.push((Stores::Streaming, Vectors::Baseline));
        }
        for (stores, vectors) in ways {
            for kernel in StreamKernel::ALL {
                // 37 is no multiple of any vector.
                let mut arrays = [(); 3].map(|()| {
                    Region::map(37 * 8, PageSize::System, Placement::FirstTouch).unwrap()
                });
                let [a, b, c] = &mut arrays;
                let (a, b, c) = (a.as_mut_slice(), b.as_mut_slice(), c.as_mut_slice());
                for i in 0..37 {
                    (a[i], b[i], c[i]) = (i as f64, 100.0 + i as f64, 1000.0 - i as f64);
                }
                let (old_a, old_b, old_c) = (a.to_vec(), b.to_vec(), c.to_vec());
                run(kernel, stores, vectors, &mut ArrayPart { a, b, c });
                for i in 0..37 {
                    let (mut x, mut y, mut z) = (old_a[i], old_b[i], old_c[i]);
                    match kernel {
                        StreamKernel::Copy => z = x,
                        StreamKernel::Scale => y = Q * z,
                        StreamKernel::Add => z = x + y,
                        StreamKernel::Triad => x = y + Q * z,
                    }
                    for (found, wanted) in [(a[i], x), (b[i], y), (c[i], z)] {
                        assert!((found - wanted).abs() < 1e-12, "{kernel:?} {stores} {vectors:?}");
                    }
                }
            }
        }
    }
}
