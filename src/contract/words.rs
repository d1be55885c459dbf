//! Fixed vocabularies of the wire: states, endpoints, filters, error types.
//!
//! Here: the `words!` macro, which declares an enum together with its exact wire words, so that reading, writing,
//! listing and describing use one table. Not here: the vocabularies themselves.

/// A word that is not of the vocabulary; says which words are.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{held} is not one of {allowed}")]
pub struct UnknownWord {
    /// What was given, shortened.
    pub held: String,
    /// The words, as in "`low`, `high`".
    pub allowed: String,
}

/// Words as they are listed in messages: "`a`, `b`".
pub(crate) fn listed<'a>(words: impl IntoIterator<Item = &'a str>) -> String {
    let quoted: Vec<_> = words.into_iter().map(|word| format!("`{word}`")).collect();
    quoted.join(", ")
}

/// Declares an enum of wire words.
///
/// ```ignore
/// words! {
///     /// What became of it.
///     pub enum Fate {
///         /// It went well.
///         Good = "good",
///         /// It did not.
///         Bad = "bad",
///     }
/// }
/// ```
///
/// gives `Fate::ALL`, `as_str`, `parse`, `Display`, `FromStr`, serde as the word, a field type for bodies
/// (`FieldValue`: exact, faults list the words) and the `utoipa` schema.
macro_rules! words {
    (
        $(#[doc = $doc:literal])+
        pub enum $name:ident {
            $( $(#[doc = $word_doc:literal])+ $variant:ident = $word:literal, )+
        }
    ) => {
        $(#[doc = $doc])+
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum $name {
            $( $(#[doc = $word_doc])+ $variant, )+
        }

        impl $name {
            /// Every word, in the documented order.
            pub const ALL: &'static [Self] = &[$( Self::$variant ),+];

            /// The word on the wire.
            pub const fn as_str(self) -> &'static str {
                match self {
                    $( Self::$variant => $word, )+
                }
            }

            /// The value of a word; exact, `None` for any other text.
            pub fn parse(word: &str) -> Option<Self> {
                match word {
                    $( $word => Some(Self::$variant), )+
                    _ => None,
                }
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.pad(self.as_str())
            }
        }

        impl std::str::FromStr for $name {
            type Err = $crate::contract::words::UnknownWord;

            fn from_str(word: &str) -> Result<Self, Self::Err> {
                Self::parse(word).ok_or_else(|| $crate::contract::words::UnknownWord {
                    held: $crate::contract::fault::shorten(&format!("{word:?}")),
                    allowed: $crate::contract::words::listed([$( $word ),+]),
                })
            }
        }

        impl serde::Serialize for $name {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_str(self.as_str())
            }
        }

        impl<'de> serde::Deserialize<'de> for $name {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let word = std::borrow::Cow::<'de, str>::deserialize(deserializer)?;
                word.parse().map_err(serde::de::Error::custom)
            }
        }

        impl $crate::contract::field::FieldValue for $name {
            fn allowed() -> std::borrow::Cow<'static, str> {
                format!("one of {}", $crate::contract::words::listed([$( $word ),+])).into()
            }

            fn read(value: &serde_json::Value) -> Result<Self, $crate::contract::fault::Faults> {
                value
                    .as_str()
                    .and_then(Self::parse)
                    .ok_or_else(|| $crate::contract::field::refused::<Self>(value))
            }

            fn to_value(&self) -> serde_json::Value {
                self.as_str().into()
            }

            fn schema() -> utoipa::openapi::schema::Schema {
                utoipa::openapi::schema::ObjectBuilder::new()
                    .schema_type(utoipa::openapi::schema::Type::String)
                    .enum_values(Some([$( $word ),+]))
                    .description(Some(concat!($( $doc ),+).trim()))
                    .into()
            }
        }

        impl utoipa::PartialSchema for $name {
            fn schema() -> utoipa::openapi::RefOr<utoipa::openapi::schema::Schema> {
                <Self as $crate::contract::field::FieldValue>::schema().into()
            }
        }

        impl utoipa::ToSchema for $name {}
    };
}
pub(crate) use words;
