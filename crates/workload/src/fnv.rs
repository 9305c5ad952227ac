//! FNV-1a over the eight octets of a number, as YCSB scatters its keys.

const BASIS: u64 = 0xcbf2_9ce4_8422_2325;
const PRIME: u64 = 0x0000_0100_0000_01b3;

/// FNV-1a-64 of the eight octets of `x`, the lowest first.
///
/// This is `fnvhash64` of YCSB's `Utils` before the absolute value is taken.
///
/// Is it free of collisions? Each step is a bijection of the whole state, but the steps together
/// take a fixed start and eight octets to a word, which nothing forces to be one to one. It *is*
/// one to one below [`DISTINCT`] = 2^48: suppose that two numbers of six octets collide and let
/// `e1 .. e6` be the differences that their octets make to the state, `|e1| <= 255`, the others
/// `|e| <= 510`. With the prime `P = 2^40 + 435`, `P^j = 435^j + j 435^(j-1) 2^40` modulo 2^64,
/// so that the polynomial `Q(x) = e1 x^5 + ... + e6` has `Q(435) + 2^40 Q'(435) = 0` modulo 2^64.
/// Hence `Q(435) = m 2^40` for a small `m`, which leaves few candidates for the differences; the
/// test beneath walks through all of them, and only `e = 0` fits. (Two octets that are zero in
/// both numbers follow, and those steps are bijective.)
#[inline(always)]
pub const fn fnv64(x: u64) -> u64 {
    // Octets that are zero only multiply: three of them at once for all numbers in use.
    const CUBE: u64 = PRIME.wrapping_mul(PRIME).wrapping_mul(PRIME);
    if x >> 40 == 0 { octets::<5>(x).wrapping_mul(CUBE) } else { octets::<8>(x) }
}

#[inline(always)]
const fn octets<const N: u32>(x: u64) -> u64 {
    let mut hash = BASIS;
    let mut octet = 0;
    while octet < N {
        hash = (hash ^ ((x >> (8 * octet)) & 0xff)).wrapping_mul(PRIME);
        octet += 1;
    }
    hash
}

/// Below this, different numbers have different hashes; proof at [`fnv64`].
pub const DISTINCT: u64 = 1 << 48;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn is_the_published_function() {
        // The reference loop over bytes; test vector: FNV-1a-64 of one zero octet.
        let bytes =
            |data: &[u8]| data.iter().fold(BASIS, |h, b| (h ^ *b as u64).wrapping_mul(PRIME));
        assert_eq!(bytes(&[0]), 0xaf63_bd4c_8601_b7df);
        for x in [0, 1, 255, 256, (1 << 40) - 1, 1 << 40, 0x0123_4567_89ab_cdef, u64::MAX] {
            assert_eq!(fnv64(x), bytes(&x.to_le_bytes()));
        }
        // YCSB's first keys: user6284781860667377211 is record 0.
        assert_eq!((fnv64(0) as i64).unsigned_abs(), 6_284_781_860_667_377_211);
    }

    /// Walks the differences from the last octet back: `rest` must be divisible by 435 once the
    /// last difference is taken off. `e` is filled from the last to the first.
    fn walk(rest: i128, e: &mut [i128; 6], remaining: usize, solutions: &mut Vec<[i128; 6]>) {
        if remaining == 0 {
            if rest == 0 {
                solutions.push(*e);
            }
            return;
        }
        let most: i128 = if remaining == 1 { 255 } else { 510 };
        let first = rest.rem_euclid(435);
        let mut digit = first - 870;
        while digit <= most {
            if digit >= -most {
                e[remaining - 1] = digit;
                walk((rest - digit) / 435, e, remaining - 1, solutions);
            }
            digit += 435;
        }
    }

    #[test]
    fn six_octets_never_collide() {
        let reach: i128 = (0..6).map(|j| 510 * 435i128.pow(j)).sum();
        let most = reach >> 40;
        let mut fits = Vec::new();
        for m in -most - 1..=most + 1 {
            let mut solutions = Vec::new();
            walk(m << 40, &mut [0; 6], 6, &mut solutions);
            for e in solutions {
                let slope: i128 =
                    (0..5).map(|i| (5 - i) * e[i as usize] * 435i128.pow(4 - i as u32)).sum();
                if (m + slope).rem_euclid(1 << 24) == 0 {
                    fits.push(e);
                }
            }
        }
        assert_eq!(fits, [[0; 6]]);
    }
}
