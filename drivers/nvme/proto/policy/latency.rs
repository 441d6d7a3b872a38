// SPDX-License-Identifier: GPL-2.0

//! Buckets of a latency histogram.
//!
//! Two buckets divide each power of two, so a bucket determines a latency to within a third, and
//! shifts find the bucket. The first bucket is for latencies below 1.024 µs. The last is for those
//! of 34 s and more, which exceeds the timeout of a request.

/// Start of the second bucket in nanoseconds, as a power of two.
const FIRST: u32 = 10;

/// Start of the last bucket in nanoseconds, as a power of two.
const LAST: u32 = 35;

/// Number of buckets.
pub const BUCKETS: usize = 2 * (LAST - FIRST) as usize + 2;

/// Returns the bucket of a latency in nanoseconds, less than [`BUCKETS`].
#[inline]
pub fn bucket(ns: u64) -> usize {
    let Some(power) = ns.checked_ilog2().filter(|power| *power >= FIRST) else {
        return 0;
    };
    if power >= LAST {
        return BUCKETS.saturating_sub(1);
    }
    let upper_half = ns.wrapping_shr(power.saturating_sub(1)) & 1 != 0;
    let octave = power.saturating_sub(FIRST) as usize;
    let lower = octave.saturating_mul(2).saturating_add(1);
    if upper_half {
        lower.saturating_add(1)
    } else {
        lower
    }
}

/// Returns the latency in nanoseconds that those of a bucket are below; `None` for the last bucket,
/// and beyond.
pub fn limit(bucket: usize) -> Option<u64> {
    if bucket.saturating_add(1) >= BUCKETS {
        return None;
    }
    // 1, 3/2, 2, 3, 4 ... times 2^FIRST.
    let octave = u32::try_from(bucket.wrapping_shr(1)).ok()?;
    let half: u64 = if bucket & 1 == 0 { 2 } else { 3 };
    half.checked_shl(octave.checked_add(FIRST)?.checked_sub(1)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_are_half_powers_of_two() {
        let first: Vec<u64> = (0..5).map(|bucket| limit(bucket).unwrap()).collect();
        assert_eq!(first, [1024, 1536, 2048, 3072, 4096]);
        assert_eq!(limit(BUCKETS - 2), Some(1 << 35));
        assert_eq!(limit(BUCKETS - 1), None);
        assert_eq!(limit(usize::MAX), None);
    }

    #[test]
    fn a_time_is_below_the_limit_of_its_bucket_and_no_earlier_one() {
        for place in 0..BUCKETS - 1 {
            let limit = limit(place).unwrap();
            assert_eq!(bucket(limit - 1), place);
            assert_eq!(bucket(limit), place + 1);
        }
        assert_eq!(bucket(0), 0);
        assert_eq!(bucket(u64::MAX), BUCKETS - 1);
    }

    #[test]
    fn buckets_are_in_order() {
        let mut last = 0;
        for shift in 0..64 {
            for add in [0, 1, 2] {
                let found = bucket((1_u64 << shift).saturating_add(add << shift >> 2));
                assert!(found >= last && found < BUCKETS);
                last = found;
            }
        }
    }
}
