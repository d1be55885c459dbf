//! Enums whose values are fixed strings in JSON: states, endpoints, filters, error types.
//!
//! Here: the `string_enum!` macro, which declares an enum together with its exact strings, so that
//! parsing, writing, listing and the schema use one table. Not here: the enums themselves.

/// A string that is not a value of the enum.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{found} is not one of {expected}")]
pub struct UnknownVariant {
    /// The given string, shortened.
    pub found: String,
    /// The valid strings, as in "`low`, `high`".
    pub expected: String,
}

/// A list for messages: "`a`, `b`".
pub fn quoted_list<'a>(words: impl IntoIterator<Item = &'a str>) -> String {
    let quoted: Vec<_> = words.into_iter().map(|word| format!("`{word}`")).collect();
    quoted.join(", ")
}

/// Declares an enum whose values are strings in JSON.
///
/// ```ignore
/// string_enum! {
///     /// The result of a job.
///     pub enum JobResult {
///         /// It succeeded.
///         Succeeded = "succeeded",
///         /// It failed.
///         Failed = "failed",
///     }
/// }
/// ```
///
/// generates `JobResult::ALL`, `as_str`, `parse`, `Display`, `FromStr`, serde as the string,
/// `FieldValue` (case-sensitive; errors list the strings), the `utoipa` schema, and decoding of a
/// database column with the string.
#[macro_export]
macro_rules! string_enum {
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
            /// Every value, in the documented order.
            pub const ALL: &'static [Self] = &[$( Self::$variant ),+];

            /// The string in JSON.
            pub const fn as_str(self) -> &'static str {
                match self {
                    $( Self::$variant => $word, )+
                }
            }

            /// The value of an exact string; `None` for any other.
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
            type Err = $crate::string_enum::UnknownVariant;

            fn from_str(word: &str) -> Result<Self, Self::Err> {
                Self::parse(word).ok_or_else(|| $crate::string_enum::UnknownVariant {
                    found: $crate::validation::shorten(&format!("{word:?}")),
                    expected: $crate::string_enum::quoted_list([$( $word ),+]),
                })
            }
        }

        impl $crate::serde::Serialize for $name {
            fn serialize<S: $crate::serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_str(self.as_str())
            }
        }

        impl<'de> $crate::serde::Deserialize<'de> for $name {
            fn deserialize<D: $crate::serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let word = std::borrow::Cow::<'de, str>::deserialize(deserializer)?;
                word.parse().map_err($crate::serde::de::Error::custom)
            }
        }

        impl $crate::field::FieldValue for $name {
            fn expected() -> std::borrow::Cow<'static, str> {
                format!("one of {}", $crate::string_enum::quoted_list([$( $word ),+])).into()
            }

            fn read(value: &$crate::serde_json::Value) -> Result<Self, $crate::validation::ValidationErrors> {
                value
                    .as_str()
                    .and_then(Self::parse)
                    .ok_or_else(|| $crate::field::invalid_value::<Self>(value))
            }

            fn to_value(&self) -> $crate::serde_json::Value {
                self.as_str().into()
            }

            fn schema() -> $crate::utoipa::openapi::schema::Schema {
                $crate::utoipa::openapi::schema::ObjectBuilder::new()
                    .schema_type($crate::utoipa::openapi::schema::Type::String)
                    .enum_values(Some([$( $word ),+]))
                    .description(Some(concat!($( $doc ),+).trim()))
                    .into()
            }
        }

        impl $crate::utoipa::PartialSchema for $name {
            fn schema() -> $crate::utoipa::openapi::RefOr<$crate::utoipa::openapi::schema::Schema> {
                <Self as $crate::field::FieldValue>::schema().into()
            }
        }

        impl $crate::utoipa::ToSchema for $name {}

        $crate::decode_string_enum!($name);
    };
}

pub use string_enum;

/// Decodes a database column with the string.
#[cfg(feature = "sqlx")]
#[doc(hidden)]
#[macro_export]
macro_rules! decode_string_enum {
    ($name:ident) => {
        // A word that this program does not know is an error of the query, never another variant.
        impl $crate::sqlx::Type<$crate::sqlx::Postgres> for $name {
            fn type_info() -> $crate::sqlx::postgres::PgTypeInfo {
                <str as $crate::sqlx::Type<$crate::sqlx::Postgres>>::type_info()
            }

            fn compatible(ty: &$crate::sqlx::postgres::PgTypeInfo) -> bool {
                <str as $crate::sqlx::Type<$crate::sqlx::Postgres>>::compatible(ty)
            }
        }

        impl<'r> $crate::sqlx::Decode<'r, $crate::sqlx::Postgres> for $name {
            fn decode(
                value: $crate::sqlx::postgres::PgValueRef<'r>,
            ) -> Result<Self, $crate::sqlx::error::BoxDynError> {
                let word =
                    <&str as $crate::sqlx::Decode<'r, $crate::sqlx::Postgres>>::decode(value)?;
                Ok(word.parse::<Self>()?)
            }
        }
    };
}

/// Without the feature `sqlx` no value comes from a database.
#[cfg(not(feature = "sqlx"))]
#[doc(hidden)]
#[macro_export]
macro_rules! decode_string_enum {
    ($name:ident) => {};
}
