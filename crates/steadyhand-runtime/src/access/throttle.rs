//! Attempts to get in with wrong credentials: so many from one address and so many for one key, then a wait. Who has shown
//! the right ones is not held up by the mistakes of others.

use std::collections::HashMap;
use std::hash::Hash;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

use super::Digested;

/// Wrong credentials from one address, before it has to wait.
pub const WRONG_PER_ADDRESS_MAX: u32 = 100;
/// Between two more of them.
pub const WRONG_PER_ADDRESS_EVERY: Duration = Duration::from_secs(2);
/// Wrong secrets for one key, from all addresses, before whoever tries it has to wait.
pub const WRONG_PER_KEY_MAX: u32 = 20;
/// Between two more of them.
pub const WRONG_PER_KEY_EVERY: Duration = Duration::from_secs(6);
/// Addresses, and keys, that are remembered; the one whose wait ends first makes room.
pub const FOLLOWED_MAX: usize = 4096;
/// Credentials that were right, of which the digest is remembered.
pub const KNOWN_MAX: usize = 4096;
/// A made-up id of a key may be a book.
const KEY_ID_BYTES_MAX: usize = 32;

/// What was tried lately.
#[derive(Default)]
pub struct LoginThrottle(Mutex<Attempts>);

#[derive(Default)]
struct Attempts {
    addresses: HashMap<IpAddr, Bucket>,
    keys: HashMap<String, Bucket>,
    /// Credentials that were right, and when they were shown last.
    known: HashMap<[u8; 32], Instant>,
}

/// When the last mistake will be forgotten: one moment says how many there are.
#[derive(Clone, Copy)]
struct Bucket {
    empty_at: Instant,
}

impl Bucket {
    /// How long until there is room for one more mistake; nothing if there is now.
    fn wait(self, max: u32, every: Duration, now: Instant) -> Option<Duration> {
        let next = self.empty_at.max(now) + every;
        let wait = next.saturating_duration_since(now + every * max);
        (!wait.is_zero()).then_some(wait)
    }
}

impl LoginThrottle {
    /// Whether the credentials were right before: such are looked at whatever else was tried.
    pub fn knows(&self, shown: &Digested) -> bool {
        let mut attempts = self.attempts();
        let last = attempts.known.get_mut(&shown.0);
        last.map(|last| *last = Instant::now()).is_some()
    }

    /// How long this address has to wait before credentials of it are looked at; nothing if they are now.
    pub fn wait(&self, from: IpAddr) -> Option<Duration> {
        let now = Instant::now();
        let attempts = self.attempts();
        let bucket = attempts.addresses.get(&network_of(from))?;
        bucket.wait(WRONG_PER_ADDRESS_MAX, WRONG_PER_ADDRESS_EVERY, now)
    }

    /// The credentials were right.
    pub fn right(&self, shown: &Digested) {
        let now = Instant::now();
        let mut attempts = self.attempts();
        make_room(&mut attempts.known, KNOWN_MAX, &shown.0, |last| *last);
        attempts.known.insert(shown.0, now);
    }

    /// The credentials were wrong: how long to wait, if that was one mistake too many. `key` is the id of the key that
    /// they mean to be.
    pub fn wrong(&self, from: IpAddr, shown: &Digested, key: Option<&str>) -> Option<Duration> {
        let now = Instant::now();
        let mut attempts = self.attempts();
        attempts.known.remove(&shown.0);
        let by_address = count(
            &mut attempts.addresses,
            network_of(from),
            WRONG_PER_ADDRESS_MAX,
            WRONG_PER_ADDRESS_EVERY,
            now,
        );
        let by_key = key.and_then(|key| {
            let key: String = key.chars().take(KEY_ID_BYTES_MAX).collect();
            let keys = &mut attempts.keys;
            count(keys, key, WRONG_PER_KEY_MAX, WRONG_PER_KEY_EVERY, now)
        });
        by_address.max(by_key)
    }

