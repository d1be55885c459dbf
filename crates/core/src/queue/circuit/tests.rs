//! When a circuit opens and closes.

use proptest::prelude::*;

use super::*;

fn at(seconds: i64) -> Timestamp {
    Timestamp::from_second(1_800_000_000 + seconds).unwrap()
}

fn calls(healths: &str) -> Vec<(CallHealth, bool)> {
    healths
        .chars()
        .map(|health| {
            (
                if health == 'x' {
                    CallHealth::Failure
                } else {
                    CallHealth::Success
                },
                false,
            )
        })
        .collect()
}

#[test]
fn the_twentieth_failure_in_a_row_opens_the_circuit() {
    let mut circuit = Circuit::default();
    assert_eq!(
        circuit.record(&calls(&".".repeat(100)), at(0)),
        CircuitChange::Unchanged
    );
    assert_eq!(
        circuit.record(&calls(&"x".repeat(19)), at(1)),
        CircuitChange::Unchanged
    );
    assert_eq!(
        circuit.record(&calls(".xxx"), at(2)),
        CircuitChange::Unchanged
    );
    assert_eq!(
        circuit.record(&calls(&"x".repeat(16)), at(300)),
        CircuitChange::Unchanged,
        "hours may lie between them"
    );
    assert_eq!(
        circuit.record(&calls("x"), at(9_000)),
        CircuitChange::Opened
    );
}

#[test]
fn half_of_a_minutes_calls_failing_opens_the_circuit() {
    let mut circuit = Circuit::default();
    for second in 0..600 {
        assert_eq!(
            circuit.record(&calls("x.."), at(second)),
            CircuitChange::Unchanged,
            "a third"
        );
    }
    let mut circuit = Circuit::default();
    assert_eq!(
        circuit.record(&calls(&"x.".repeat(9)), at(0)),
        CircuitChange::Unchanged,
        "too few to tell"
    );
    assert_eq!(circuit.record(&calls("x."), at(30)), CircuitChange::Opened);
    let mut circuit = Circuit::default();
    assert_eq!(
        circuit.record(&calls(&"x.".repeat(9)), at(0)),
        CircuitChange::Unchanged
    );
    assert_eq!(
        circuit.record(&calls(&"x.".repeat(9)), at(61)),
        CircuitChange::Unchanged,
        "what is older than a minute is forgotten"
    );
}

#[test]
fn a_successful_probe_closes_and_resets_the_circuit() {
    let mut circuit = Circuit::default();
    assert_eq!(
        circuit.record(&calls(&"x".repeat(20)), at(0)),
        CircuitChange::Opened
    );
    assert_eq!(
        circuit.record(&calls(".....xxxxx"), at(1)),
        CircuitChange::Unchanged,
        "these had begun before"
    );
    assert_eq!(
        circuit.record(&[(CallHealth::Failure, true)], at(10)),
        CircuitChange::Unchanged
    );
    assert_eq!(
        circuit.record(
            &[(CallHealth::Success, false), (CallHealth::Success, true)],
            at(20)
        ),
        CircuitChange::Closed
    );
    assert_eq!(circuit, Circuit::default());
    assert_eq!(
        circuit.record(&calls(&"x".repeat(19)), at(21)),
        CircuitChange::Unchanged,
        "the minute before does not open it again"
    );
}

proptest! {
    /// Any batching opens the circuit at the same call, and never on fewer than twenty.
    #[test]
    fn batching_does_not_change_when_the_circuit_opens(
        seen in prop::collection::vec((prop::bool::weighted(0.6), 0_i64..15), 1..300), sizes in prop::collection::vec(1_usize..20, 300),
    ) {
        let mut time = 0;
        let seen: Vec<_> = seen.into_iter().map(|(bad, pause)| {
            time += pause / 10;
            (if bad { CallHealth::Failure } else { CallHealth::Success }, time)
        }).collect();
        let opened = |circuit: &mut Circuit, calls: &[(CallHealth, i64)]| {
            let healths: Vec<_> = calls.iter().map(|(health, _)| (*health, false)).collect();
            circuit.record(&healths, at(calls[0].1)) == CircuitChange::Opened
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

    /// From any state twenty failures open the circuit, and the first successful probe closes it.
    #[test]
    fn twenty_failures_always_open_the_circuit(before in prop::collection::vec(any::<bool>(), 0..100), pause in 0_i64..100) {
        let mut circuit = Circuit::default();
        let before: Vec<_> = before.into_iter().map(|good| (if good { CallHealth::Success } else { CallHealth::Failure }, false)).collect();
        circuit.record(&before, at(0));
        let was_open = circuit.is_open;
        let change = circuit.record(&calls(&"x".repeat(20)), at(pause));
        prop_assert_eq!(change, if was_open { CircuitChange::Unchanged } else { CircuitChange::Opened });
        prop_assert_eq!(circuit.record(&[(CallHealth::Success, true)], at(pause)), CircuitChange::Closed);
    }
}
