//! What to type instead of a command that does not exist, in the words of a first day.

/// Words that people try, and the command that does it.
const WORDS: [(&[&str], &str); 9] = [
    (
        &["cheapest", "calendar", "dates", "fares", "flights"],
        "farescan scan oneway TLV LHR 2027-02",
    ),
    (
        &["hotels", "hotel", "rates", "market", "markets", "parity"],
        "farescan scan hotel \"Hotel Arts\" --checkin 2027-02-04 --nights 3 --markets us,de",
    ),
    (
        &["price", "prices", "chart", "trend", "past"],
        "farescan history series TLV LHR --depart 2027-02-04",
    ),
    (
        &[
            "spend", "spent", "spending", "cost", "costs", "bill", "billing",
        ],
        "farescan usage",
    ),
    (&["stop", "halt", "abort"], "farescan pause --all"),
    (
        &["monitor", "alert-me", "track", "schedule"],
        "farescan monitors create oneway TLV LHR 2027-02 --alert new_low",
    ),
    (&["key", "rotate", "change-key"], "farescan rotate-key"),
    (
        &["limit", "limits", "ceiling", "budget", "reserve"],
        "farescan quota set flights --keep-in-reserve 200",
    ),
    (
        &["download", "csv", "save"],
        "farescan export @last -o fares.csv",
    ),
];

/// The commands that name the kind of a search before the route.
const KINDS: [&str; 4] = ["search", "scan", "history", "create"];

/// What to type instead of arguments that are no command.
pub fn hint(args: &[String]) -> Option<String> {
    let words: Vec<String> = args
        .iter()
        .take_while(|word| !word.starts_with('-'))
        .cloned()
        .collect();
    (0..words.len()).find_map(|place| instead_of(&words[place], &words[..place]))
}

/// The command for a word that is none, and for an airport where a kind is expected.
/// `before` are the words in front of it.
fn instead_of(word: &str, before: &[String]) -> Option<String> {
    let last = before.last().map(String::as_str).unwrap_or_default();
    if KINDS.contains(&last) && is_airports(word) {
        return Some(format!("farescan {} oneway {word} …", before.join(" ")));
    }
    if last == "watch" && is_airports(word) {
        return Some(format!("farescan monitors create oneway {word} …"));
    }
    let lower = word.to_lowercase();
    let found = WORDS
        .iter()
        .find(|(words, _)| words.contains(&lower.as_str()));
    found
        .filter(|_| before.is_empty())
        .map(|(_, command)| (*command).to_owned())
}

/// Whether a word is one airport code, or several with commas.
fn is_airports(word: &str) -> bool {
    word.split(',')
        .all(|code| code.len() == 3 && code.bytes().all(|byte| byte.is_ascii_alphabetic()))
}

#[cfg(test)]
mod tests {
    use clap::Parser as _;

    use super::*;
    use crate::program::ClientProgram;

    #[test]
    fn each_hint_is_a_valid_command() {
        for (words, command) in WORDS {
            let quoted = command.replace("\"Hotel Arts\"", "Hotel");
            assert!(
                ClientProgram::try_parse_from(quoted.split(' ')).is_ok(),
                "{command}"
            );
            for word in words {
                assert!(
                    ClientProgram::try_parse_from(["farescan", word]).is_err(),
                    "{word} is a command"
                );
                assert_eq!(instead_of(word, &[]).as_deref(), Some(command));
            }
        }
    }

    #[test]
    fn an_airport_instead_of_a_kind_is_explained() {
        let before = |words: &[&str]| {
            words
                .iter()
                .map(|word| (*word).to_owned())
                .collect::<Vec<_>>()
        };
        assert_eq!(
            instead_of("TLV", &before(&["history"])).as_deref(),
            Some("farescan history oneway TLV …")
        );
        assert_eq!(instead_of("TLVX", &before(&["history"])), None);
        assert_eq!(instead_of("stop", &before(&["history"])), None);
    }
}
