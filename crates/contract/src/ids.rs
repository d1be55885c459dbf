//! Identifiers: one newtype for each kind of resource, so that a scan's id cannot be used as an
//! item's; and the one table of what each kind is called.
//!
//! In the API an id is a prefix and the 32 hexadecimal digits of a UUIDv7 (`scn_0192…`): it shows
//! its kind, sorts by creation time, and cannot be guessed. In the database it is a plain `uuid`.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use utoipa::openapi::RefOr;
use utoipa::openapi::schema::{ObjectBuilder, Schema, SchemaType, Type};
use utoipa::{PartialSchema, ToSchema};
use uuid::Uuid;

/// The text is not an id of the expected kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("an id of the form {prefix}_ and 32 hexadecimal digits")]
pub struct InvalidId {
    prefix: &'static str,
}

/// An id of one kind.
pub trait ResourceId: FromStr<Err = InvalidId> + fmt::Display + Copy {
    /// What it names.
    const KIND: Kind;
}

/// An id of any kind that has a list or a page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AnyId {
    /// What it names.
    pub kind: Kind,
    uuid: Uuid,
}

impl fmt::Display for AnyId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}_{}", self.kind.prefix(), self.uuid.simple())
    }
}

/// The kinds that have a path in the API and on the pages.
macro_rules! with_paths {
    ($($name:ident),+) => {
        impl AnyId {
            /// The id with this text; `None` if it is of no such kind.
            pub fn parse(text: &str) -> Option<Self> {
                let mut found = None;
                $( found = found.or_else(|| text.parse::<$name>().ok().map(Self::from)); )+
                found
            }
        }

        $(
            impl From<$name> for AnyId {
                fn from(id: $name) -> Self {
                    Self { kind: $name::KIND, uuid: id.0 }
                }
            }
        )+
    };
}

/// The table of kinds: what an id names, its type, the prefix of its text, and the noun for one and for
/// several. The latter is also the path of the list in the API and on the pages, and the command.
macro_rules! kinds {
    ($( $(#[$doc:meta])* $kind:ident $name:ident $prefix:literal $noun:literal $plural:literal; )+) => {
        /// What an id names.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub enum Kind {
            $( $(#[$doc])* $kind, )+
        }

        impl Kind {
            /// Every kind.
            pub const ALL: &[Self] = &[$( Self::$kind ),+];

            /// What stands before the underscore of an id: `scn`.
            pub const fn prefix(self) -> &'static str {
                match self {
                    $( Self::$kind => $prefix, )+
                }
            }

            /// What one is called: `scan`.
            pub const fn noun(self) -> &'static str {
                match self {
                    $( Self::$kind => $noun, )+
                }
            }

            /// What one is called at the beginning of a line: `Scan`.
            pub const fn title(self) -> &'static str {
                match self {
                    $( Self::$kind => stringify!($kind), )+
                }
            }

            /// What several are called: `scans`.
            pub const fn plural(self) -> &'static str {
                match self {
                    $( Self::$kind => $plural, )+
                }
            }
        }

        $( prefixed_id!($(#[$doc])* $kind $name $prefix); )+
    };
}

macro_rules! prefixed_id {
    ($(#[$doc:meta])* $kind:ident $name:ident $prefix:literal) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(Uuid);

        impl $name {
            /// A new id of the current time and random bits.
            #[expect(clippy::new_without_default, reason = "a default id would be a different one each time")]
            pub fn new() -> Self {
                Self(Uuid::now_v7())
            }

            /// The id as stored in the database.
            pub const fn uuid(self) -> Uuid {
                self.0
            }

            /// Its 16 bytes.
            pub const fn as_bytes(&self) -> &[u8; 16] {
                self.0.as_bytes()
            }
        }

        impl ResourceId for $name {
            const KIND: Kind = Kind::$kind;
        }

        impl From<Uuid> for $name {
            fn from(uuid: Uuid) -> Self {
                Self(uuid)
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, concat!($prefix, "_{}"), self.0.simple())
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Display::fmt(self, f)
            }
        }

        impl FromStr for $name {
            type Err = InvalidId;

            fn from_str(text: &str) -> Result<Self, InvalidId> {
                parse(text, $prefix).map(Self).ok_or(InvalidId { prefix: $prefix })
            }
        }

        impl Serialize for $name {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.collect_str(self)
            }
        }

        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let text = <std::borrow::Cow<'de, str>>::deserialize(deserializer)?;
                text.parse().map_err(de::Error::custom)
            }
        }

        impl PartialSchema for $name {
            fn schema() -> RefOr<Schema> {
                ObjectBuilder::new()
                    .schema_type(SchemaType::Type(Type::String))
                    .pattern(Some(concat!("^", $prefix, "_[0-9a-f]{32}$")))
                    .examples([concat!($prefix, "_01970a1b2c3d7e4f8a9b0c1d2e3f4a5b")])
                    .into()
            }
        }

        impl ToSchema for $name {}
    };
}

