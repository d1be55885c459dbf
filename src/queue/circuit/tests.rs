//! When a circuit opens and closes.

use proptest::prelude::*;

use super::*;

fn at(seconds: i64) -> Timestamp {
    Timestamp::from_second(1_800_000_000 + seconds).unwrap()
}

fn calls(signs: &str) -> Vec<(Sign, bool)> {
    signs
        .chars()
        .map(|sign| (if sign == 'x' { Sign::Bad } else { Sign::Good }, false))
        .collect()
}

#[test]
fn the_twentieth_failure_in_a_row_opens_it() {
    let mut circuit = Circuit::default();
    assert_eq!(circuit.see(&calls(&".".repeat(100)), at(0)), Turn::Stays);
    assert_eq!(circuit.see(&calls(&"x".repeat(19)), at(1)), Turn::Stays);
    assert_eq!(circuit.see(&calls(".xxx"), at(2)), Turn::Stays);
    assert_eq!(
        circuit.see(&calls(&"x".repeat(16)), at(300)),
        Turn::Stays,
        "hours may lie between them"
    );
    assert_eq!(circuit.see(&calls("x"), at(9_000)), Turn::Opens);
}

#[test]
fn half_of_a_minute_opens_it_and_less_does_not() {
    let mut circuit = Circuit::default();
    for second in 0..600 {
        assert_eq!(
            circuit.see(&calls("x.."), at(second)),
            Turn::Stays,
            "a third"
        );
    }
    let mut circuit = Circuit::default();
    assert_eq!(
        circuit.see(&calls(&"x.".repeat(9)), at(0)),
        Turn::Stays,
        "too few to tell"
    );
    assert_eq!(circuit.see(&calls("x."), at(30)), Turn::Opens);
    let mut circuit = Circuit::default();
    assert_eq!(circuit.see(&calls(&"x.".repeat(9)), at(0)), Turn::Stays);
    assert_eq!(
        circuit.see(&calls(&"x.".repeat(9)), at(61)),
        Turn::Stays,
        "what is older than a minute is forgotten"
    );
}

#[test]
fn only_a_good_probe_closes_it_and_then_it_begins_anew() {
    let mut circuit = Circuit::default();
    assert_eq!(circuit.see(&calls(&"x".repeat(20)), at(0)), Turn::Opens);
    assert_eq!(
        circuit.see(&calls(".....xxxxx"), at(1)),
        Turn::Stays,
        "these had begun before"
    );
    assert_eq!(circuit.see(&[(Sign::Bad, true)], at(10)), Turn::Stays);
    assert_eq!(
        circuit.see(&[(Sign::Good, false), (Sign::Good, true)], at(20)),
        Turn::Closes
    );
    assert_eq!(circuit, Circuit::default());
    assert_eq!(
        circuit.see(&calls(&"x".repeat(19)), at(21)),
        Turn::Stays,
        "the minute before does not open it again"
    );
}

proptest! {
    /// However the calls come in batches, it opens at the same call, and never on fewer than twenty.
    #[test]
    fn batches_make_no_difference(
        seen in prop::collection::vec((prop::bool::weighted(0.6), 0_i64..15), 1..300), sizes in prop::collection::vec(1_usize..20, 300),
    ) {
        let mut time = 0;
        let seen: Vec<_> = seen.into_iter().map(|(bad, pause)| {
            time += pause / 10;
            (if bad { Sign::Bad } else { Sign::Good }, time)
        }).collect();
        let opened = |circuit: &mut Circuit, calls: &[(Sign, i64)]| {
            let signs: Vec<_> = calls.iter().map(|(sign, _)| (*sign, false)).collect();
            circuit.see(&signs, at(calls[0].1)) == Turn::Opens
        };
        let mut one_by_one = Circuit::default();
        let first = seen.iter().position(|call| opened(&mut one_by_one, std::slice::from_ref(call)));
        prop_assert!(first.is_none_or(|first| first >= 19));
        // In batches of calls that ended within the same second.
        let mut batched = Circuit::default();
        let (mut from, mut sizes) = (0, sizes.into_iter());
        let mut at_batch = None;
        while from < seen.len() && at_batch.is_none() {
            let most = sizes.next().unwrap();
            let to = from + seen[from..].iter().take(most).take_while(|(_, time)| *time == seen[from].1).count();
            if opened(&mut batched, &seen[from..to]) {
                at_batch = Some(from..to);
            }
            from = to;
        }
        match first {
            Some(first) => prop_assert!(at_batch.is_some_and(|batch| batch.contains(&first))),
            None => prop_assert!(at_batch.is_none()),
        }
    }

    /// Whatever was seen, it opens within twenty failures, and closes with the first good probe.
    #[test]
    fn twenty_failures_always_open_it(before in prop::collection::vec(any::<bool>(), 0..100), pause in 0_i64..100) {
        let mut circuit = Circuit::default();
        let before: Vec<_> = before.into_iter().map(|good| (if good { Sign::Good } else { Sign::Bad }, false)).collect();
        circuit.see(&before, at(0));
        let was_open = circuit.is_open;
        let turn = circuit.see(&calls(&"x".repeat(20)), at(pause));
        prop_assert_eq!(turn, if was_open { Turn::Stays } else { Turn::Opens });
        prop_assert_eq!(circuit.see(&[(Sign::Good, true)], at(pause)), Turn::Closes);
    }
}
