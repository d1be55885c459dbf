//! The life of a scan's caller, in acts. Each is played in a world of its own, step by step: what the service is asked through HTTP, what
//! the queue does, what the sweep does. Together they run every statement of the program that has a tenant condition.

mod account;
mod calls;
mod circuit;
mod control;
mod history;
mod lost;
mod monitors;
mod orders;
mod phases;
mod sweep;
mod webhooks;

use std::pin::Pin;

use serde_json::{Value, json};

use super::hand::Comes;
use super::world::{Noticed, Seen, World};
use crate::scans::office;

type Playing<'a> = Pin<Box<dyn Future<Output = Seen> + Send + 'a>>;

/// An act and its name.
pub struct Act {
    pub name: &'static str,
    pub play: for<'a> fn(&'a mut World) -> Playing<'a>,
}

/// All acts.
pub const ACTS: &[Act] = &[
    Act {
        name: "orders",
        play: |world| Box::pin(orders::play(world)),
    },
    Act {
        name: "reading",
        play: |world| Box::pin(orders::reading(world)),
    },
    Act {
        name: "keys",
        play: |world| Box::pin(orders::keys(world)),
    },
    Act {
        name: "stranger",
        play: |world| Box::pin(orders::stranger(world)),
    },
    Act {
        name: "control",
        play: |world| Box::pin(control::play(world)),
    },
    Act {
        name: "pace",
        play: |world| Box::pin(control::pace(world)),
    },
    Act {
        name: "lost",
        play: |world| Box::pin(lost::play(world)),
    },
    Act {
        name: "late",
        play: |world| Box::pin(lost::late(world)),
    },
    Act {
        name: "phases",
        play: |world| Box::pin(phases::play(world)),
    },
    Act {
        name: "account",
        play: |world| Box::pin(account::play(world)),
    },
    Act {
        name: "prefer",
        play: |world| Box::pin(account::prefer(world)),
    },
    Act {
        name: "webhooks",
        play: |world| Box::pin(webhooks::play(world)),
    },
    Act {
        name: "alien webhooks",
        play: |world| Box::pin(webhooks::aliens(world)),
    },
    Act {
        name: "begun",
        play: |world| Box::pin(calls::begun(world)),
    },
    Act {
        name: "best",
        play: |world| Box::pin(calls::best(world)),
    },
    Act {
        name: "after the end",
        play: |world| Box::pin(calls::after_the_end(world)),
    },
    Act {
        name: "told",
        play: |world| Box::pin(calls::told(world)),
    },
    Act {
        name: "circuit",
        play: |world| Box::pin(circuit::play(world)),
    },
    Act {
        name: "old events",
        play: |world| Box::pin(sweep::events(world)),
    },
    Act {
        name: "old slots",
        play: |world| Box::pin(sweep::slots(world)),
    },
    Act {
        name: "expired key",
        play: |world| Box::pin(sweep::keys(world)),
    },
    Act {
        name: "alien phase",
        play: |world| Box::pin(sweep::phases(world)),
    },
    Act {
        name: "passing",
        play: |world| Box::pin(account::passing(world)),
    },
    Act {
        name: "monitors",
        play: |world| Box::pin(monitors::play(world)),
    },
    Act {
        name: "alien monitors",
        play: |world| Box::pin(monitors::aliens(world)),
    },
    Act {
        name: "alien runs",
        play: |world| Box::pin(monitors::runs(world)),
    },
    Act {
        name: "overlaps",
        play: |world| Box::pin(monitors::overlaps(world)),
    },
    Act {
        name: "judged",
        play: |world| Box::pin(monitors::judged(world)),
    },
    Act {
        name: "slots",
        play: |world| Box::pin(monitors::slots(world)),
    },
    Act {
        name: "history",
        play: |world| Box::pin(history::play(world)),
    },
    Act {
        name: "gaps",
        play: |world| Box::pin(history::gaps(world)),
    },
    Act {
        name: "days",
        play: |world| Box::pin(history::days(world)),
    },
];

/// What the twin has beside its copies: a scan that has ended, one that runs and a monitor, of a caller whose key is accepted.
pub async fn life_of_the_twin(world: &mut World) -> Seen {
    world
        .once(
            "life",
            "/v1/scans",
            order(2, &json!({"label": "of the twin"})),
        )
        .await?;
    world
        .finish(|at| Comes::Price(100 + u32::try_from(at).unwrap_or_default()))
        .await?;
    world
        .post("/v1/scans", order(2, &json!({"label": "of the twin"})))
        .await?;
    world
        .post("/v1/monitors", monitors::body("of the twin"))
        .await?;
    Ok(())
}

impl World {
    /// A POST with an `Idempotency-Key`.
    async fn once(&mut self, key: &str, path: &str, body: Value) -> Seen<Value> {
        self.ask_with("POST", path, &[("idempotency-key", key)], Some(body))
            .await
    }

    /// Orders a scan; its id.
    async fn order(&mut self, body: Value) -> Seen<String> {
        let answer = self.post("/v1/scans", body).await?;
        id(&answer)
    }

    /// A scan of one item through, so that the key is known to be accepted.
    async fn warm(&mut self) -> Seen<String> {
        let id = self
            .order(order(
                1,
                &json!({"request": {"from_airport": "TLV", "to_airport": "JFK"}}),
            ))
            .await?;
        self.finish(|_| Comes::Price(500)).await?;
        Ok(id)
    }
}

/// The id of an answer.
fn id(answer: &Value) -> Seen<String> {
    answer["id"]
        .as_str()
        .map(str::to_owned)
        .ok_or_else(|| Noticed(format!("no id: {answer}")))
}

/// A fare scan over the first dates of 2030, with more fields.
fn order(dates: usize, more: &Value) -> Value {
    let mut order = office::fares(dates);
    order
        .as_object_mut()
        .unwrap()
        .extend(more.as_object().unwrap().clone());
    order
}
