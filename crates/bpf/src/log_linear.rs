//! Log-linear histograms that programs fill: powers of two, each divided into equal buckets.

use crate::asm::{Alu, Assembler, Reg, When};

/// Larger values are counted in the last bucket: 2^36 ns is 68 s.
const LARGEST_BITS: u32 = 36;

/// The buckets of a histogram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LogLinear {
    precision_bits: u32,
}

impl LogLinear {
    /// A power of two has 2^`precision_bits` buckets, so that a bucket is at most one part in so
    /// many of its value wide. At most 16 bits.
    pub const fn new(precision_bits: u32) -> LogLinear {
        assert!(precision_bits <= 16);
        LogLinear { precision_bits }
    }

    /// The largest value that has a bucket of its own size.
    pub const fn largest(self) -> u64 {
        (1 << LARGEST_BITS) - 1
    }

    /// How many buckets there are.
    pub const fn buckets(self) -> usize {
        ((LARGEST_BITS - self.precision_bits - 1) as usize * (1 << self.precision_bits))
            + (2 << self.precision_bits)
    }

    /// The shifts by which a value is halved until it fits the buckets of a power of two, each with
    /// the smallest value to be shifted: a binary search for the highest bit.
    fn shifts(self) -> [(i32, i32); 5] {
        [16, 8, 4, 2, 1].map(|by| (by, 1 << (self.precision_bits as i32 + by)))
    }

    /// The bucket of a value, as programs compute it.
    pub fn bucket_of(self, value: u64) -> usize {
        let mut value = value.min(self.largest());
        let mut shift = 0;
        for (by, from) in self.shifts() {
            if value >= from as u64 {
                value >>= by;
                shift += by as usize;
            }
        }
        (shift << self.precision_bits) + value as usize
    }

    /// The values that a bucket counts: the lowest, and how many of them.
    pub fn range_of(self, bucket: usize) -> (u64, u64) {
        let shift = (bucket >> self.precision_bits).saturating_sub(1);
        let value = bucket - (shift << self.precision_bits);
        ((value as u64) << shift, 1 << shift)
    }

    /// Writes the instructions for R1 = the bucket of R0, which they change.
    pub fn find_bucket(self, a: &mut Assembler) {
        let small = a.label();
        a.constant(Reg::R1, self.largest());
        a.jump_if(When::Below, Reg::R0, Reg::R1, small);
        a.alu(Alu::Move, Reg::R0, Reg::R1);
        a.place(small);
        // R1 = shift, then the bucket: (shift << precision) + (value >> shift)
        a.alu(Alu::Move, Reg::R1, 0);
        for (by, from) in self.shifts() {
            let stays = a.label();
            a.jump_if(When::Below, Reg::R0, from, stays);
            a.alu(Alu::ShiftRight, Reg::R0, by);
            a.alu(Alu::Add, Reg::R1, by);
            a.place(stays);
        }
        a.alu(Alu::ShiftLeft, Reg::R1, self.precision_bits as i32);
        a.alu(Alu::Add, Reg::R1, Reg::R0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_value_lies_in_its_bucket_and_buckets_touch() {
        for bits in [4, 7] {
            let histogram = LogLinear::new(bits);
            let mut expected_low = 0;
            for bucket in 0..histogram.buckets() {
                let (low, width) = histogram.range_of(bucket);
                assert_eq!(low, expected_low, "bucket {bucket}");
                assert_eq!(histogram.bucket_of(low), bucket);
                assert_eq!(histogram.bucket_of(low + width - 1), bucket);
                assert!(width == 1 || width << bits <= low, "bucket {bucket} is too wide");
                expected_low = low + width;
            }
            assert_eq!(expected_low, histogram.largest() + 1);
            assert_eq!(histogram.bucket_of(u64::MAX), histogram.buckets() - 1);
        }
    }
}
