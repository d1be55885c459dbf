//! Ids on the command line: whole, by a unique beginning, or `@last`.

use serde::Deserialize;

use super::Failure;
use super::client::{ApiClient, ClientArgs, ClientError, ServiceSession};
use super::exit::CommandEnd;
use super::pages::{Query, check_key_is_known};
use farescan_contract::ids::{Kind, ResourceId};

/// The newest one.
const LAST: &str = "@last";
/// The shortest beginning that is looked for, in hexadecimal digits.
const MIN_DIGITS: usize = 4;
/// The digits of an id that lists show at least: the millisecond of its creation.
const SHOWN_DIGITS: usize = 12;
/// The candidates that an error names.
const MAX_CANDIDATES: usize = 5;

/// How the first one comes to be.
const fn first_step(kind: Kind) -> &'static str {
    match kind {
        Kind::Monitor => "`farescan monitors create oneway TLV LHR 2027-02` shows the cost of one",
        Kind::Alert => "`farescan monitors show` has the rules and their state",
        Kind::Delivery => "`farescan monitors webhook test MONITOR` sends one",
        Kind::Channel => "`farescan channels phone` adds one",
        _ => "`farescan scan oneway TLV LHR 2027-02` shows the cost of one",
    }
}

/// The command that shows what an id, or the beginning of one, names: its words, with the id where the
/// command takes one.
pub fn command_of(text: &str) -> Option<Vec<&str>> {
    let (prefix, _) = text.split_once('_')?;
    let kind = *Kind::ALL.iter().find(|kind| kind.prefix() == prefix)?;
    beginning(kind, text).ok()?;
    match kind {
        Kind::Item => Some(vec!["why", text]),
        Kind::Channel => Some(vec![kind.plural()]),
        Kind::Scan | Kind::Monitor | Kind::Alert | Kind::Delivery => {
            Some(vec![kind.plural(), "show", text])
        }
        _ => None,
    }
}

#[derive(Deserialize)]
struct IdPage {
    data: Vec<IdRow>,
    next_cursor: Option<String>,
}

#[derive(Deserialize)]
struct IdRow {
    id: String,
}

/// A session, and the id of one kind that a person wrote.
pub async fn open<Id: ResourceId>(
    client: &ClientArgs,
    text: &str,
) -> Result<(ServiceSession, Id), Failure> {
    let session = client.open()?;
    let id = find(&session.client, text).await?;
    Ok((session, id))
}

/// The id that a person may have written.
pub async fn find_given<Id: ResourceId>(
    client: &ApiClient,
    text: Option<&str>,
) -> Result<Option<Id>, Failure> {
    match text {
        Some(text) => find(client, text).await.map(Some),
        None => Ok(None),
    }
}

/// The id of one kind that a person wrote.
pub async fn find<Id: ResourceId>(client: &ApiClient, text: &str) -> Result<Id, Failure> {
    let kind = Id::KIND;
    if let Ok(id) = text.parse() {
        return Ok(id);
    }
    let found = if text == LAST {
        let page = page(client, kind, 1, None).await?;
        page.data.into_iter().map(|row| row.id).collect()
    } else {
        with_beginning(client, kind, &beginning(kind, text)?).await?
    };
    if found.is_empty() {
        check_key_is_known(client).await?;
    }
    let (noun, plural) = (kind.noun(), kind.plural());
    match found.as_slice() {
        [id] => id
            .parse()
            .map_err(|_| format!("{id} is no id of a {noun}").into()),
        [] if text == LAST => {
            Err(format!("there is no {noun} yet\n  next: {}", first_step(kind)).into())
        }
        [] => Err(
            format!("no {noun} begins with {text}\n  next: `farescan {plural}` lists them").into(),
        ),
        several => Err(CommandEnd::usage(format!(
            "{} {plural} begin with {text}: {}; use more digits",
            several.len(),
            several
                .iter()
                .take(MAX_CANDIDATES)
                .cloned()
                .collect::<Vec<_>>()
                .join(", ")
        ))),
    }
}

