//! Real airports: code, name, city, country, position, time zone.
//!
//! Local time is standard time all year, which is enough for plausible timetables. The fictional
//! airports of the magic values ([`crate::magic_values`]) are in the Atlantic.

/// One airport. Latitude and longitude in degrees, `utc_minutes` the local standard time's offset.
#[derive(Debug)]
pub(crate) struct SandboxAirport {
    pub(crate) code: &'static str,
    pub(crate) name: &'static str,
    pub(crate) city: &'static str,
    /// ISO 3166, lower-case.
    pub(crate) country: &'static str,
    pub(crate) latitude: f64,
    pub(crate) longitude: f64,
    pub(crate) utc_minutes: i64,
}

impl SandboxAirport {
    /// The airport of an IATA code in any letter case.
    pub(crate) fn find(code: &str) -> Option<&'static Self> {
        AIRPORTS
            .iter()
            .chain(FICTIONAL)
            .find(|airport| airport.code.eq_ignore_ascii_case(code))
    }

    /// `City (IATA)`, the form of gateway.md, rule 25.
    pub(crate) fn display(&self) -> String {
        format!("{} ({})", self.city, self.code)
    }

    /// Great-circle distance in kilometres.
    pub(crate) fn kilometres_to(&self, other: &Self) -> f64 {
        let (lat_a, lat_b) = (self.latitude.to_radians(), other.latitude.to_radians());
        let (half_lat, half_lon) = (
            (lat_b - lat_a) / 2.0,
            (other.longitude - self.longitude).to_radians() / 2.0,
        );
        let chord = half_lat.sin().powi(2) + lat_a.cos() * lat_b.cos() * half_lon.sin().powi(2);
        2.0 * 6_371.0 * chord.sqrt().min(1.0).asin()
    }

    /// The low-cost region of this airport.
    pub(crate) fn region(&self) -> Region {
        match (self.latitude, self.longitude) {
            (28.0..=72.0, -32.0..=45.0) => Region::Europe,
            (7.0..=72.0, -170.0..=-50.0) => Region::NorthAmerica,
            (-60.0..=13.0, -95.0..=-30.0) => Region::SouthAmerica,
            (-12.0..=46.0, 92.0..=146.0) => Region::EastAsia,
            (-48.0..=-10.0, 110.0..=180.0) => Region::Oceania,
            (5.0..=36.0, 45.0..=92.0) => Region::SouthAsia,
            _ => Region::Elsewhere,
        }
    }
}

/// A region of low-cost airlines. Europe includes the whole Mediterranean.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Region {
    Europe,
    NorthAmerica,
    SouthAmerica,
    EastAsia,
    SouthAsia,
    Oceania,
    Elsewhere,
}

const fn airport(
    (code, name, city, country): (&'static str, &'static str, &'static str, &'static str),
    (latitude, longitude): (f64, f64),
    utc_hours: f64,
) -> SandboxAirport {
    #[expect(clippy::cast_possible_truncation, reason = "offsets lie within a day")]
    let utc_minutes = (utc_hours * 60.0) as i64;
    SandboxAirport {
        code,
        name,
        city,
        country,
        latitude,
        longitude,
        utc_minutes,
    }
}

/// Airports of the magic values, each on an invented island, so that a distance gives it a price.
const FICTIONAL: &[SandboxAirport] = &[
    airport(
        ("ZZE", "Nowhere Field", "Empty Island", "zz"),
        (38.7, -27.1),
        -1.0,
    ),
    airport(
        ("ZZP", "Half Moon", "Partial Island", "zz"),
        (38.7, -27.1),
        -1.0,
    ),
    airport(
        ("ZZD", "Fog Bay", "Degraded Island", "zz"),
        (38.7, -27.1),
        -1.0,
    ),
    airport(
        ("ZZR", "Second Try", "Recovering Island", "zz"),
        (38.7, -27.1),
        -1.0,
    ),
    airport(
        ("ZZS", "Stumble Head", "Stumbling Island", "zz"),
        (38.7, -27.1),
        -1.0,
    ),
    airport(
        ("ZZX", "Closed Port", "Failing Island", "zz"),
        (38.7, -27.1),
        -1.0,
    ),
    airport(
        ("ZZT", "Long Wait", "Hanging Island", "zz"),
        (38.7, -27.1),
        -1.0,
    ),
    airport(
        ("ZZG", "Babble Rock", "Garbage Island", "zz"),
        (38.7, -27.1),
        -1.0,
    ),
    airport(
        ("ZZQ", "Narrow Strait", "Quota Island", "zz"),
        (38.7, -27.1),
        -1.0,
    ),
];

