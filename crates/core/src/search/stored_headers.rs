//! The search headers of a call in their stored form.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// The headers of gateway.md, rule 38, whose values are stored by position: six names in each
/// attempt would be as many bytes as the rest of its row. Only appended to.
const USUAL: [&str; 7] = [
    "x-search-status",
    "x-search-results",
    "x-search-attempts",
    "x-search-combinations",
    "x-search-retries",
    "x-search-unreadable-pages",
    "x-search-reason",
];

/// An array of the usual headers' values, null where there is none, and an object with all others.
/// Before, all headers were one object, which is still read.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct StoredHeaders(Value);

impl FromIterator<(String, String)> for StoredHeaders {
    fn from_iter<T: IntoIterator<Item = (String, String)>>(headers: T) -> Self {
        let mut values = vec![Value::Null; USUAL.len()];
        let mut others = Map::new();
        for (name, value) in headers {
            match USUAL.iter().position(|usual| *usual == name) {
                Some(at) => values[at] = value.into(),
                None => drop(others.insert(name, value.into())),
            }
        }
        if !others.is_empty() {
            values.push(others.into());
        }
        while values.last().is_some_and(Value::is_null) {
            values.pop();
        }
        Self(values.into())
    }
}

impl StoredHeaders {
    /// Names and values.
    pub fn to_pairs(&self) -> Vec<(String, String)> {
        match &self.0 {
            Value::Array(values) => values
                .iter()
                .enumerate()
                .flat_map(|(at, value)| match (value, USUAL.get(at)) {
                    (Value::String(text), Some(name)) => vec![((*name).to_owned(), text.clone())],
                    (others, _) => named(others),
                })
                .collect(),
            all => named(all),
        }
    }
}

fn named(headers: &Value) -> Vec<(String, String)> {
    let headers = headers.as_object().into_iter().flatten();
    headers
        .filter_map(|(name, value)| Some((name.clone(), value.as_str()?.to_owned())))
        .collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn stored(headers: &[(&str, &str)]) -> StoredHeaders {
        let owned = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
        headers.iter().map(owned).collect()
    }

    #[test]
    fn usual_headers_are_values_by_position() {
        let headers = [
            ("x-search-results", "12"),
            ("x-search-fallback", "true"),
            ("x-search-status", "ok"),
        ];
        let with_another =
            json!(["ok", "12", null, null, null, null, null, {"x-search-fallback": "true"}]);
        assert_eq!(stored(&headers).0, with_another);
        assert_eq!(stored(&headers[..1]).0, json!([null, "12"]));
        assert_eq!(stored(&[]).0, json!([]));
    }

    #[test]
    fn an_object_of_an_earlier_version_is_read() {
        let earlier = StoredHeaders(json!({"x-search-status": "ok", "x-search-note": "a"}));
        let expected = [("x-search-status", "ok"), ("x-search-note", "a")];
        let expected = expected.map(|(name, value)| (name.to_owned(), value.to_owned()));
        assert_eq!(earlier.to_pairs(), expected);
        assert_eq!(StoredHeaders::default().to_pairs(), []);
    }

    proptest! {
        #[test]
        fn headers_are_read_back(headers in proptest::collection::btree_map("x-search-(status|results|reason|retries|[a-z]{1,9})", ".{0,9}", 0..9)) {
            let stored: StoredHeaders = headers.clone().into_iter().collect();
            let text = serde_json::to_string(&stored).unwrap();
            let back: StoredHeaders = serde_json::from_str(&text).unwrap();
            prop_assert_eq!(back.to_pairs().into_iter().collect::<std::collections::BTreeMap<_, _>>(), headers);
        }
    }
}
