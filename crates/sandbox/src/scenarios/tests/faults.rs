//! Files that are refused.

use super::*;

/// Each text is refused with an error that has these parts.
fn assert_refused(cases: &[(&str, [&str; 3])]) {
    for (text, parts) in cases {
        let error = Scenario::parse(text, Path::new(""))
            .expect_err(text)
            .to_string();
        for part in parts {
            assert!(error.contains(part), "{text}: `{part}` is not in: {error}");
        }
    }
}

#[test]
fn a_wrong_field_of_a_ladder_is_named_with_what_it_held_and_what_is_expected() {
    assert_refused(&[
        (
            "[ladder]\nhazzard = 1",
            ["line 2", "unknown field `hazzard`", "`lowest`"],
        ),
        ("[lader]", ["line 1", "unknown field `lader`", "`ladder`"]),
        (
            "[ladder]\nfares = \"many\"",
            ["fares = \"many\"", "invalid type: string \"many\"", "u16"],
        ),
        (
            "[ladder]\nratio = [1.25, 1.2]",
            [
                "ladder.ratio",
                "found [1.25, 1.2]",
                "1.01 <= low <= high <= 2",
            ],
        ),
        (
            "[ladder]\nratio = [1.2]",
            ["ratio = [1.2]", "invalid length 1", "length 2"],
        ),
        (
            "[ladder]\nfares = 1",
            ["ladder.fares", "found 1", "from 2 to 40"],
        ),
        (
            "[ladder]\nunchanged = [[9, 0.5], [3, 0.5]]",
            ["ladder.unchanged", "found days [9, 3]", "ascending"],
        ),
        (
            "[ladder]\nunchanged = [[9, 1.5]]",
            ["ladder.unchanged, up to 9 days", "found 1.5", "from 0 to 1"],
        ),
        (
            "[ladder]\n[sales]\nshare_of_dates = 1.4",
            ["sales.share_of_dates", "found 1.4", "from 0 to 1"],
        ),
        (
            "[ladder]\n[sales]\nsteps = [1, 1.5]",
            ["sales.steps", "found [1, 1.5]", "whole numbers"],
        ),
        (
            "[ladder]\n[sales]\ndays = [0, 2]",
            ["sales.days", "found [0, 2]", "1 <= low"],
        ),
        (
            "[ladder]\n[events]\ndates = [\"2027-02-30\"]",
            ["dates = [\"2027-02-30\"]", "2027-02-30", "line 3"],
        ),
        (
            "[ladder]\n[weekdays]\nsteps = [1, 2]",
            ["steps = [1, 2]", "invalid length 2", "length 7"],
        ),
    ]);
}

#[test]
fn a_wrong_field_elsewhere_is_named_too() {
    assert_refused(&[
        (
            "[ladder]\n[sell_out]\nshare = -1",
            ["sell_out.share", "found -1", "from 0 to 1"],
        ),
        (
            "[ladder]\n[within_day]\nhours = [1, 25]",
            ["within_day.hours", "found [1, 25]", "high <= 24"],
        ),
        (
            "[ladder]\n[outliers]\nfactors = []",
            ["outliers.factors", "found none", "at least one"],
        ),
        (
            "[structureless]\nprice = [0, 5]",
            ["structureless.price", "found [0, 5]", "1 <= low"],
        ),
        (
            "[structureless]\n[sales]",
            ["sales", "without [ladder]", "expected [ladder]"],
        ),
        (
            "[recorded]",
            ["missing field `file`", "line 1", "[recorded]"],
        ),
        (
            "horizon_days = 10",
            ["the family", "found none", "exactly one of [ladder]"],
        ),
        (
            "[ladder]\n[structureless]",
            [
                "the family",
                "found [ladder] and [structureless]",
                "exactly one",
            ],
        ),
        (
            "horizon_days = 400\n[ladder]",
            ["horizon_days", "found 400", "from 1 to 366"],
        ),
        (
            "currency = \"XXX\"\n[ladder]",
            ["currency", "found XXX", "one of USD"],
        ),
    ]);
}

#[test]
fn the_file_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("bad.toml");
    std::fs::write(&file, "[ladder]\nfares = 1").unwrap();
    let error = Scenario::read(&file).unwrap_err().to_string();
    assert!(error.starts_with(&file.display().to_string()), "{error}");
    let error = Scenario::read(&folder.path().join("none.toml"))
        .unwrap_err()
        .to_string();
    assert!(error.contains("none.toml: "), "{error}");
}
