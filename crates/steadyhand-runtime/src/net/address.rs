//! Which addresses lie outside, and which belong to this machine, its network or its cloud provider.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Why an address is not one of the public internet; `None` when it is.
pub fn why_not_public(address: IpAddr) -> Option<&'static str> {
    match address {
        IpAddr::V4(address) => v4(address),
        IpAddr::V6(address) => v6(address),
    }
}

/// Why a host may not be asked for by name, whatever it resolves to.
pub fn why_not_by_name(host: &str) -> Option<&'static str> {
    const METADATA: [&str; 5] = [
        "metadata.google.internal",
        "metadata.goog",
        "metadata",
        "instance-data",
        "instance-data.ec2.internal",
    ];
    let host = host.trim_end_matches('.').to_ascii_lowercase();
    if METADATA.contains(&host.as_str()) {
        return Some("a cloud metadata service");
    }
    // RFC 6761: these names mean this machine, also where a resolver says otherwise.
    if host == "localhost" || host.ends_with(".localhost") {
        return Some("this machine");
    }
    None
}

fn v4(address: Ipv4Addr) -> Option<&'static str> {
    let bytes = address.octets();
    match bytes {
        // 168.63.129.16 is Azure's own, reachable from inside a machine there only.
        [169, 254, 169, 254] | [100, 100, 100, 200] | [168, 63, 129, 16] | [192, 0, 0, 192] => {
            Some("a cloud metadata service")
        }
        [0, ..] => Some("an unspecified address"),
        [127, ..] => Some("a loopback address"),
        [10, ..] | [172, 16..=31, ..] | [192, 168, ..] => Some("a private address"),
        [169, 254, ..] => Some("a link-local address"),
        [100, 64..=127, ..] => Some("an address of a provider's own network"),
        [224..=239, ..] => Some("a multicast address"),
        [255, 255, 255, 255] => Some("a broadcast address"),
        [240..=255, ..]
        | [192, 0, 0, _]
        | [192, 0, 2, _]
        | [192, 88, 99, _]
        | [198, 18..=19, ..]
        | [198, 51, 100, _]
        | [203, 0, 113, _] => Some("a reserved address"),
        _ => None,
    }
}

fn v6(address: Ipv6Addr) -> Option<&'static str> {
    let parts = address.segments();
    match parts {
        [0, 0, 0, 0, 0, 0, 0, 0] => Some("an unspecified address"),
        [0, 0, 0, 0, 0, 0, 0, 1] => Some("a loopback address"),
        // IPv4 in a coat: mapped (::ffff:a.b.c.d), translated (::ffff:0:a.b.c.d), NAT64 (64:ff9b::).
        [0, 0, 0, 0, 0, 0xffff, high, low]
        | [0, 0, 0, 0, 0xffff, 0, high, low]
        | [0x64, 0xff9b, 0, 0, 0, 0, high, low] => v4(embedded(high, low)),
        // Compatible (::a.b.c.d): long dead, so only ever a disguise.
        [0, 0, 0, 0, 0, 0, high, low] => v4(embedded(high, low)).or(Some("a reserved address")),
        // 6to4.
        [0x2002, high, low, ..] => v4(embedded(high, low)),
        // Teredo tunnels to an IPv4 address of anyone's choice.
        [0x2001, 0, ..] => Some("a tunnel address"),
        [0xfd00, 0x0ec2, 0, 0, 0, 0, 0, 0x254] | [0xfd20, 0xce, 0, 0, 0, 0, 0, 0x254] => {
            Some("a cloud metadata service")
        }
        [0xfc00..=0xfdff, ..] | [0xfec0..=0xfeff, ..] => Some("a private address"),
        [0xfe80..=0xfebf, ..] => Some("a link-local address"),
        [0xff00..=0xffff, ..] => Some("a multicast address"),
        [0x2001, 0xdb8, ..] | [0x3fff, 0..=0xfff, ..] | [0x2001, 0x1..=0x1ff, ..] => {
            Some("a reserved address")
        }
        // 2000::/3 is all the unicast space that has been given out.
        [0x2000..=0x3fff, ..] => None,
        _ => Some("a reserved address"),
    }
}

fn embedded(high: u16, low: u16) -> Ipv4Addr {
    let [a, b] = high.to_be_bytes();
    let [c, d] = low.to_be_bytes();
    Ipv4Addr::new(a, b, c, d)
}
