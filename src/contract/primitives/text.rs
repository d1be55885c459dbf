//! Values that are strings: codes, names, booking ids.

/// Declares a string type: its rule as a function, the same rule in words and as a schema, and how it is sent on. `complains`
/// may say more exactly what is wrong with a text.
macro_rules! text {
    (
        $(#[doc = $doc:literal])+
        pub struct $name:ident {
            allowed: $allowed:literal,
            accepts: $accepts:expr,
            $( complains: $complains:expr, )?
            forwards: $forwards:expr,
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

        impl $crate::contract::field::FieldValue for $name {
            fn allowed() -> std::borrow::Cow<'static, str> {
                $allowed.into()
            }

            fn read(value: &serde_json::Value) -> Result<Self, $crate::contract::fault::Faults> {
                let accepts: fn(&str) -> bool = $accepts;
                let text = value.as_str().filter(|text| accepts(text));
                $( if let Some(wrong) = value.as_str().filter(|text| !accepts(text)).and_then($complains) {
                    let allowed = format!("{}; {wrong}", Self::allowed());
                    return Err($crate::contract::fault::Fault::new("", value, allowed).into());
                } )?
                let text = text.ok_or_else(|| $crate::contract::field::refused::<Self>(value))?;
                Ok(Self($forwards(text)))
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

pub(crate) use text;

/// The longest free text and booking id, in characters (contract 9).
pub(crate) const MAX_TEXT_CHARS: usize = 300;
/// The shortest booking id: a letter, a slash, a letter (contract 9).
const MIN_BOOKING_ID_CHARS: usize = 3;

text! {
    /// An airport: three letters in any case, sent on in upper case (contract 8).
    pub struct Airport {
        allowed: "an IATA airport code of three letters, such as \"TLV\"",
        accepts: |text| letters(text, 3),
        forwards: str::to_ascii_uppercase,
        examples: ["TLV"],
        schema: { pattern: "^[A-Za-z]{3}$" },
    }
}

text! {
    /// A currency: three letters in any case, sent on as given (contract 8).
    pub struct Currency {
        allowed: "an ISO currency code of three letters, such as \"USD\"",
        accepts: |text| letters(text, 3),
        forwards: str::to_owned,
        examples: ["USD"],
        schema: { pattern: "^[A-Za-z]{3}$" },
    }
}

impl Currency {
    /// The documented default (specification 2.1, 2.5).
    #[must_use]
    pub fn usd() -> Self {
        Self("USD".to_owned())
    }
}

text! {
    /// The market that a price is looked at from: two letters, sent on as given (specification 2.5, contract 8).
    pub struct CountryCode {
        allowed: "a country code of two letters, such as \"de\"",
        accepts: |text| letters(text, 2),
        forwards: str::to_owned,
        examples: ["de"],
        schema: { pattern: "^[A-Za-z]{2}$" },
    }
}

text! {
    /// An airline: two or three letters or digits, sent on as given (contract 8).
    pub struct AirlineCode {
        allowed: "an airline code of two or three letters or digits, such as \"LY\"",
        accepts: |text| matches!(text.len(), 2 | 3) && text.bytes().all(|byte| byte.is_ascii_alphanumeric()),
        forwards: str::to_owned,
        examples: ["LY"],
        schema: { pattern: "^[A-Za-z0-9]{2,3}$" },
    }
}

text! {
    /// A place or hotel in the caller's words: 1 to 300 characters, no control characters (contract 9).
    pub struct FreeText {
        allowed: "text of 1 to 300 characters without control characters",
        accepts: |text| {
            (1..=MAX_TEXT_CHARS).contains(&text.chars().count()) && !text.chars().any(char::is_control)
        },
        forwards: str::to_owned,
        examples: ["Lisbon"],
        schema: {
            min_length: 1,
            max_length: MAX_TEXT_CHARS,
            pattern: r"^[^\u0000-\u001F\u007F-\u009F]*$",
        },
    }
}

text! {
    /// A path-style hotel id from resolve, which becomes part of a URL upstream: 3 to 300 visible ASCII characters
    /// with a `/` inside, without `..`, `//`, `?`, `#`, `\`, `%`, `@`, `:` (contract 9): nothing that could lead to another path or host.
    pub struct HotelBookingId {
        allowed: "a hotel id as resolve gives it, such as \"fr/grand-hotel\": 3 to 300 visible ASCII characters \
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
        forwards: str::to_owned,
        examples: ["fr/grand-hotel"],
        schema: {
            min_length: MIN_BOOKING_ID_CHARS,
            max_length: MAX_TEXT_CHARS,
            pattern: r#"^(?=.*/)(?!/)(?!.*\.\.)(?!.*//)[!"$&-9;->A-\[\]-~]+$"#,
        },
    }
}

fn letters(text: &str, count: usize) -> bool {
    text.len() == count && text.bytes().all(|byte| byte.is_ascii_alphabetic())
}
