//! One declaration per request body.
//!
//! Here: the `request!` macro, which makes the struct, its field table, its reader, its writer and its schema from
//! the same rows, so that none of them can say something else than the others. Not here: the bodies (`flights`,
//! `hotels`, `scans`), what a single value must look like (`primitives`), the reading itself (`read`).

/// Declares the body of a request.
///
/// ```ignore
/// request! {
///     /// Body of `POST /v1/things/find`.
///     pub struct FindRequest for "things/find" {
///         required {
///             /// From when.
///             from_date: Date;
///         }
///         optional {
///             /// Until when.
///             until_date: Date;
///             /// How many; the accessor gives the default where the caller said nothing.
///             limit: Limit = Limit::TEN => limit_or_default;
///         }
///         alias {
///             /// Sets each named field that the caller did not give.
///             dates_until: Date => [until_date];
///         }
///         order { until_date not_before from_date; }
///         example { "from_date": "2027-01-01" }
///     }
/// }
/// ```
///
/// `alias` and `order` may be left out. The struct has required fields as `T` and optional ones as `Option<T>`; defaults
/// are only in the table and behind their accessors, never in what is sent on (contract 2). It gets `FIELDS`,
/// `from_body` (all faults at once: contract 6, 7), `to_body`, `example`, serde's `Serialize`, `FieldValue` (so that
/// one body can be a field of another) and `ToSchema`.
macro_rules! request {
    (
        $(#[doc = $doc:literal])+
        pub struct $name:ident for $what:literal {
            required { $( $(#[doc = $req_doc:literal])+ $req:ident : $req_ty:ty; )* }
            optional { $(
                $(#[doc = $opt_doc:literal])+
                $opt:ident : $opt_ty:ty $( = $default:expr => $accessor:ident )?;
            )* }
            $( alias { $(
                $(#[doc = $alias_doc:literal])+
                $alias:ident : $alias_ty:ty => [$( $target:ident ),+];
            )+ } )?
            $( order { $( $last:ident $order:ident $first:ident; )+ } )?
            example $example:tt
        }
    ) => {
        $(#[doc = $doc])+
        #[derive(Debug, Clone, PartialEq)]
        pub struct $name {
            $( $(#[doc = $req_doc])+ pub $req: $req_ty, )*
            $( $(#[doc = $opt_doc])+ pub $opt: Option<$opt_ty>, )*
        }

        impl $name {
            /// The field table, in the order of the specification.
            pub const FIELDS: &'static [$crate::contract::field::FieldSpec] = &[
                $( $crate::contract::field::FieldSpec::required::<$req_ty>(
                    stringify!($req),
                    concat!($( $req_doc ),+),
                ), )*
                $( $crate::contract::field::FieldSpec::optional::<$opt_ty>(
                    $crate::contract::declare::wire_name(stringify!($opt)),
                    concat!($( $opt_doc ),+),
                )
                $( .with_default(|| {
                    let default: $opt_ty = $default;
                    $crate::contract::field::FieldValue::to_value(&default)
                }) )?, )*
                $( $( $crate::contract::field::FieldSpec::optional::<$alias_ty>(
                    stringify!($alias),
                    concat!($( $alias_doc ),+),
                )
                .standing_for(&[$( stringify!($target) ),+]), )+ )?
            ];

            /// Reads and checks a body: every fault of it, or none.
            pub fn from_body(
                body: &serde_json::Map<String, serde_json::Value>,
            ) -> Result<Self, $crate::contract::fault::Faults> {
                let mut reader = $crate::contract::read::BodyReader::new($what, Self::FIELDS, body);
                $( let $req = reader.required::<$req_ty>(stringify!($req)); )*
                $( let $opt = reader.optional::<$opt_ty>($crate::contract::declare::wire_name(stringify!($opt))); )*
                $( $(
                    let $alias = reader.optional::<$alias_ty>(stringify!($alias));
                    $( let $target = $target.or($alias); )+
                )+ )?
                $( $( reader.$order((stringify!($last), $last), (stringify!($first), $first)); )+ )?
                reader.finish().or_else_build(|| {
                    Some(Self {
                        $( $req: $req?, )*
                        $( $opt, )*
                    })
                })
            }

            /// Exactly what is sent on: what the caller gave, in the order of the table, and nothing else.
            pub fn to_body(&self) -> serde_json::Map<String, serde_json::Value> {
                let mut body = serde_json::Map::new();
                $( body.insert(
                    stringify!($req).to_owned(),
                    $crate::contract::field::FieldValue::to_value(&self.$req),
                ); )*
                $( if let Some(value) = &self.$opt {
                    body.insert(
                        $crate::contract::declare::wire_name(stringify!($opt)).to_owned(),
                        $crate::contract::field::FieldValue::to_value(value),
                    );
                } )*
                body
            }

            /// A body that is accepted, for the interface description.
            pub fn example() -> serde_json::Value {
                serde_json::json!($example)
            }

            $( $(
                #[doc = concat!("What the caller gave as `", stringify!($opt), "`, else the documented default.")]
                pub fn $accessor(&self) -> $opt_ty {
                    Clone::clone(&self.$opt).unwrap_or_else(|| $default)
                }
            )? )*
        }

        impl serde::Serialize for $name {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serde::Serialize::serialize(&self.to_body(), serializer)
            }
        }

        impl $crate::contract::field::FieldValue for $name {
            const KIND: $crate::contract::field::FieldKind = $crate::contract::field::FieldKind::Object;
            const COMPONENT: Option<&'static str> = Some(stringify!($name));

            fn allowed() -> std::borrow::Cow<'static, str> {
                let names = Self::FIELDS.iter().map(|field| field.name);
                format!("an object with the fields {}", $crate::contract::words::listed(names)).into()
            }

            fn read(value: &serde_json::Value) -> Result<Self, $crate::contract::fault::Faults> {
                match value {
                    serde_json::Value::Object(body) => Self::from_body(body),
                    _ => Err($crate::contract::field::refused::<Self>(value)),
                }
            }

            fn to_value(&self) -> serde_json::Value {
                serde_json::Value::Object(self.to_body())
            }

            fn schema() -> utoipa::openapi::schema::Schema {
                $crate::contract::describe::body_schema(concat!($( $doc ),+), Self::FIELDS, Self::example())
            }

            fn parts(components: &mut $crate::contract::field::Components) {
                for field in Self::FIELDS {
                    (field.components)(components);
                }
            }
        }

        $crate::contract::describe::described!($name);
    };
}
pub(crate) use request;

/// The name on the wire of an optional field: `r#type` is `type` there.
pub(crate) const fn wire_name(field: &'static str) -> &'static str {
    match field.as_bytes() {
        [b'r', b'#', ..] => field.split_at(2).1,
        _ => field,
    }
}
