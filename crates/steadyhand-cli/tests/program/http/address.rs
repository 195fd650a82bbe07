//! Which addresses are public.

use std::net::IpAddr;

use proptest::prelude::*;
use steadyhand_runtime::net::address::{why_not_by_name, why_not_public};
use steadyhand_runtime::net::{Reach, Url};

fn why(address: &str) -> Option<&'static str> {
    why_not_public(address.parse().expect("an address"))
}

#[test]
fn public_addresses_are_public() {
    let public = [
        "1.1.1.1",
        "8.8.8.8",
        "93.184.216.34",
        "100.63.255.255",
        "100.128.0.0",
        "172.15.255.255",
        "172.32.0.0",
        "192.167.255.255",
        "198.17.255.255",
        "223.255.255.255",
        "2606:4700:4700::1111",
        "2a00:1450:4001::8a",
        "::ffff:8.8.8.8",
        "64:ff9b::8.8.8.8",
        "2002:808:808::1",
    ];
    for address in public {
        assert_eq!(why(address), None, "{address}");
    }
}

#[test]
fn all_others_say_what_they_are() {
    let others = [
        ("0.0.0.0", "an unspecified address"),
        ("0.1.2.3", "an unspecified address"),
        ("127.0.0.1", "a loopback address"),
        ("127.255.255.254", "a loopback address"),
        ("10.0.0.0", "a private address"),
        ("172.31.255.255", "a private address"),
        ("192.168.1.1", "a private address"),
        ("169.254.1.1", "a link-local address"),
        ("169.254.169.254", "a cloud metadata service"),
        ("100.100.100.200", "a cloud metadata service"),
        ("168.63.129.16", "a cloud metadata service"),
        ("192.0.0.192", "a cloud metadata service"),
        ("100.64.0.1", "an address of a provider's own network"),
        ("224.0.0.1", "a multicast address"),
        ("239.255.255.255", "a multicast address"),
        ("240.0.0.1", "a reserved address"),
        ("255.255.255.255", "a broadcast address"),
        ("192.0.2.1", "a reserved address"),
        ("198.19.0.1", "a reserved address"),
        ("::", "an unspecified address"),
        ("::1", "a loopback address"),
        ("::2", "an unspecified address"),
        ("::8.8.8.8", "a reserved address"),
        ("::127.0.0.1", "a loopback address"),
        ("::ffff:127.0.0.1", "a loopback address"),
        ("::ffff:169.254.169.254", "a cloud metadata service"),
        ("::ffff:0:10.0.0.1", "a private address"),
        ("64:ff9b::10.0.0.1", "a private address"),
        ("64:ff9b:1::8.8.8.8", "a reserved address"),
        ("2002:7f00:1::", "a loopback address"),
        ("2002:a9fe:a9fe::", "a cloud metadata service"),
        ("2001:0:4136:e378:8000:63bf:3fff:fdd2", "a tunnel address"),
        ("fd00:ec2::254", "a cloud metadata service"),
        ("fd20:ce::254", "a cloud metadata service"),
        ("fc00::1", "a private address"),
        ("fdff::1", "a private address"),
        ("fec0::1", "a private address"),
        ("fe80::1", "a link-local address"),
        ("febf::1", "a link-local address"),
        ("ff02::1", "a multicast address"),
        ("2001:db8::1", "a reserved address"),
        ("3fff::1", "a reserved address"),
        ("100::1", "a reserved address"),
        ("4000::1", "a reserved address"),
    ];
    for (address, expected) in others {
        assert_eq!(why(address), Some(expected), "{address}");
    }
}

#[test]
fn names_that_mean_this_machine_or_its_metadata_need_no_lookup() {
    let refused = [
        "localhost",
        "LocalHost.",
        "a.b.localhost",
        "metadata.google.internal",
        "metadata.google.internal.",
        "instance-data",
    ];
    for name in refused {
        assert!(why_not_by_name(name).is_some(), "{name}");
    }
    for name in [
        "localhost.example.com",
        "notlocalhost",
        "example.com",
        "metadata.example.com",
    ] {
        assert_eq!(why_not_by_name(name), None, "{name}");
    }
}

#[test]
fn a_host_of_the_configuration_is_meant_with_its_port() {
    let url = |text: &str| Url::parse(text).expect("a URL");
    let reach = Reach::public_only()
        .and(&url("http://10.0.0.1:8123/api"))
        .and(&url("http://inner.test/x"));
    for within in [
        "http://10.0.0.1:8123/other",
        "https://10.0.0.1:8123/",
        "http://inner.test/",
        "https://INNER.test./",
    ] {
        assert!(reach.covers(&url(within)), "{within}");
    }
    for outside in [
        "http://10.0.0.1/",
        "http://10.0.0.1:22/",
        "http://inner.test:8080/",
        "http://a.inner.test/",
        "http://10.0.0.2:8123/",
    ] {
        assert!(!reach.covers(&url(outside)), "{outside}");
    }
}

proptest! {
    #[test]
    fn an_ipv4_address_is_judged_alike_in_every_coat(bytes: [u8; 4]) {
        let [a, b, c, d] = bytes;
        let plain = why(&format!("{a}.{b}.{c}.{d}"));
        let mapped = why(&format!("::ffff:{a}.{b}.{c}.{d}"));
        let nat64 = why(&format!("64:ff9b::{a}.{b}.{c}.{d}"));
        let six_to_four = why(&format!("2002:{a:02x}{b:02x}:{c:02x}{d:02x}::1"));
        prop_assert_eq!(plain, mapped);
        prop_assert_eq!(plain, nat64);
        prop_assert_eq!(plain, six_to_four);
    }

    #[test]
    fn we_are_never_more_generous_than_the_standard_library(bytes: [u8; 4]) {
        let address = std::net::Ipv4Addr::from(bytes);
        let inner = address.is_private()
            || address.is_loopback()
            || address.is_link_local()
            || address.is_multicast()
            || address.is_broadcast()
            || address.is_documentation()
            || address.is_unspecified();
        if inner {
            prop_assert!(why_not_public(IpAddr::V4(address)).is_some());
        }
    }
}
