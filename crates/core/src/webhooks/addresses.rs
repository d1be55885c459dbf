//! Which addresses are public unicast. Pure: the IANA special-purpose registries as a table.
//!
//! `IpAddr::is_global` is unstable and treats NAT64 as public; `ip_rfc` 0.1 is a copy of it from
//! 2020. A special block with a reachable part is refused as a whole. Of IPv6, only the allocated
//! range 2000::/3 is allowed. That excludes most addresses that embed another one
//! (`::ffff:10.0.0.1`, `::127.0.0.1`, `64:ff9b::a00:1`); those inside 2000::/3 (Teredo, 6to4) are
//! in the table.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use ipnet::{Ipv4Net, Ipv6Net};

const fn v4(a: u8, b: u8, c: u8, d: u8, prefix: u8) -> Ipv4Net {
    Ipv4Net::new_assert(Ipv4Addr::new(a, b, c, d), prefix)
}

const fn v6(a: u16, b: u16, prefix: u8) -> Ipv6Net {
    Ipv6Net::new_assert(Ipv6Addr::new(a, b, 0, 0, 0, 0, 0, 0), prefix)
}

/// IPv4 blocks that are not public.
const SPECIAL_V4: [Ipv4Net; 16] = [
    v4(0, 0, 0, 0, 8),        // this network
    v4(10, 0, 0, 0, 8),       // private
    v4(100, 64, 0, 0, 10),    // behind a carrier's NAT; some clouds' metadata
    v4(127, 0, 0, 0, 8),      // this machine
    v4(168, 63, 129, 16, 32), // public by its number, and a cloud's own service to the machines in it
    v4(169, 254, 0, 0, 16),   // link-local; most clouds' metadata
    v4(172, 16, 0, 0, 12),    // private
    v4(192, 0, 0, 0, 24),     // protocol assignments; a cloud's metadata
    v4(192, 0, 2, 0, 24),     // documentation
    v4(192, 88, 99, 0, 24),   // relays of 6to4
    v4(192, 168, 0, 0, 16),   // private
    v4(198, 18, 0, 0, 15),    // benchmarks
    v4(198, 51, 100, 0, 24),  // documentation
    v4(203, 0, 113, 0, 24),   // documentation
    v4(224, 0, 0, 0, 4),      // multicast
    v4(240, 0, 0, 0, 4),      // reserved, broadcast
];

/// The IPv6 range that may be public.
const UNICAST_V6: Ipv6Net = v6(0x2000, 0, 3);

/// IPv6 blocks in that range that are not public.
const SPECIAL_V6: [Ipv6Net; 4] = [
    v6(0x2001, 0, 23),      // protocol assignments: Teredo, benchmarks, ORCHID …
    v6(0x2001, 0x0db8, 32), // documentation
    v6(0x2002, 0, 16),      // 6to4
    v6(0x3fff, 0, 20),      // documentation
];

/// Whether an address is public unicast.
pub(super) fn is_public(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => !SPECIAL_V4.iter().any(|block| block.contains(&address)),
        IpAddr::V6(address) => {
            UNICAST_V6.contains(&address)
                && !SPECIAL_V6.iter().any(|block| block.contains(&address))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn public_addresses_are_public() {
        for address in [
            "8.8.8.8",
            "1.1.1.1",
            "93.184.216.34",
            "9.255.255.255",
            "11.0.0.0",
            "100.63.255.255",
            "100.128.0.0",
            "126.255.255.255",
            "128.0.0.0",
            "168.63.129.15",
            "169.253.255.255",
            "169.255.0.0",
            "172.15.255.255",
            "172.32.0.0",
            "191.255.255.255",
            "192.0.1.0",
            "192.0.3.0",
            "192.167.255.255",
            "192.169.0.0",
            "198.17.255.255",
            "198.20.0.0",
            "198.51.99.255",
            "203.0.114.0",
            "223.255.255.255",
            "2606:4700:4700::1111",
            "2a00:1450:4001:81b::200e",
            "2001:200::",
            "2001:4860:4860::8888",
            "2003::1",
            "2000::1",
            "3ffe:ffff::1",
        ] {
            assert!(is_public(address.parse().unwrap()), "{address}");
        }
    }

    #[test]
    fn special_addresses_are_not_public() {
        for address in [
            // IPv4: each block of the registry, its first and last.
            "0.0.0.0",
            "0.255.255.255",
            "10.0.0.0",
            "10.255.255.255",
            "100.64.0.0",
            "100.100.100.200",
            "100.127.255.255",
            "127.0.0.1",
            "127.255.255.255",
            "168.63.129.16",
            "169.254.0.0",
            "169.254.169.254",
            "169.254.255.255",
            "172.16.0.0",
            "172.31.255.255",
            "192.0.0.0",
            "192.0.0.9",
            "192.0.0.192",
            "192.0.0.255",
            "192.0.2.1",
            "192.88.99.1",
            "192.168.0.0",
            "192.168.255.255",
            "198.18.0.0",
            "198.19.255.255",
            "198.51.100.7",
            "203.0.113.7",
            "224.0.0.1",
            "239.255.255.255",
            "240.0.0.1",
            "255.255.255.255",
            // IPv6: unspecified, this machine, link-local, site-local, unique-local, multicast,
            // discard, documentation, benchmarks, ORCHID.
            "::",
            "::1",
            "fe80::1",
            "febf::1",
            "fec0::1",
            "fc00::1",
            "fd00:ec2::254",
            "fdff:ffff::1",
            "ff02::1",
            "ff0e::1",
            "100::1",
            "100:0:0:1::1",
            "2001:db8::1",
            "3fff::1",
            "3fff:fff::1",
            "2001:2::1",
            "2001:10::1",
            "2001:20::1",
            "5f00::1",
            "4000::1",
            "1fff::1",
            // IPv4 inside: mapped, translated, compatible, NAT64 with both prefixes, 6to4, Teredo;
            // also with a public one inside.
            "::ffff:127.0.0.1",
            "::ffff:10.0.0.1",
            "::ffff:8.8.8.8",
            "::ffff:0:10.0.0.1",
            "::127.0.0.1",
            "::8.8.8.8",
            "64:ff9b::7f00:1",
            "64:ff9b::808:808",
            "64:ff9b:1::a00:1",
            "2002:7f00:1::",
            "2002:a00:1::1",
            "2002:808:808::1",
            "2001:0:4136:e378::1",
        ] {
            assert!(!is_public(address.parse().unwrap()), "{address}");
        }
    }
}
