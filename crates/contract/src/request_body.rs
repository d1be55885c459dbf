//! One declaration per request body.
//!
//! Here: the `request_body!` macro, which generates the struct, its field table, its reader, its
//! writer and its schema from the same rows, so that they cannot differ, and `grouped_body!` for
//! bodies that share fields. Not here: the bodies (`flights`, `hotels`, `scans`), the rules of single
//! values (`primitives`), the reading itself (`read_body`).

/// Declares the body of a request.
///
/// ```ignore
/// request_body! {
///     /// Body of `POST /v1/things/find`.
///     pub struct FindRequest for "things/find" {
///         required {
///             /// Begin of the time range.
///             from_date: Date;
///         }
///         optional {
///             /// Until when.
///             until_date: Date;
///             /// How many; the accessor gives the default where the field is absent.
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
/// `alias` and `order` may be omitted. The struct has required fields as `T` and optional ones as
/// `Option<T>`. Defaults are only in the table and behind their accessors, never in the upstream
/// body (gateway.md, rule 2). The struct gets `FIELDS`, `from_body` (all errors at once:
/// gateway.md, rules 6 and 7), `to_body`, `example`, serde's `Serialize`, `FieldValue` (so that one
/// body can be a field of another) and `ToSchema`.
macro_rules! request_body {
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
            /// The field table, in the order of gateway.md.
            pub const FIELDS: &'static [$crate::field::FieldSpec] = &[
                $( $crate::field::FieldSpec::required::<$req_ty>(
                    stringify!($req),
                    concat!($( $req_doc ),+),
                ), )*
                $( $crate::field::FieldSpec::optional::<$opt_ty>(
                    $crate::request_body::wire_name(stringify!($opt)),
                    concat!($( $opt_doc ),+),
                )
                $( .with_default(|| {
                    let default: $opt_ty = $default;
                    $crate::field::FieldValue::to_value(&default)
                }) )?, )*
                $( $( $crate::field::FieldSpec::optional::<$alias_ty>(
                    stringify!($alias),
                    concat!($( $alias_doc ),+),
                )
                .alias_for(&[$( stringify!($target) ),+]), )+ )?
            ];

            /// Reads and validates a body.
            ///
            /// # Errors
            /// All validation errors of the body.
            pub fn from_body(
                body: &serde_json::Map<String, serde_json::Value>,
            ) -> Result<Self, $crate::validation::ValidationErrors> {
                #[allow(unused_mut, reason = "a body may have no fields")]
                let mut reader = $crate::read_body::BodyReader::new($what, Self::FIELDS, body);
                $( let $req = reader.required::<$req_ty>(stringify!($req)); )*
                $( let $opt = reader.optional::<$opt_ty>($crate::request_body::wire_name(stringify!($opt))); )*
                $( $(
                    let $alias = reader.optional::<$alias_ty>(stringify!($alias));
                    $( let $target = $target.or($alias); )+
                )+ )?
                $( $( reader.$order((stringify!($last), $last), (stringify!($first), $first)); )+ )?
                reader.finish().ok_if_empty(|| {
                    Some(Self {
                        $( $req: $req?, )*
                        $( $opt, )*
                    })
                })
            }

            /// The given fields and nothing else, in the order of the table.
            pub fn to_body(&self) -> serde_json::Map<String, serde_json::Value> {
                #[allow(unused_mut, reason = "a body may have no fields")]
                let mut body = serde_json::Map::new();
                $( body.insert(
                    stringify!($req).to_owned(),
                    $crate::field::FieldValue::to_value(&self.$req),
                ); )*
                $( if let Some(value) = &self.$opt {
                    body.insert(
                        $crate::request_body::wire_name(stringify!($opt)).to_owned(),
                        $crate::field::FieldValue::to_value(value),
                    );
                } )*
                body
            }

            /// A valid body, for the OpenAPI document.
            pub fn example() -> serde_json::Value {
                serde_json::json!($example)
            }

            $( $(
                #[doc = concat!("The given `", stringify!($opt), "`, else the documented default.")]
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

        impl $crate::field::FieldValue for $name {
            const KIND: $crate::field::FieldKind = $crate::field::FieldKind::Object;
            const COMPONENT: Option<&'static str> = Some(stringify!($name));

            fn expected() -> std::borrow::Cow<'static, str> {
                let names = Self::FIELDS.iter().map(|field| field.name);
                format!("an object with the fields {}", $crate::string_enum::quoted_list(names)).into()
            }

            fn read(value: &serde_json::Value) -> Result<Self, $crate::validation::ValidationErrors> {
                match value {
                    serde_json::Value::Object(body) => Self::from_body(body),
                    _ => Err($crate::field::invalid_value::<Self>(value)),
                }
            }

            fn to_value(&self) -> serde_json::Value {
                serde_json::Value::Object(self.to_body())
            }

            fn schema() -> utoipa::openapi::schema::Schema {
                $crate::body_schema::body_schema(concat!($( $doc ),+), Self::FIELDS, Self::example())
            }

            fn nested_components(components: &mut $crate::field::Components) {
                for field in Self::FIELDS {
                    (field.components)(components);
                }
            }
        }

        $crate::body_schema::impl_to_schema!($name);
    };
}
pub(crate) use request_body;