/// Accepts only the canonical form: the prefix, an underscore and 32 lower-case digits, so that
/// equal ids have equal texts.
fn parse(text: &str, prefix: &str) -> Option<Uuid> {
    let digits = text.strip_prefix(prefix)?.strip_prefix('_')?;
    let canonical = digits.len() == 32
        && digits
            .bytes()
            .all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'));
    canonical.then(|| Uuid::try_parse(digits).ok()).flatten()
}

kinds! {
    /// A caller: the owner of a marketplace key, by its fingerprint. Never in the API.
    Tenant TenantId "ten" "tenant" "tenants";
    /// A scan: one request with some fields swept.
    Scan ScanId "scn" "scan" "scans";
    /// An item: one search of a scan.
    Item ItemId "itm" "item" "items";
    /// An attempt: one call of an item.
    Attempt AttemptId "att" "attempt" "attempts";
    /// A grant: one sealed marketplace key, stored for one scan. Never in the API.
    Grant GrantId "grt" "grant" "grants";
    /// A monitor: a scan on a schedule.
    Monitor MonitorId "mon" "monitor" "monitors";
    /// A channel: where a person hears of alerts.
    Channel ChannelId "chn" "channel" "channels";
    /// A delivery: one event that is sent to a webhook, or one message to a channel.
    Delivery DeliveryId "dlv" "delivery" "deliveries";
    /// An alert: a rule of a monitor that fired.
    Alert AlertId "alr" "alert" "alerts";
}

with_paths!(ScanId, ItemId, MonitorId, ChannelId, DeliveryId, AlertId);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_parses_its_own_text() {
        let id = ScanId::new();
        assert_eq!(id.to_string().parse(), Ok(id));
        assert_eq!(
            serde_json::from_str::<ScanId>(&serde_json::to_string(&id).unwrap()).unwrap(),
            id
        );
        assert_eq!(id.to_string().len(), "scn_".len() + 32);
    }

    #[test]
    fn later_ids_sort_later() {
        let (first, second) = (ItemId::new(), ItemId::new());
        assert!(first < second && first.to_string() < second.to_string());
    }

    #[test]
    fn a_text_that_is_not_canonical_is_rejected() {
        let digits = "01970a1b2c3d7e4f8a9b0c1d2e3f4a5b";
        assert!(format!("scn_{digits}").parse::<ScanId>().is_ok());
        for text in [
            format!("itm_{digits}"),
            digits.to_owned(),
            format!("scn{digits}"),
            format!("scn_{}", digits.to_uppercase()),
            format!("scn_{digits}0"),
            format!("scn_{}", &digits[1..]),
            "scn_01970a1b-2c3d-7e4f-8a9b-0c1d2e3f4a5b".to_owned(),
            "scn_".to_owned(),
            String::new(),
        ] {
            let refused = text.parse::<ScanId>().unwrap_err();
            assert_eq!(
                refused.to_string(),
                "an id of the form scn_ and 32 hexadecimal digits",
                "{text}"
            );
        }
    }
}