    fn attempts(&self) -> MutexGuard<'_, Attempts> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Counts a mistake, if there is room for it.
fn count<K: Hash + Eq + Clone>(
    buckets: &mut HashMap<K, Bucket>,
    of: K,
    max: u32,
    every: Duration,
    now: Instant,
) -> Option<Duration> {
    make_room(buckets, FOLLOWED_MAX, &of, |bucket| bucket.empty_at);
    let bucket = buckets.entry(of).or_insert(Bucket { empty_at: now });
    let wait = bucket.wait(max, every, now);
    if wait.is_none() {
        bucket.empty_at = bucket.empty_at.max(now) + every;
    }
    wait
}

/// The entry with the earliest moment goes, where there is no room for one that is not there yet.
fn make_room<K: Hash + Eq + Clone, V>(
    entries: &mut HashMap<K, V>,
    max: usize,
    coming: &K,
    moment: impl Fn(&V) -> Instant,
) {
    if entries.len() < max || entries.contains_key(coming) {
        return;
    }
    let first = entries.iter().min_by_key(|(_, value)| moment(value));
    if let Some(first) = first.map(|(key, _)| key.clone()) {
        entries.remove(&first);
    }
}

/// Whoever has an address of IPv6 has all of its network.
fn network_of(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V4(address) => address.into(),
        IpAddr::V6(address) => {
            let [a, b, c, d, ..] = address.segments();
            Ipv6Addr::new(a, b, c, d, 0, 0, 0, 0).into()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(last: u8) -> IpAddr {
        IpAddr::from([192, 0, 2, last])
    }

    #[tokio::test(start_paused = true)]
    async fn an_address_waits_after_many_mistakes_and_others_do_not() {
        let throttle = LoginThrottle::default();
        let guess = |number: u32| Digested::of(&format!("guess {number}"));
        for number in 0..WRONG_PER_ADDRESS_MAX {
            assert_eq!(throttle.wait(address(1)), None);
            assert_eq!(throttle.wrong(address(1), &guess(number), None), None);
        }
        let wait = throttle.wait(address(1)).expect("a wait");
        assert!(wait <= WRONG_PER_ADDRESS_EVERY, "{wait:?}");
        assert!(throttle.wrong(address(1), &guess(1000), None).is_some());
        assert_eq!(throttle.wait(address(2)), None);
        tokio::time::advance(wait).await;
        assert_eq!(throttle.wait(address(1)), None);
    }

    #[tokio::test(start_paused = true)]
    async fn credentials_that_were_right_are_looked_at_wherever_they_come_from() {
        let throttle = LoginThrottle::default();
        let right = Digested::of("the right one");
        throttle.right(&right);
        for number in 0..2 * WRONG_PER_ADDRESS_MAX {
            let guess = Digested::of(&format!("guess {number}"));
            throttle.wrong(address(1), &guess, None);
        }
        assert!(throttle.wait(address(1)).is_some());
        assert!(throttle.knows(&right));
        throttle.wrong(address(1), &right, None);
        assert!(!throttle.knows(&right), "not any more");
    }

    #[tokio::test(start_paused = true)]
    async fn a_key_is_not_guessed_from_many_addresses() {
        let throttle = LoginThrottle::default();
        let guess = Digested::of("guess");
        for last in 0..WRONG_PER_KEY_MAX as u8 {
            assert_eq!(throttle.wrong(address(last), &guess, Some("a1")), None);
        }
        assert!(throttle.wrong(address(200), &guess, Some("a1")).is_some());
        assert_eq!(throttle.wrong(address(200), &guess, Some("b2")), None);
    }

    #[tokio::test(start_paused = true)]
    async fn what_is_remembered_of_attempts_has_a_bound() {
        let throttle = LoginThrottle::default();
        for number in 0..2 * FOLLOWED_MAX as u32 {
            let from = IpAddr::V6(Ipv6Addr::from(u128::from(number) << 64 | 0x2001 << 112));
            let guess = Digested::of(&number.to_string());
            throttle.wrong(from, &guess, Some(&format!("{number}{}", "x".repeat(1000))));
            throttle.right(&guess);
        }
        let attempts = throttle.attempts();
        assert_eq!(attempts.addresses.len(), FOLLOWED_MAX);
        assert_eq!(attempts.keys.len(), FOLLOWED_MAX);
        assert_eq!(attempts.known.len(), KNOWN_MAX);
        assert!(
            attempts
                .keys
                .keys()
                .all(|key| key.len() <= KEY_ID_BYTES_MAX)
        );
    }

    #[test]
    fn a_network_of_ipv6_is_one_address() {
        let parse = |text: &str| network_of(text.parse().expect("an address"));
        assert_eq!(parse("2001:db8::1"), parse("2001:db8::ffff:2"));
        assert_ne!(parse("2001:db8::1"), parse("2001:db8:0:1::1"));
        assert_eq!(parse("::ffff:192.0.2.1"), address(1));
    }
}
