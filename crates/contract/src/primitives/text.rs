//! Values that are strings: codes, names, booking ids.

/// Declares a string type: its rule as a function, the same rule in words and as a schema, and how
/// `normalize` changes it for upstream. `explain` may describe an invalid text more exactly.
macro_rules! text_type {
    (
        $(#[doc = $doc:literal])+
        pub struct $name:ident {
            expected: $expected:literal,
            accepts: $accepts:expr,
            $( explain: $explain:expr, )?
            normalize: $normalize:expr,
            examples: $examples:expr,
            schema: { $( $schema:ident: $value:expr ),+ $(,)? },
        }
    ) => {
        $(#[doc = $doc])+
        #[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub struct $name(String);

        impl $name {
            /// The text, as it is sent upstream.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl $crate::field::FieldValue for $name {
            fn expected() -> std::borrow::Cow<'static, str> {
                $expected.into()
            }

            fn read(value: &serde_json::Value) -> Result<Self, $crate::validation::ValidationErrors> {
                let accepts: fn(&str) -> bool = $accepts;
                let text = value.as_str().filter(|text| accepts(text));
                $( if let Some(wrong) = value.as_str().filter(|text| !accepts(text)).and_then($explain) {
                    let expected = format!("{}; {wrong}", Self::expected());
                    return Err($crate::validation::ValidationError::new("", value, expected).into());
                } )?
                let text = text.ok_or_else(|| $crate::field::invalid_value::<Self>(value))?;
                Ok(Self($normalize(text)))
            }

            fn to_value(&self) -> serde_json::Value {
                self.0.as_str().into()
            }

            fn schema() -> utoipa::openapi::schema::Schema {
                utoipa::openapi::schema::ObjectBuilder::new()
                    .schema_type(utoipa::openapi::schema::Type::String)
                    .examples($examples)
                    $( .$schema(Some($value)) )+
                    .into()
            }
        }
    };
}

pub(crate) use text_type;

/// The longest URL of a receiver, in characters.
pub(crate) const MAX_URL_CHARS: usize = 2_000;

/// Whether a text is a name: of 1 to `most` characters, not spaces alone, and none a control character.
pub(crate) fn is_name(text: &str, most: usize) -> bool {
    (1..=most).contains(&text.chars().count())
        && !text.chars().any(char::is_control)
        && !text.trim().is_empty()
}

/// Whether a text is the URL of a receiver: http or https, without a user, a password or a fragment.
pub(crate) fn is_receiver(text: &str) -> bool {
    let visible = text.len() <= MAX_URL_CHARS && text.bytes().all(|byte| byte.is_ascii_graphic());
    visible
        && (text.starts_with("https://") || text.starts_with("http://"))
        && url::Url::parse(text).is_ok_and(|url| {
            url.has_host()
                && url.username().is_empty()
                && url.password().is_none()
                && url.fragment().is_none()
        })
}

/// The longest mail address and its longest local part, in characters (RFC 5321).
const MAX_ADDRESS_CHARS: usize = 254;
const MAX_LOCAL_CHARS: usize = 64;

/// Whether a text is one mail address at a domain: without quotes, comments, routes (`%`, `!`) or a
/// literal address of a host.
pub(crate) fn is_mail_address(text: &str) -> bool {
    let Some((local, domain)) = text.split_once('@') else {
        return false;
    };
    let is_atom = |part: &str| {
        let is_allowed =
            |byte: u8| byte.is_ascii_alphanumeric() || b"&'*+/=?^_`{|}~#$-".contains(&byte);
        !part.is_empty() && part.bytes().all(is_allowed)
    };
    let is_label = |label: &str| {
        (1..=63).contains(&label.len())
            && label
                .bytes()
                .all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
            && !label.starts_with('-')
            && !label.ends_with('-')
    };
    // A last label of digits would be the address of a host.
    let is_name = |last: &str| last.bytes().any(|byte| byte.is_ascii_alphabetic());
    text.len() <= MAX_ADDRESS_CHARS
        && local.len() <= MAX_LOCAL_CHARS
        && local.split('.').all(is_atom)
        && domain.split('.').all(is_label)
        && domain
            .rsplit_once('.')
            .is_some_and(|(_, last)| is_name(last))
}

/// The longest free text and booking id, in characters (gateway.md, rule 9).
pub(crate) const MAX_TEXT_CHARS: usize = 300;
/// The shortest booking id: a letter, a slash, a letter (gateway.md, rule 9).
const MIN_BOOKING_ID_CHARS: usize = 3;

text_type! {
    /// An airport: three letters in any case, sent upstream in upper case (gateway.md, rule 8).
    pub struct Airport {
        expected: "an IATA airport code of three letters, such as \"TLV\"",
        accepts: |text| is_letters(text, 3),
        normalize: str::to_ascii_uppercase,
        examples: ["TLV"],
        schema: { pattern: "^[A-Za-z]{3}$" },
    }
}

text_type! {
    /// A currency: three letters in any case, sent upstream as given (gateway.md, rule 8).
    pub struct Currency {
        expected: "an ISO currency code of three letters, such as \"USD\"",
        accepts: |text| is_letters(text, 3),
        normalize: str::to_owned,
        examples: ["USD"],
        schema: { pattern: "^[A-Za-z]{3}$" },
    }
}

impl Currency {
    /// The documented default (gateway.md, rules 23 and 27).
    pub fn usd() -> Self {
        Self("USD".to_owned())
    }
}

text_type! {
    /// The market of a price: two letters, sent upstream as given (gateway.md, rules 8 and 27).
    pub struct CountryCode {
        expected: "a country code of two letters, such as \"de\"",
        accepts: |text| is_letters(text, 2),
        normalize: str::to_owned,
        examples: ["de"],
        schema: { pattern: "^[A-Za-z]{2}$" },
    }
}

text_type! {
    /// An airline: two or three letters or digits, sent upstream as given (gateway.md, rule 8).
    pub struct AirlineCode {
        expected: "an airline code of two or three letters or digits, such as \"LY\"",
        accepts: |text| matches!(text.len(), 2 | 3) && text.bytes().all(|byte| byte.is_ascii_alphanumeric()),
        normalize: str::to_owned,
        examples: ["LY"],
        schema: { pattern: "^[A-Za-z0-9]{2,3}$" },
    }
}

text_type! {
    /// The free-text name of a place or hotel: 1 to 300 characters, no control characters
    /// (gateway.md, rule 9).
    pub struct FreeText {
        expected: "text of 1 to 300 characters without control characters",
        accepts: |text| {
            (1..=MAX_TEXT_CHARS).contains(&text.chars().count()) && !text.chars().any(char::is_control)
        },
        normalize: str::to_owned,
        examples: ["Lisbon"],
        schema: {
            min_length: 1,
            max_length: MAX_TEXT_CHARS,
            pattern: r"^[^\u0000-\u001F\u007F-\u009F]*$",
        },
    }
}

text_type! {
    /// A path-style hotel id from resolve, which becomes part of a URL upstream: 3 to 300 visible
    /// ASCII characters with a `/` inside, without `..`, `//`, `?`, `#`, `\`, `%`, `@`, `:`
    /// (gateway.md, rule 9), so that it cannot change the path or host.
    pub struct HotelBookingId {
        expected: "a hotel id as returned by resolve, such as \"fr/grand-hotel\": 3 to 300 visible ASCII characters \
                  with a \"/\" that is not the first, and without \"..\", \"//\", \"?\", \"#\", \"\\\", \"%\", \"@\", \":\"",
        accepts: |text| {
            (MIN_BOOKING_ID_CHARS..=MAX_TEXT_CHARS).contains(&text.len())
                && text.bytes().all(|byte| byte.is_ascii_graphic())
                && text.contains('/')
                && !text.starts_with('/')
                && !text.contains("..")
                && !text.contains("//")
                && !text.contains(['?', '#', '\\', '%', '@', ':'])
        },
        normalize: str::to_owned,
        examples: ["fr/grand-hotel"],
        schema: {
            min_length: MIN_BOOKING_ID_CHARS,
            max_length: MAX_TEXT_CHARS,
            pattern: r#"^(?=.*/)(?!/)(?!.*\.\.)(?!.*//)[!"$&-9;->A-\[\]-~]+$"#,
        },
    }
}

fn is_letters(text: &str, count: usize) -> bool {
    text.len() == count && text.bytes().all(|byte| byte.is_ascii_alphabetic())
}
