//! Countries and currencies by their names: from ISO 3166-1 and ISO 4217 (`farescan_contract::codes`),
//! and other names that people use.

use std::collections::HashMap;
use std::sync::LazyLock;

use farescan_contract::codes;

use crate::lexer::{Token, TokenKind, fold};

/// Names of countries beside those of ISO 3166-1, as words with blanks.
const OTHER_NAMES: [(&str, &str); 33] = [
    ("uk", "GB"),
    ("britain", "GB"),
    ("great britain", "GB"),
    ("england", "GB"),
    ("scotland", "GB"),
    ("wales", "GB"),
    ("usa", "US"),
    ("america", "US"),
    ("united states of america", "US"),
    ("emirates", "AE"),
    ("uae", "AE"),
    ("holland", "NL"),
    ("the netherlands", "NL"),
    ("russia", "RU"),
    ("korea", "KR"),
    ("south korea", "KR"),
    ("czech republic", "CZ"),
    ("turkey", "TR"),
    ("turkiye", "TR"),
    ("vietnam", "VN"),
    ("syria", "SY"),
    ("laos", "LA"),
    ("ivory coast", "CI"),
    ("macau", "MO"),
    ("brunei", "BN"),
    ("cape verde", "CV"),
    ("macedonia", "MK"),
    ("swaziland", "SZ"),
    ("burma", "MM"),
    ("east timor", "TL"),
    ("vatican", "VA"),
    ("congo kinshasa", "CD"),
    ("deutschland", "DE"),
];

/// Words for currencies beside their codes; the last part says which one is meant.
const CURRENCY_WORDS: [(&str, &str); 23] = [
    ("euro", "EUR"),
    ("euros", "EUR"),
    ("€", "EUR"),
    ("dollar", "USD"),
    ("dollars", "USD"),
    ("$", "USD"),
    ("pound", "GBP"),
    ("pounds", "GBP"),
    ("sterling", "GBP"),
    ("£", "GBP"),
    ("shekel", "ILS"),
    ("shekels", "ILS"),
    ("nis", "ILS"),
    ("₪", "ILS"),
    ("yen", "JPY"),
    ("¥", "JPY"),
    ("rupees", "INR"),
    ("₹", "INR"),
    ("francs", "CHF"),
    ("quid", "GBP"),
    ("bucks", "USD"),
    ("rs", "INR"),
    ("kc", "CZK"),
];

/// The code and name of each country, by its folded names.
static COUNTRIES: LazyLock<HashMap<String, &'static str>> = LazyLock::new(|| {
    let mut names = HashMap::new();
    for (code, three, name) in codes::countries() {
        let short = name.split(" (").next().unwrap_or(name);
        for key in [code, three, name, short] {
            names.entry(folded_words(key)).or_insert(code);
        }
    }
    for (name, code) in OTHER_NAMES {
        names.insert(name.to_owned(), code);
    }
    names
});

static CURRENCIES: LazyLock<HashMap<String, &'static str>> = LazyLock::new(|| {
    let codes = codes::currencies().map(|(code, _)| (code.to_ascii_lowercase(), code));
    let words = CURRENCY_WORDS
        .iter()
        .map(|(word, code)| ((*word).to_owned(), *code));
    codes.chain(words).collect()
});

/// Words folded, with one blank between them.
pub(crate) fn folded_words(text: &str) -> String {
    let parts = text.split(|c: char| !c.is_alphanumeric() && !"'’".contains(c));
    let words: Vec<_> = parts.map(fold).filter(|word| !word.is_empty()).collect();
    words.join(" ")
}

/// The code of the country with this folded name or code.
pub(crate) fn country(words: &str) -> Option<&'static str> {
    COUNTRIES.get(words).copied()
}

/// The name of a country.
pub fn country_name(code: &str) -> &'static str {
    let found = codes::countries().find(|(known, ..)| *known == code);
    found.map_or("", |(_, _, name)| name)
}

/// The code of the currency that a folded word or a sign names.
pub(crate) fn currency(word: &str) -> Option<&'static str> {
    CURRENCIES.get(word).copied()
}

/// The currency of a token: a code, a word or a sign.
pub(crate) fn currency_of(token: &Token) -> Option<&'static str> {
    match &token.kind {
        TokenKind::Word(word) => currency(word),
        TokenKind::Sign(sign) => currency(&sign.to_string()),
        _ => None,
    }
}

/// The name of a currency.
pub(crate) fn currency_name(code: &str) -> &'static str {
    let found = codes::currencies().find(|(known, _)| *known == code);
    found.map_or("", |(_, name)| name)
}

/// Names of countries that are like this one, with their likeness.
pub(crate) fn similar(words: &str) -> Vec<(f64, String, &'static str)> {
    let like = |name: &str| strsim::normalized_damerau_levenshtein(name, words);
    COUNTRIES
        .iter()
        .filter(|(name, _)| name.len() > 3)
        .map(|(name, code)| (like(name), name.clone(), *code))
        .collect()
}