/// A [`request_body!`] whose lists of fields may name groups: `..route;` includes the fields that the
/// macro in front, in braces, has for `route`, and their `order`. The types of these fields must be in
/// scope.
macro_rules! grouped_body {
    (
        $groups:tt
        $(#[doc = $doc:literal])+
        pub struct $name:ident for $what:literal {
            required $required:tt
            optional $optional:tt
            $( $rest:tt )*
        }
    ) => {
        $crate::request_body::grouped_body! {
            @include [$groups { $(#[doc = $doc])+ pub struct $name for $what } { $( $rest )* }]
            {} $required $optional
        }
    };

    // Lists of fields: the complete ones, then the first incomplete one as what is done of it and
    // what is left, then the others.
    (@include [{ $( $groups:tt )+ } $( $body:tt )*] { $( $done:tt )* } { ..$group:ident; $( $left:tt )* } $( $other:tt )*) => {
        $( $groups )+! { $group [[{ $( $groups )+ } $( $body )*] { $( $done )* } { $( $left )* } $( $other )*] }
    };
    (@put [$body:tt { $( $done:tt )* } $( $left:tt )*] { $( $field:tt )* }) => {
        $crate::request_body::grouped_body! { @include $body { $( $done )* $( $field )* } $( $left )* }
    };
    (@put [[$groups:tt $head:tt { $( $rest:tt )* } $( $lists:tt )*] $( $left:tt )*] $fields:tt $( $order:tt )+) => {
        $crate::request_body::grouped_body! {
            @put [[$groups $head { $( $order )+ $( $rest )* } $( $lists )*] $( $left )*] $fields
        }
    };
    (@include $body:tt { $( $done:tt )* } { $token:tt $( $left:tt )* } $( $other:tt )*) => {
        $crate::request_body::grouped_body! { @include $body { $( $done )* $token } { $( $left )* } $( $other )* }
    };
    (@include [$( $body:tt )*] $done:tt {} $other:tt) => {
        $crate::request_body::grouped_body! { @include [$( $body )* $done] {} $other }
    };
    (@include [$groups:tt { $( $head:tt )* } { $( $rest:tt )* } $required:tt] $optional:tt {}) => {
        $crate::request_body::request_body! {
            $( $head )* { required $required optional $optional $( $rest )* }
        }
    };
}
pub(crate) use grouped_body;

/// The JSON name of an optional field: `type` for `r#type`.
pub(crate) const fn wire_name(field: &'static str) -> &'static str {
    match field.as_bytes() {
        [b'r', b'#', ..] => field.split_at(2).1,
        _ => field,
    }
}

/// Declares the macro of groups for [`grouped_body!`]; in front of its name comes a `$`, which the
/// macro needs for its own rules.
macro_rules! field_groups {
    ($dollar:tt $name:ident { $( ..$group:ident { $( $field:tt )* } $( order $order:tt )? )+ }) => {
        macro_rules! $name { $(
            ($group $dollar then:tt) => {
                $crate::request_body::grouped_body! { @put $dollar then { $( $field )* } $( order $order )? }
            };
        )+ }
    };
}
pub(crate) use field_groups;
