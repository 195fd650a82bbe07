//! How long calls took, in few bytes: a histogram that can be written down and added to another.

use super::trends::Spread;

/// Eight buckets per doubling, so a percentile is off by an eighth at most; from a microsecond to ten hours.
const BUCKETS: usize = 256;
/// From a tenth of a millisecond to an hour.
const STEPS_MS: [f64; 24] = [
    0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0, 200.0, 500.0, 1e3, 2e3, 5e3, 10e3, 20e3,
    30e3, 60e3, 120e3, 300e3, 600e3, 1800e3, 3600e3,
];

/// Counts of times, by their length.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Histogram {
    counts: Box<[u32; BUCKETS]>,
}

impl Default for Histogram {
    fn default() -> Histogram {
        Histogram {
            counts: Box::new([0; BUCKETS]),
        }
    }
}

impl Histogram {
    pub fn add(&mut self, micros: u64) {
        let count = &mut self.counts[bucket(micros)];
        *count = count.saturating_add(1);
    }

    pub fn merge(&mut self, other: &Histogram) {
        for (mine, theirs) in self.counts.iter_mut().zip(other.counts.iter()) {
            *mine = mine.saturating_add(*theirs);
        }
    }

    pub fn count(&self) -> u64 {
        self.counts.iter().map(|count| u64::from(*count)).sum()
    }

    /// So large a share of the times was at most this long, in milliseconds. None if there are none.
    pub fn percentile(&self, share: f64) -> Option<f64> {
        let total = self.count();
        if total == 0 {
            return None;
        }
        let rank = (total as f64 * share).ceil().max(1.0) as u64;
        let mut seen = 0;
        let found = self.counts.iter().position(|count| {
            seen += u64::from(*count);
            seen >= rank
        });
        Some(bucket_end(found.unwrap_or(BUCKETS - 1)) as f64 / 1e3)
    }

    /// By steps that people read: 1, 2, 5, 10 … Those at either end that have none are left out.
    pub(super) fn spread(&self) -> Vec<Spread> {
        let mut steps: Vec<Spread> = STEPS_MS
            .into_iter()
            .map(|up_to_ms| Spread { up_to_ms, calls: 0 })
            .collect();
        for (index, count) in self
            .counts
            .iter()
            .enumerate()
            .filter(|(_, count)| **count > 0)
        {
            // By the middle of the bucket: its end may lie beyond the step that nearly all of it is in.
            let start = index.checked_sub(1).map_or(0, bucket_end);
            let middle_ms = (start + bucket_end(index)) as f64 / 2e3;
            let step = steps.iter_mut().find(|step| middle_ms <= step.up_to_ms);
            if let Some(step) = step {
                step.calls += u64::from(*count);
            } else if let Some(last) = steps.last_mut() {
                last.calls += u64::from(*count);
            }
        }
        let used = |step: &Spread| step.calls > 0;
        let (first, last) = (steps.iter().position(used), steps.iter().rposition(used));
        match (first, last) {
            (Some(first), Some(last)) => steps[first..=last].to_vec(),
            _ => Vec::new(),
        }
    }

    /// Most buckets are empty: each that is not is its distance from the one before, and its count.
    pub(super) fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        let mut last = 0;
        for (index, count) in self.counts.iter().enumerate() {
            if *count > 0 {
                put(&mut bytes, (index - last) as u32);
                put(&mut bytes, *count);
                last = index;
            }
        }
        bytes
    }

    /// What cannot be read is left out: a wrong byte costs a percentile, not the page.
    pub(super) fn from_bytes(mut bytes: &[u8]) -> Histogram {
        let mut histogram = Histogram::default();
        let mut index = 0usize;
        while let (Some(step), Some(count)) = (get(&mut bytes), get(&mut bytes)) {
            index = index.saturating_add(step as usize);
            if let Some(slot) = histogram.counts.get_mut(index) {
                *slot = slot.saturating_add(count);
            }
        }
        histogram
    }
}

fn bucket(micros: u64) -> usize {
    if micros < 8 {
        return micros as usize;
    }
    let exponent = 63 - micros.leading_zeros();
    let step = (micros >> (exponent - 3)) & 7;
    let index = (exponent as usize - 2) * 8 + step as usize;
    index.min(BUCKETS - 1)
}

/// The upper end of a bucket, in microseconds.
fn bucket_end(index: usize) -> u64 {
    match index {
        0..8 => index as u64 + 1,
        _ => (9 + (index as u64 & 7)) << (index / 8 - 1),
    }
}

/// Seven bits a byte, the lowest first.
fn put(bytes: &mut Vec<u8>, mut number: u32) {
    while number >= 0x80 {
        bytes.push(number as u8 | 0x80);
        number >>= 7;
    }
    bytes.push(number as u8);
}

fn get(bytes: &mut &[u8]) -> Option<u32> {
    let mut number = 0u32;
    for shift in (0..35).step_by(7) {
        let (first, rest) = bytes.split_first()?;
        *bytes = rest;
        number |= u32::from(first & 0x7f).checked_shl(shift).unwrap_or(0);
        if first & 0x80 == 0 {
            return Some(number);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_lies_in_its_bucket_and_the_bucket_is_an_eighth_wide_at_most() {
        for micros in (0..33u32).flat_map(|bits| [0, 1, 3, 7].map(|extra| (1u64 << bits) + extra)) {
            let index = bucket(micros);
            let end = bucket_end(index);
            let start = index.checked_sub(1).map_or(0, bucket_end);
            assert!(
                start <= micros && micros < end,
                "{micros} in {start}..{end}"
            );
            assert!(index < 8 || (end - start) * 8 <= start, "{start}..{end}");
        }
    }

    #[test]
    fn what_is_written_is_read_again_and_nonsense_is_survived() {
        let mut histogram = Histogram::default();
        for micros in [0, 7, 900, 900, 1_000_000, u64::MAX] {
            histogram.add(micros);
        }
        let bytes = histogram.to_bytes();
        assert_eq!(Histogram::from_bytes(&bytes), histogram);
        assert_eq!(Histogram::from_bytes(&[]).percentile(0.5), None);
        Histogram::from_bytes(&[0xff; 64]);
        Histogram::from_bytes(&bytes[..bytes.len() - 1]);
    }

    #[test]
    fn percentiles_are_those_of_both_when_merged() {
        let (mut slow, mut fast) = (Histogram::default(), Histogram::default());
        (0..10).for_each(|_| slow.add(1_000_000));
        (0..90).for_each(|_| fast.add(1_000));
        slow.merge(&fast);
        let near = |ms: f64, wanted: f64| (ms - wanted).abs() <= wanted / 8.0;
        assert!(near(slow.percentile(0.5).unwrap(), 1.0));
        assert!(near(slow.percentile(0.95).unwrap(), 1000.0));
    }
}