/// The beginning of an id with its prefix.
fn beginning(kind: Kind, text: &str) -> Result<String, Failure> {
    let digits = text
        .strip_prefix(kind.prefix())
        .and_then(|rest| rest.strip_prefix('_'))
        .unwrap_or(text);
    let is_valid = (MIN_DIGITS..=32).contains(&digits.len())
        && digits
            .bytes()
            .all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
    if is_valid {
        Ok(format!("{}_{digits}", kind.prefix()))
    } else {
        Err(CommandEnd::usage(format!(
            "found {text:?}; expected the id of a {noun}, its first digits (at least {MIN_DIGITS}), or {LAST}\n  next: `farescan {plural}` lists them",
            noun = kind.noun(),
            plural = kind.plural()
        )))
    }
}

/// The ids with this beginning. Lists are newest first and ids grow with time, so the search ends
/// at the first smaller one.
async fn with_beginning(
    client: &ApiClient,
    kind: Kind,
    beginning: &str,
) -> Result<Vec<String>, ClientError> {
    let mut found = Vec::new();
    let mut cursor = None;
    loop {
        let page = page(client, kind, 500, cursor).await?;
        let is_past = page
            .data
            .last()
            .is_some_and(|row| row.id.as_str() < beginning);
        let ids = page.data.into_iter().map(|row| row.id);
        found.extend(ids.filter(|id| id.starts_with(beginning)));
        match page.next_cursor {
            Some(next) if !is_past => cursor = Some(next),
            _ => return Ok(found),
        }
    }
}

async fn page(
    client: &ApiClient,
    kind: Kind,
    limit: u16,
    cursor: Option<String>,
) -> Result<IdPage, ClientError> {
    let path = Query::new(format!("/v1/{}", kind.plural()))
        .with("limit", Some(limit))
        .with("cursor", cursor)
        .path();
    client.get(&path).await
}

/// The ids shortened so that each stays unique among them.
pub fn shortened<T: ToString>(ids: impl Iterator<Item = T>) -> Vec<String> {
    let ids: Vec<String> = ids.map(|id| id.to_string()).collect();
    let is_unique = |length: usize| {
        let mut cut: Vec<_> = ids.iter().map(|id| cut(id, length)).collect();
        cut.sort_unstable();
        cut.windows(2).all(|pair| pair[0] != pair[1])
    };
    let length = (SHOWN_DIGITS..32)
        .find(|length| is_unique(*length))
        .unwrap_or(32);
    ids.iter().map(|id| cut(id, length).to_owned()).collect()
}

/// The prefix of an id, its underscore, and so many digits.
fn cut(id: &str, digits: usize) -> &str {
    let end = id.find('_').map_or(id.len(), |at| at + 1 + digits);
    id.get(..end).unwrap_or(id)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_has_its_command_and_a_word_has_none() {
        for (id, words) in [
            ("scn_01a203c0e342", "scans show scn_01a203c0e342"),
            ("mon_01a2", "monitors show mon_01a2"),
            ("alr_01a203c0e342", "alerts show alr_01a203c0e342"),
            ("dlv_01a203c0e342", "deliveries show dlv_01a203c0e342"),
            ("itm_01a203c0e342", "why itm_01a203c0e342"),
            ("chn_01a203c0e342", "channels"),
        ] {
            assert_eq!(command_of(id).unwrap().join(" "), words);
        }
        for word in [
            "scn_1",
            "scn_london",
            "abc_01a203c0e342",
            "spring_2027",
            "01a203c0e342",
            "london",
        ] {
            assert_eq!(command_of(word), None, "{word}");
        }
    }

    #[test]
    fn shortened_ids_stay_unique() {
        let ids = [
            "scn_01a203c0e34277d8a336dcd2cb234bba",
            "scn_01a203c0e34277d9a336dcd2cb234bbb",
            "scn_01a203c0ffff77d9a336dcd2cb234bbb",
        ];
        assert_eq!(
            shortened(ids.into_iter()),
            [
                "scn_01a203c0e34277d8",
                "scn_01a203c0e34277d9",
                "scn_01a203c0ffff77d9"
            ]
        );
        assert_eq!(
            shortened(ids[1..].iter()),
            ["scn_01a203c0e342", "scn_01a203c0ffff"]
        );
        assert_eq!(shortened([ids[0], ids[0]].into_iter()), [ids[0], ids[0]]);
    }
}
