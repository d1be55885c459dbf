//! Finding keys in bytes, in every form in which they could be written down.

use std::collections::BTreeSet;

use crate::support::db::TestDb;

/// Looks for many forms at once.
pub struct Finder {
    forms: Vec<(String, Vec<u8>)>,
    /// Which two bytes a form can begin with.
    begins: Vec<bool>,
}

impl Finder {
    /// All forms of these keys: as it is, in JSON, in URLs, in hexadecimal digits, in base64 at every offset, and as what plain hashes
    /// make of it. A database does the encodings, so that they are not made by the code under test.
    pub async fn of(keys: &[String]) -> Self {
        let db = TestDb::new().await;
        let mut forms = Vec::new();
        for key in keys {
            let (core, whole) = (&key[..32], key.as_str());
            let escaped: String = core.bytes().map(|byte| format!("%{byte:02x}")).collect();
            forms.push(("plain", core.as_bytes().to_vec()));
            forms.push(("reversed", core.bytes().rev().collect()));
            forms.push(("percent", escaped.clone().into_bytes()));
            forms.push(("percent", escaped.to_uppercase().into_bytes()));
            forms.push((
                "utf-16",
                core.encode_utf16().flat_map(u16::to_le_bytes).collect(),
            ));
            for offset in 0..3 {
                let shifted = [&b"\0\0"[..offset], core.as_bytes()].concat();
                let text: String = encoded(&db, &shifted, "base64").await;
                // Without what depends on the neighbours.
                let text =
                    &text[if offset == 0 { 0 } else { 4 }..text.trim_end_matches('=').len() - 2];
                forms.push(("base64", text.as_bytes().to_vec()));
                forms.push((
                    "base64",
                    text.replace('+', "-").replace('/', "_").into_bytes(),
                ));
            }
            let hex: String = encoded(&db, core.as_bytes(), "hex").await;
            forms.push(("hex", hex.to_uppercase().into_bytes()));
            forms.push(("hex", hex.into_bytes()));
            for hash in ["sha256", "sha512", "sha224"] {
                let call = sqlx::AssertSqlSafe(format!("select {hash}($1)"));
                let digest: Vec<u8> = value!(db.pool(), call, whole.as_bytes());
                hashed(&db, &mut forms, hash, digest).await;
            }
            let digest: Vec<u8> = value!(
                db.pool(),
                "select decode(md5($1::bytea), 'hex')",
                whole.as_bytes()
            );
            hashed(&db, &mut forms, "md5", digest).await;
        }
        Self::new(
            forms
                .into_iter()
                .map(|(form, bytes)| (form.to_owned(), bytes))
                .collect(),
        )
    }

    fn new(forms: Vec<(String, Vec<u8>)>) -> Self {
        let mut begins = vec![false; 1 << 16];
        for (_, bytes) in &forms {
            begins[usize::from(bytes[0]) << 8 | usize::from(bytes[1])] = true;
        }
        Self { forms, begins }
    }

    /// How many forms are looked for.
    pub fn forms(&self) -> usize {
        self.forms.len()
    }

    /// The forms that these bytes hold.
    pub fn find(&self, bytes: &[u8]) -> BTreeSet<String> {
        let mut found = BTreeSet::new();
        for (at, pair) in bytes.windows(2).enumerate() {
            if self.begins[usize::from(pair[0]) << 8 | usize::from(pair[1])] {
                let held = self
                    .forms
                    .iter()
                    .filter(|(_, form)| bytes[at..].starts_with(form));
                found.extend(held.map(|(name, _)| name.clone()));
            }
        }
        found
    }
}

/// A digest as it is, in hexadecimal digits and in base64.
async fn hashed(
    db: &TestDb,
    forms: &mut Vec<(&'static str, Vec<u8>)>,
    hash: &'static str,
    digest: Vec<u8>,
) {
    let hex: String = encoded(db, &digest, "hex").await;
    let base64 = encoded(db, &digest, "base64").await;
    forms.push((hash, hex.to_uppercase().into_bytes()));
    forms.push((hash, hex.into_bytes()));
    forms.push((hash, base64.trim_end_matches('=').as_bytes()[..20].to_vec()));
    forms.push((hash, digest[..16].to_vec()));
}

async fn encoded(db: &TestDb, bytes: &[u8], form: &str) -> String {
    let text: String = value!(db.pool(), "select encode($1, $2)", bytes, form);
    text.replace('\n', "")
}

#[tokio::test]
async fn every_form_is_found_wherever_it_stands() {
    let key = format!(
        "{:032x}/+\"%",
        0x1234_5678_9abc_def0_1234_5678_9abc_def0_u128
    );
    let finder = Finder::of(std::slice::from_ref(&key)).await;
    for (name, form) in &finder.forms {
        let found = finder.find(&[b"some noise ", form.as_slice(), b" and more"].concat());
        assert!(found.contains(name), "{name}");
    }
    assert_eq!(
        finder.find(format!("{{\"a\": {}}}", serde_json::json!(key)).as_bytes()),
        BTreeSet::from(["plain".to_owned()])
    );
    assert!(finder.find(b"nothing of it").is_empty());
    assert!(finder.find(&key.as_bytes()[1..32]).is_empty());
}
