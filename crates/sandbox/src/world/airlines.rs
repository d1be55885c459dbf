//! Airlines: price levels, hubs and low-cost regions.

use super::airports::Region;

/// One airline.
#[derive(Debug)]
pub(crate) struct Airline {
    /// IATA code, upper-case.
    pub(crate) code: &'static str,
    pub(crate) name: &'static str,
    /// Airports where its flights start and its passengers change planes.
    pub(crate) hubs: &'static [&'static str],
    /// Its price relative to the route's level.
    pub(crate) level: f64,
    /// Set for a low-cost airline: it flies nonstop within this region and sells no connections.
    pub(crate) roams: Option<Region>,
}

const fn network(
    code: &'static str,
    name: &'static str,
    level: f64,
    hubs: &'static [&'static str],
) -> Airline {
    Airline {
        code,
        name,
        hubs,
        level,
        roams: None,
    }
}

const fn low_cost(
    code: &'static str,
    name: &'static str,
    level: f64,
    region: Region,
    hubs: &'static [&'static str],
) -> Airline {
    Airline {
        code,
        name,
        hubs,
        level,
        roams: Some(region),
    }
}

#[rustfmt::skip]
pub(crate) const AIRLINES: &[Airline] = &[
    network("LY", "El Al", 1.16, &["TLV"]),
    network("IZ", "Arkia", 0.97, &["TLV"]),
    network("6H", "Israir", 0.95, &["TLV"]),
    network("BA", "British Airways", 1.10, &["LHR", "LGW"]),
    network("VS", "Virgin Atlantic", 1.07, &["LHR"]),
    network("EI", "Aer Lingus", 0.96, &["DUB"]),
    network("AF", "Air France", 1.06, &["CDG"]),
    network("KL", "KLM", 1.05, &["AMS"]),
    network("LH", "Lufthansa", 1.07, &["FRA", "MUC"]),
    network("LX", "SWISS", 1.10, &["ZRH"]),
    network("OS", "Austrian", 1.00, &["VIE"]),
    network("SN", "Brussels Airlines", 0.98, &["BRU"]),
    network("SK", "SAS", 0.99, &["CPH", "ARN", "OSL"]),
    network("AY", "Finnair", 0.99, &["HEL"]),
    network("LO", "LOT", 0.94, &["WAW"]),
    network("FI", "Icelandair", 0.93, &["KEF"]),
    network("IB", "Iberia", 0.99, &["MAD"]),
    network("TP", "TAP Air Portugal", 0.93, &["LIS"]),
    network("AZ", "ITA Airways", 0.97, &["FCO"]),
    network("A3", "Aegean", 0.94, &["ATH"]),
    network("TK", "Turkish Airlines", 0.98, &["IST"]),
    network("MS", "Egyptair", 0.88, &["CAI"]),
    network("RJ", "Royal Jordanian", 0.91, &["AMM"]),
    network("EK", "Emirates", 1.12, &["DXB"]),
    network("QR", "Qatar Airways", 1.11, &["DOH"]),
    network("EY", "Etihad", 1.04, &["AUH"]),
    network("SV", "Saudia", 0.92, &["RUH", "JED"]),
    network("AT", "Royal Air Maroc", 0.92, &["CMN"]),
    network("ET", "Ethiopian", 0.90, &["ADD"]),
    network("KQ", "Kenya Airways", 0.93, &["NBO"]),
    network("SA", "South African Airways", 0.98, &["JNB"]),
    network("AA", "American", 1.03, &["DFW", "MIA", "PHL", "ORD"]),
    network("DL", "Delta", 1.08, &["ATL", "JFK", "DTW", "MSP", "SEA"]),
    network("UA", "United", 1.05, &["EWR", "ORD", "IAH", "DEN", "SFO", "IAD"]),
    network("AS", "Alaska", 0.98, &["SEA", "SFO"]),
    network("AC", "Air Canada", 1.01, &["YYZ", "YUL", "YVR"]),
    network("AM", "Aeromexico", 0.94, &["MEX"]),
    network("CM", "Copa", 0.97, &["PTY"]),
    network("AV", "Avianca", 0.91, &["BOG"]),
    network("LA", "LATAM", 0.97, &["SCL", "GRU", "LIM"]),
    network("AR", "Aerolineas Argentinas", 0.95, &["EZE"]),
    network("AI", "Air India", 0.90, &["DEL", "BOM"]),
    network("UL", "SriLankan", 0.91, &["CMB"]),
    network("TG", "Thai", 1.01, &["BKK"]),
    network("SQ", "Singapore Airlines", 1.14, &["SIN"]),
    network("MH", "Malaysia Airlines", 0.93, &["KUL"]),
    network("GA", "Garuda Indonesia", 0.97, &["CGK"]),
    network("VN", "Vietnam Airlines", 0.92, &["SGN", "HAN"]),
    network("PR", "Philippine Airlines", 0.93, &["MNL"]),
    network("CX", "Cathay Pacific", 1.09, &["HKG"]),
    network("BR", "EVA Air", 1.02, &["TPE"]),
    network("MU", "China Eastern", 0.85, &["PVG"]),
    network("CA", "Air China", 0.87, &["PEK"]),
    network("KE", "Korean Air", 1.06, &["ICN"]),
    network("JL", "Japan Airlines", 1.10, &["HND", "NRT", "KIX"]),
    network("NH", "ANA", 1.10, &["HND", "NRT"]),
    network("QF", "Qantas", 1.09, &["SYD", "MEL", "BNE", "PER"]),
    network("NZ", "Air New Zealand", 1.04, &["AKL"]),
    low_cost("FR", "Ryanair", 0.66, Region::Europe, &["STN", "DUB"]),
    low_cost("U2", "easyJet", 0.74, Region::Europe, &["LGW", "LTN", "GVA", "MXP"]),
    low_cost("W6", "Wizz Air", 0.68, Region::Europe, &["BUD", "LTN", "OTP"]),
    low_cost("VY", "Vueling", 0.75, Region::Europe, &["BCN"]),
    low_cost("PC", "Pegasus", 0.73, Region::Europe, &["SAW"]),
    low_cost("B6", "JetBlue", 0.86, Region::NorthAmerica, &["JFK", "BOS"]),
    low_cost("WN", "Southwest", 0.84, Region::NorthAmerica, &["DEN", "LAS", "PHX"]),
    low_cost("G3", "GOL", 0.78, Region::SouthAmerica, &["GRU"]),
    low_cost("AK", "AirAsia", 0.70, Region::EastAsia, &["KUL", "BKK"]),
    low_cost("6E", "IndiGo", 0.74, Region::SouthAsia, &["DEL", "BOM", "BLR"]),
    low_cost("JQ", "Jetstar", 0.76, Region::Oceania, &["SYD", "MEL"]),
];

#[cfg(test)]
mod tests {
    use super::super::airports::SandboxAirport;
    use super::*;

    #[test]
    fn every_hub_is_a_known_airport_and_codes_are_unique() {
        let mut seen = std::collections::HashSet::new();
        for airline in AIRLINES {
            assert!(seen.insert(airline.code), "{} twice", airline.code);
            for hub in airline.hubs {
                assert!(
                    SandboxAirport::find(hub).is_some(),
                    "{}: {hub}",
                    airline.code
                );
            }
        }
    }
}