#[rustfmt::skip]
pub(crate) const AIRPORTS: &[SandboxAirport] = &[
    // Europe and the Mediterranean
    airport(("LHR", "London Heathrow", "London", "gb"), (51.470, -0.454), 0.0),
    airport(("LGW", "London Gatwick", "London", "gb"), (51.148, -0.190), 0.0),
    airport(("STN", "London Stansted", "London", "gb"), (51.885, 0.235), 0.0),
    airport(("LTN", "London Luton", "London", "gb"), (51.875, -0.368), 0.0),
    airport(("LCY", "London City", "London", "gb"), (51.505, 0.055), 0.0),
    airport(("MAN", "Manchester", "Manchester", "gb"), (53.354, -2.275), 0.0),
    airport(("EDI", "Edinburgh", "Edinburgh", "gb"), (55.950, -3.373), 0.0),
    airport(("DUB", "Dublin", "Dublin", "ie"), (53.421, -6.270), 0.0),
    airport(("KEF", "Keflavik", "Reykjavik", "is"), (63.985, -22.606), 0.0),
    airport(("CDG", "Paris Charles de Gaulle", "Paris", "fr"), (49.010, 2.548), 1.0),
    airport(("ORY", "Paris Orly", "Paris", "fr"), (48.723, 2.379), 1.0),
    airport(("NCE", "Nice Cote d'Azur", "Nice", "fr"), (43.658, 7.216), 1.0),
    airport(("LYS", "Lyon Saint-Exupery", "Lyon", "fr"), (45.726, 5.081), 1.0),
    airport(("MRS", "Marseille Provence", "Marseille", "fr"), (43.437, 5.215), 1.0),
    airport(("AMS", "Amsterdam Schiphol", "Amsterdam", "nl"), (52.309, 4.764), 1.0),
    airport(("BRU", "Brussels", "Brussels", "be"), (50.901, 4.484), 1.0),
    airport(("FRA", "Frankfurt", "Frankfurt", "de"), (50.033, 8.571), 1.0),
    airport(("MUC", "Munich", "Munich", "de"), (48.354, 11.786), 1.0),
    airport(("BER", "Berlin Brandenburg", "Berlin", "de"), (52.367, 13.503), 1.0),
    airport(("HAM", "Hamburg", "Hamburg", "de"), (53.630, 9.988), 1.0),
    airport(("DUS", "Dusseldorf", "Dusseldorf", "de"), (51.289, 6.767), 1.0),
    airport(("ZRH", "Zurich", "Zurich", "ch"), (47.458, 8.556), 1.0),
    airport(("GVA", "Geneva", "Geneva", "ch"), (46.238, 6.109), 1.0),
    airport(("VIE", "Vienna", "Vienna", "at"), (48.110, 16.570), 1.0),
    airport(("PRG", "Prague Vaclav Havel", "Prague", "cz"), (50.101, 14.260), 1.0),
    airport(("BUD", "Budapest Ferenc Liszt", "Budapest", "hu"), (47.439, 19.262), 1.0),
    airport(("WAW", "Warsaw Chopin", "Warsaw", "pl"), (52.166, 20.967), 1.0),
    airport(("KRK", "Krakow John Paul II", "Krakow", "pl"), (50.078, 19.785), 1.0),
    airport(("CPH", "Copenhagen", "Copenhagen", "dk"), (55.618, 12.656), 1.0),
    airport(("ARN", "Stockholm Arlanda", "Stockholm", "se"), (59.652, 17.919), 1.0),
    airport(("OSL", "Oslo Gardermoen", "Oslo", "no"), (60.194, 11.100), 1.0),
    airport(("BGO", "Bergen Flesland", "Bergen", "no"), (60.293, 5.218), 1.0),
    airport(("HEL", "Helsinki Vantaa", "Helsinki", "fi"), (60.317, 24.963), 2.0),
    airport(("RIX", "Riga", "Riga", "lv"), (56.924, 23.971), 2.0),
    airport(("MAD", "Madrid Barajas", "Madrid", "es"), (40.472, -3.561), 1.0),
    airport(("BCN", "Barcelona El Prat", "Barcelona", "es"), (41.297, 2.078), 1.0),
    airport(("AGP", "Malaga Costa del Sol", "Malaga", "es"), (36.675, -4.499), 1.0),
    airport(("PMI", "Palma de Mallorca", "Palma de Mallorca", "es"), (39.552, 2.739), 1.0),
    airport(("VLC", "Valencia", "Valencia", "es"), (39.489, -0.482), 1.0),
    airport(("LIS", "Lisbon Humberto Delgado", "Lisbon", "pt"), (38.774, -9.134), 0.0),
    airport(("OPO", "Porto", "Porto", "pt"), (41.248, -8.681), 0.0),
    airport(("FAO", "Faro", "Faro", "pt"), (37.014, -7.966), 0.0),
    airport(("FCO", "Rome Fiumicino", "Rome", "it"), (41.800, 12.239), 1.0),
    airport(("MXP", "Milan Malpensa", "Milan", "it"), (45.630, 8.728), 1.0),
    airport(("VCE", "Venice Marco Polo", "Venice", "it"), (45.505, 12.352), 1.0),
    airport(("NAP", "Naples", "Naples", "it"), (40.886, 14.291), 1.0),
    airport(("CTA", "Catania Fontanarossa", "Catania", "it"), (37.467, 15.066), 1.0),
    airport(("MLA", "Malta", "Valletta", "mt"), (35.858, 14.478), 1.0),
    airport(("ATH", "Athens Eleftherios Venizelos", "Athens", "gr"), (37.936, 23.944), 2.0),
    airport(("SKG", "Thessaloniki", "Thessaloniki", "gr"), (40.520, 22.971), 2.0),
    airport(("HER", "Heraklion", "Heraklion", "gr"), (35.340, 25.180), 2.0),
    airport(("LCA", "Larnaca", "Larnaca", "cy"), (34.875, 33.625), 2.0),
    airport(("OTP", "Bucharest Henri Coanda", "Bucharest", "ro"), (44.571, 26.085), 2.0),
    airport(("SOF", "Sofia", "Sofia", "bg"), (42.697, 23.411), 2.0),
    airport(("BEG", "Belgrade Nikola Tesla", "Belgrade", "rs"), (44.818, 20.309), 1.0),
    airport(("ZAG", "Zagreb", "Zagreb", "hr"), (45.743, 16.069), 1.0),
    airport(("DBV", "Dubrovnik", "Dubrovnik", "hr"), (42.561, 18.268), 1.0),
    airport(("IST", "Istanbul", "Istanbul", "tr"), (41.262, 28.743), 3.0),
    airport(("SAW", "Istanbul Sabiha Gokcen", "Istanbul", "tr"), (40.899, 29.309), 3.0),
    airport(("AYT", "Antalya", "Antalya", "tr"), (36.899, 30.800), 3.0),
    airport(("TBS", "Tbilisi", "Tbilisi", "ge"), (41.669, 44.955), 4.0),
    // Middle East and Africa
    airport(("TLV", "Tel Aviv Ben Gurion", "Tel Aviv", "il"), (32.011, 34.887), 2.0),
    airport(("ETM", "Eilat Ramon", "Eilat", "il"), (29.727, 35.011), 2.0),
    airport(("AMM", "Amman Queen Alia", "Amman", "jo"), (31.723, 35.993), 3.0),
    airport(("CAI", "Cairo", "Cairo", "eg"), (30.122, 31.406), 2.0),
    airport(("DXB", "Dubai", "Dubai", "ae"), (25.253, 55.364), 4.0),
    airport(("AUH", "Abu Dhabi Zayed", "Abu Dhabi", "ae"), (24.433, 54.651), 4.0),
    airport(("DOH", "Doha Hamad", "Doha", "qa"), (25.273, 51.608), 3.0),
    airport(("RUH", "Riyadh King Khalid", "Riyadh", "sa"), (24.958, 46.699), 3.0),
    airport(("JED", "Jeddah King Abdulaziz", "Jeddah", "sa"), (21.680, 39.157), 3.0),
    airport(("CMN", "Casablanca Mohammed V", "Casablanca", "ma"), (33.368, -7.590), 1.0),
    airport(("RAK", "Marrakesh Menara", "Marrakesh", "ma"), (31.607, -8.036), 1.0),
    airport(("TUN", "Tunis Carthage", "Tunis", "tn"), (36.851, 10.227), 1.0),
    airport(("ADD", "Addis Ababa Bole", "Addis Ababa", "et"), (8.978, 38.799), 3.0),
    airport(("NBO", "Nairobi Jomo Kenyatta", "Nairobi", "ke"), (-1.319, 36.928), 3.0),
    airport(("LOS", "Lagos Murtala Muhammed", "Lagos", "ng"), (6.577, 3.321), 1.0),
    airport(("JNB", "Johannesburg O. R. Tambo", "Johannesburg", "za"), (-26.139, 28.246), 2.0),
    airport(("CPT", "Cape Town", "Cape Town", "za"), (-33.965, 18.602), 2.0),
    // North and Central America
    airport(("JFK", "New York John F. Kennedy", "New York", "us"), (40.640, -73.779), -5.0),
    airport(("EWR", "Newark Liberty", "New York", "us"), (40.692, -74.169), -5.0),
    airport(("LGA", "New York LaGuardia", "New York", "us"), (40.777, -73.873), -5.0),
    airport(("BOS", "Boston Logan", "Boston", "us"), (42.364, -71.005), -5.0),
    airport(("IAD", "Washington Dulles", "Washington", "us"), (38.944, -77.456), -5.0),
    airport(("PHL", "Philadelphia", "Philadelphia", "us"), (39.872, -75.241), -5.0),
    airport(("ATL", "Atlanta Hartsfield-Jackson", "Atlanta", "us"), (33.637, -84.428), -5.0),
    airport(("MIA", "Miami", "Miami", "us"), (25.793, -80.291), -5.0),
    airport(("MCO", "Orlando", "Orlando", "us"), (28.429, -81.309), -5.0),
    airport(("ORD", "Chicago O'Hare", "Chicago", "us"), (41.979, -87.905), -6.0),
    airport(("DTW", "Detroit Metropolitan", "Detroit", "us"), (42.212, -83.353), -5.0),
    airport(("MSP", "Minneapolis-Saint Paul", "Minneapolis", "us"), (44.882, -93.222), -6.0),
    airport(("DFW", "Dallas Fort Worth", "Dallas", "us"), (32.897, -97.038), -6.0),
    airport(("IAH", "Houston George Bush", "Houston", "us"), (29.984, -95.341), -6.0),
    airport(("DEN", "Denver", "Denver", "us"), (39.862, -104.673), -7.0),
    airport(("PHX", "Phoenix Sky Harbor", "Phoenix", "us"), (33.434, -112.012), -7.0),
    airport(("LAS", "Las Vegas Harry Reid", "Las Vegas", "us"), (36.084, -115.154), -8.0),
    airport(("LAX", "Los Angeles", "Los Angeles", "us"), (33.943, -118.408), -8.0),
    airport(("SFO", "San Francisco", "San Francisco", "us"), (37.619, -122.375), -8.0),
    airport(("SEA", "Seattle-Tacoma", "Seattle", "us"), (47.449, -122.309), -8.0),
    airport(("HNL", "Honolulu Daniel K. Inouye", "Honolulu", "us"), (21.319, -157.922), -10.0),
    airport(("YYZ", "Toronto Pearson", "Toronto", "ca"), (43.677, -79.631), -5.0),
    airport(("YUL", "Montreal Trudeau", "Montreal", "ca"), (45.471, -73.741), -5.0),
    airport(("YVR", "Vancouver", "Vancouver", "ca"), (49.194, -123.184), -8.0),
    airport(("MEX", "Mexico City Benito Juarez", "Mexico City", "mx"), (19.436, -99.072), -6.0),
    airport(("CUN", "Cancun", "Cancun", "mx"), (21.037, -86.877), -5.0),
    airport(("PTY", "Panama City Tocumen", "Panama City", "pa"), (9.071, -79.384), -5.0),
    // South America
    airport(("BOG", "Bogota El Dorado", "Bogota", "co"), (4.702, -74.147), -5.0),
    airport(("LIM", "Lima Jorge Chavez", "Lima", "pe"), (-12.022, -77.114), -5.0),
    airport(("SCL", "Santiago Arturo Merino Benitez", "Santiago", "cl"), (-33.393, -70.786), -4.0),
    airport(("EZE", "Buenos Aires Ezeiza", "Buenos Aires", "ar"), (-34.822, -58.536), -3.0),
    airport(("GRU", "Sao Paulo Guarulhos", "Sao Paulo", "br"), (-23.436, -46.473), -3.0),
    airport(("GIG", "Rio de Janeiro Galeao", "Rio de Janeiro", "br"), (-22.810, -43.251), -3.0),
    // Asia
    airport(("DEL", "Delhi Indira Gandhi", "Delhi", "in"), (28.567, 77.103), 5.5),
    airport(("BOM", "Mumbai Chhatrapati Shivaji", "Mumbai", "in"), (19.089, 72.868), 5.5),
    airport(("BLR", "Bengaluru Kempegowda", "Bengaluru", "in"), (13.198, 77.706), 5.5),
    airport(("CMB", "Colombo Bandaranaike", "Colombo", "lk"), (7.181, 79.884), 5.5),
    airport(("MLE", "Male Velana", "Male", "mv"), (4.192, 73.529), 5.0),
    airport(("BKK", "Bangkok Suvarnabhumi", "Bangkok", "th"), (13.681, 100.747), 7.0),
    airport(("HKT", "Phuket", "Phuket", "th"), (8.113, 98.317), 7.0),
    airport(("SGN", "Ho Chi Minh City Tan Son Nhat", "Ho Chi Minh City", "vn"), (10.819, 106.652), 7.0),
    airport(("HAN", "Hanoi Noi Bai", "Hanoi", "vn"), (21.221, 105.807), 7.0),
    airport(("KUL", "Kuala Lumpur", "Kuala Lumpur", "my"), (2.746, 101.710), 8.0),
    airport(("SIN", "Singapore Changi", "Singapore", "sg"), (1.359, 103.989), 8.0),
    airport(("CGK", "Jakarta Soekarno-Hatta", "Jakarta", "id"), (-6.126, 106.656), 7.0),
    airport(("DPS", "Bali Ngurah Rai", "Bali", "id"), (-8.748, 115.167), 8.0),
    airport(("MNL", "Manila Ninoy Aquino", "Manila", "ph"), (14.509, 121.020), 8.0),
    airport(("HKG", "Hong Kong", "Hong Kong", "hk"), (22.309, 113.915), 8.0),
    airport(("TPE", "Taipei Taoyuan", "Taipei", "tw"), (25.078, 121.233), 8.0),
    airport(("PVG", "Shanghai Pudong", "Shanghai", "cn"), (31.143, 121.805), 8.0),
    airport(("PEK", "Beijing Capital", "Beijing", "cn"), (40.080, 116.585), 8.0),
    airport(("ICN", "Seoul Incheon", "Seoul", "kr"), (37.469, 126.451), 9.0),
    airport(("NRT", "Tokyo Narita", "Tokyo", "jp"), (35.765, 140.386), 9.0),
    airport(("HND", "Tokyo Haneda", "Tokyo", "jp"), (35.552, 139.780), 9.0),
    airport(("KIX", "Osaka Kansai", "Osaka", "jp"), (34.427, 135.244), 9.0),
    // Oceania
    airport(("SYD", "Sydney Kingsford Smith", "Sydney", "au"), (-33.946, 151.177), 10.0),
    airport(("MEL", "Melbourne Tullamarine", "Melbourne", "au"), (-37.673, 144.843), 10.0),
    airport(("BNE", "Brisbane", "Brisbane", "au"), (-27.384, 153.118), 10.0),
    airport(("PER", "Perth", "Perth", "au"), (-31.940, 115.967), 8.0),
    airport(("AKL", "Auckland", "Auckland", "nz"), (-37.008, 174.792), 12.0),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_are_unique_and_well_formed() {
        let mut codes: Vec<_> = AIRPORTS
            .iter()
            .chain(FICTIONAL)
            .map(|airport| airport.code)
            .collect();
        assert!(AIRPORTS.len() >= 120, "{}", AIRPORTS.len());
        assert!(
            codes
                .iter()
                .all(|code| code.len() == 3 && code.bytes().all(|b| b.is_ascii_uppercase()))
        );
        codes.sort_unstable();
        let before = codes.len();
        codes.dedup();
        assert_eq!(codes.len(), before);
    }

    #[test]
    fn distances_are_great_circle_distances() {
        for (from, to, kilometres) in [
            ("TLV", "LHR", 3_590.0),
            ("LHR", "JFK", 5_540.0),
            ("SIN", "SYD", 6_300.0),
            ("SFO", "NRT", 8_230.0),
        ] {
            let distance = SandboxAirport::find(from)
                .expect(from)
                .kilometres_to(SandboxAirport::find(to).expect(to));
            assert!(
                (distance - kilometres).abs() / kilometres < 0.01,
                "{from}-{to}: {distance}"
            );
        }
    }

    #[test]
    fn a_code_is_found_in_any_case_with_its_display_form() {
        assert_eq!(
            SandboxAirport::find("tlv").expect("TLV").display(),
            "Tel Aviv (TLV)"
        );
        assert_eq!(
            SandboxAirport::find("ZZP").expect("ZZP").display(),
            "Partial Island (ZZP)"
        );
        assert!(SandboxAirport::find("QQQ").is_none());
    }
}
