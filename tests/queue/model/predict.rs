//! The expected behaviour of the queue, without SQL and without time.

use std::collections::{BTreeMap, BTreeSet};

use farescan::ids::{ItemId, ScanId};
use farescan::queue::store::BeginVerdict;
use farescan::queue::{Claim, WorkerId};

/// How a call ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CallOutcome {
    Ok,
    Empty,
    Degraded,
    Failed,
    /// The marketplace rejected the key; the item is requeued.
    KeyRejected,
}

impl CallOutcome {
    pub const ALL: [Self; 5] = [
        Self::Ok,
        Self::Empty,
        Self::Degraded,
        Self::Failed,
        Self::KeyRejected,
    ];

    fn status(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Empty => "empty",
            Self::Degraded | Self::KeyRejected => "degraded",
            Self::Failed => "",
        }
    }

    fn reason(self) -> &'static str {
        match self {
            Self::Ok | Self::Empty => "",
            Self::Degraded | Self::Failed => "upstream_timeout",
            Self::KeyRejected => "key_rejected",
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ModelState {
    Pending,
    Claimed,
    Calling,
    Delayed,
    Held,
    Done,
    Failed,
    Cancelled,
}

#[derive(Debug)]
struct ModelItem {
    scan: ScanId,
    position: i32,
    state: ModelState,
    worker: Option<WorkerId>,
    number: i32,
    calls: i32,
    counted: i32,
    spent: i32,
    status: &'static str,
    reason: &'static str,
}

#[derive(Debug)]
struct ModelAttempt {
    spent: i32,
    open: bool,
    status: &'static str,
    reason: &'static str,
    /// How often the lane had been resumed when the call began.
    resumes: u32,
}

#[derive(Debug)]
struct ModelScan {
    status: &'static str,
    reason: &'static str,
    max_attempts: i32,
    max: Option<i32>,
    spent: i32,
    started: bool,
    finished: bool,
}

/// One lane and its scans.
#[derive(Debug, Default)]
pub struct QueueModel {
    scans: BTreeMap<ScanId, ModelScan>,
    items: BTreeMap<ItemId, ModelItem>,
    attempts: BTreeMap<(ItemId, i32), ModelAttempt>,
    /// The lane is paused until its caller resumes it.
    stopped: bool,
    /// How often the lane was resumed.
    resumes: u32,
}

const WAITING: [ModelState; 4] = [
    ModelState::Pending,
    ModelState::Claimed,
    ModelState::Delayed,
    ModelState::Held,
];

impl QueueModel {
    pub fn scans(&self) -> Vec<ScanId> {
        self.scans.keys().copied().collect()
    }

    pub fn submit(
        &mut self,
        scan: ScanId,
        max_attempts: i32,
        max: Option<i32>,
        items: impl Iterator<Item = (ItemId, i32)>,
    ) {
        let new = ModelScan {
            status: "queued",
            reason: "",
            max_attempts,
            max,
            spent: 0,
            started: false,
            finished: false,
        };
        self.scans.insert(scan, new);
        for (item, position) in items {
            let new = ModelItem {
                scan,
                position,
                state: ModelState::Pending,
                worker: None,
                number: 0,
                calls: 0,
                counted: 0,
                spent: 0,
                status: "",
                reason: "",
            };
            self.items.insert(item, new);
        }
    }

    /// Whether an item can be claimed.
    pub fn has_work(&self) -> bool {
        !self.stopped
            && self
                .items
                .values()
                .any(|item| item.state == ModelState::Pending)
    }

    /// Applies a claim that the database made.
    pub fn claimed(&mut self, claim: Claim) {
        assert!(!self.stopped, "a paused lane yielded {claim:?}");
        let item = self.items.get_mut(&claim.item).unwrap();
        assert_eq!(
            (item.state, item.number + 1),
            (ModelState::Pending, claim.number),
            "{claim:?}"
        );
        (item.state, item.number, item.worker) =
            (ModelState::Claimed, claim.number, Some(claim.worker));
    }

    pub fn begin(&mut self, claims: &[Claim]) -> Vec<BeginVerdict> {
        let mut verdicts: Vec<_> = claims
            .iter()
            .map(|claim| (*claim, BeginVerdict::ClaimLost))
            .collect();
        let mut order: Vec<_> = (0..claims.len()).collect();
        order.sort_by_key(|at| self.items[&claims[*at].item].position);
        for at in order {
            let claim = claims[at];
            let item = self.items.get_mut(&claim.item).unwrap();
            if (item.state, item.number, item.worker)
                != (ModelState::Claimed, claim.number, Some(claim.worker))
            {
                continue;
            }
            let scan = self.scans.get_mut(&item.scan).unwrap();
            verdicts[at].1 = if !matches!(scan.status, "queued" | "running") || self.stopped {
                BeginVerdict::Stopped
            } else if scan.max.is_some_and(|max| scan.spent >= max) {
                BeginVerdict::BudgetSpent
            } else {
                item.state = ModelState::Calling;
                (item.calls, item.counted, item.spent) =
                    (item.calls + 1, item.counted + 1, item.spent + 1);
                (scan.spent, scan.status, scan.started) = (scan.spent + 1, "running", true);
                self.attempts.insert(
                    (claim.item, claim.number),
                    ModelAttempt {
                        spent: 1,
                        open: true,
                        status: "",
                        reason: "",
                        resumes: self.resumes,
                    },
                );
                BeginVerdict::Begun
            };
        }
        verdicts.into_iter().map(|(_, verdict)| verdict).collect()
    }

    pub fn reserve_retry(&mut self, claim: Claim) -> bool {
        let item = self.items.get_mut(&claim.item).unwrap();
        let scan = self.scans.get_mut(&item.scan).unwrap();
        let is_live = (item.state, item.number) == (ModelState::Calling, claim.number);
        let taken =
            is_live && scan.status == "running" && scan.max.is_none_or(|max| scan.spent < max);
        if taken {
            (item.spent, scan.spent) = (item.spent + 1, scan.spent + 1);
            self.attempts
                .get_mut(&(claim.item, claim.number))
                .unwrap()
                .spent += 1;
        }
        taken
    }

    /// Records a call; `false` if it was already recorded.
    pub fn record(&mut self, claim: Claim, end: CallOutcome, billed: i32) -> bool {
        let outrun = self
            .attempts
            .range((claim.item, claim.number + 1)..=(claim.item, i32::MAX))
            .next()
            .is_some();
        let Some(attempt) = self.attempts.get_mut(&(claim.item, claim.number)) else {
            return false;
        };
        if !attempt.open && attempt.reason != "worker_lost" {
            return false;
        }
        let item = self.items.get_mut(&claim.item).unwrap();
        let scan = self.scans.get_mut(&item.scan).unwrap();
        // A rejection from before the last resume does not stop the lane.
        self.stopped |= end == CallOutcome::KeyRejected && attempt.resumes == self.resumes;
        let unused = attempt.spent - billed.min(attempt.spent);
        (attempt.spent, attempt.open) = (attempt.spent - unused, false);
        (attempt.status, attempt.reason) = (end.status(), end.reason());
        (item.spent, scan.spent) = (item.spent - unused, scan.spent - unused);

        let is_live = (item.state, item.number) == (ModelState::Calling, claim.number);
        let is_given_up = item.state == ModelState::Done && item.reason == "worker_lost";
        let ended = if end == CallOutcome::Failed {
            ModelState::Failed
        } else {
            ModelState::Done
        };
        let next = match end {
            CallOutcome::KeyRejected if is_live => Some(ModelState::Pending),
            CallOutcome::Degraded if is_live && item.counted < scan.max_attempts => {
                Some(ModelState::Delayed)
            }
            _ if is_live => Some(ended),
            CallOutcome::KeyRejected => None,
            _ if outrun => None,
            _ if is_given_up => Some(ended),
            // The retry has not begun, and a better answer makes it unnecessary.
            CallOutcome::Ok | CallOutcome::Empty | CallOutcome::Failed
                if WAITING.contains(&item.state) =>
            {
                Some(ended)
            }
            _ => None,
        };
        if let Some(next) = next {
            item.counted -= i32::from(is_live && end == CallOutcome::KeyRejected);
            (item.state, item.worker) = (next, None);
            item.status = if next == ModelState::Done {
                end.status()
            } else {
                ""
            };
            item.reason = if matches!(next, ModelState::Done | ModelState::Failed) {
                end.reason()
            } else {
                ""
            };
        }
        let scan = item.scan;
        self.end_if_complete(scan);
        self.apply_scan_status(scan);
        true
    }

    /// Abandons claims; returns how many calls were lost.
    pub fn abandon(&mut self, claims: &[Claim]) -> usize {
        let unique: BTreeSet<_> = claims
            .iter()
            .map(|claim| (claim.item, claim.number))
            .collect();
        let mut lost = 0;
        for (id, number) in unique {
            let item = self.items.get_mut(&id).unwrap();
            let scan = item.scan;
            match item.state {
                ModelState::Claimed if item.number == number => item.state = ModelState::Pending,
                ModelState::Calling if item.number == number => {
                    lost += 1;
                    let attempt = self.attempts.get_mut(&(id, number)).unwrap();
                    (attempt.open, attempt.status, attempt.reason) =
                        (false, "degraded", "worker_lost");
                    if item.counted < self.scans[&scan].max_attempts {
                        item.state = ModelState::Delayed;
                    } else {
                        (item.state, item.status, item.reason) =
                            (ModelState::Done, "degraded", "worker_lost");
                    }
                }
                _ => continue,
            }
            item.worker = None;
            self.end_if_complete(scan);
            self.apply_scan_status(scan);
        }
        lost
    }

    /// Calls that began and were not sent become claims again.
    pub fn withdraw_unsent(&mut self, claims: &[Claim]) {
        for claim in claims {
            let key = (claim.item, claim.number);
            let item = self.items.get_mut(&claim.item).unwrap();
            let is_live = (item.state, item.number) == (ModelState::Calling, claim.number);
            if is_live && self.attempts[&key].spent == 1 {
                self.attempts.remove(&key);
                item.state = ModelState::Claimed;
                (item.calls, item.counted, item.spent) =
                    (item.calls - 1, item.counted - 1, item.spent - 1);
                self.scans.get_mut(&item.scan).unwrap().spent -= 1;
            }
        }
    }

    pub fn expire_worker(&mut self, worker: WorkerId) {
        let of_worker = self
            .items
            .iter()
            .filter(|(_, item)| item.worker == Some(worker));
        let tenant = farescan::ids::TenantId::new();
        let claims: Vec<_> = of_worker
            .map(|(id, item)| Claim {
                worker,
                tenant,
                item: *id,
                number: item.number,
            })
            .collect();
        self.abandon(&claims);
    }

    /// Releases due retries; returns how many became pending.
    pub fn release(&mut self) -> usize {
        let delayed: Vec<_> = self
            .items
            .values_mut()
            .filter(|item| item.state == ModelState::Delayed)
            .collect();
        let count = delayed.len();
        for item in delayed {
            item.state = ModelState::Pending;
        }
        count
    }

    pub fn pause_for_budget(&mut self, id: ScanId) -> bool {
        let scan = self.scans.get_mut(&id).unwrap();
        let pauses = matches!(scan.status, "queued" | "running")
            && scan.max.is_some_and(|max| scan.spent >= max);
        if pauses {
            (scan.status, scan.reason) = ("paused", "budget_spent");
            self.set_state(id, &WAITING, ModelState::Held);
        }
        pauses
    }

    pub fn pause(&mut self, id: ScanId) -> bool {
        let scan = self.scans.get_mut(&id).unwrap();
        if !matches!(scan.status, "queued" | "running" | "paused") {
            return false;
        }
        (scan.status, scan.reason) = ("paused", "by_caller");
        self.set_state(id, &WAITING, ModelState::Held);
        true
    }

    pub fn resume(&mut self, id: ScanId) -> bool {
        let waits = self
            .items
            .values()
            .any(|item| item.scan == id && WAITING.contains(&item.state));
        let scan = self.scans.get_mut(&id).unwrap();
        let is_spent = scan
            .max
            .is_some_and(|max| max < scan.spent + i32::from(waits));
        match scan.status {
            "paused" if is_spent => return false,
            "paused" => scan.status = if scan.started { "running" } else { "queued" },
            "queued" | "running" => {}
            _ => return false,
        }
        scan.reason = "";
        self.stopped = false;
        self.resumes += 1;
        self.set_state(id, &[ModelState::Held], ModelState::Pending);
        true
    }

    pub fn cancel(&mut self, id: ScanId) -> bool {
        let scan = self.scans.get_mut(&id).unwrap();
        match scan.status {
            "cancelled" => {}
            "completed" | "incomplete" => return false,
            _ => {
                (scan.status, scan.reason) = ("cancelled", "");
                self.set_state(id, &WAITING, ModelState::Cancelled);
                self.end_if_complete(id);
            }
        }
        true
    }

    pub fn retry(&mut self, id: ScanId) -> bool {
        let scan = self.scans.get_mut(&id).unwrap();
        if scan.status == "cancelled" {
            return false;
        }
        let is_wanted = |item: &&mut ModelItem| {
            item.scan == id && (item.state == ModelState::Failed || item.status == "degraded")
        };
        let again: Vec<_> = self.items.values_mut().filter(is_wanted).collect();
        if again.is_empty() {
            return true;
        }
        if scan.status != "paused" {
            (scan.status, scan.reason) = ("running", "");
        }
        scan.finished = false;
        for item in again {
            item.state = if scan.status == "paused" {
                ModelState::Held
            } else {
                ModelState::Pending
            };
            (item.counted, item.status, item.reason) = (0, "", "");
        }
        true
    }

    fn set_state(&mut self, scan: ScanId, from: &[ModelState], to: ModelState) {
        for item in self
            .items
            .values_mut()
            .filter(|item| item.scan == scan && from.contains(&item.state))
        {
            (item.state, item.worker) = (to, None);
        }
    }

    /// Ends a scan once all its items have ended.
    fn end_if_complete(&mut self, id: ScanId) {
        let counts = self.counts(id);
        let scan = self.scans.get_mut(&id).unwrap();
        if counts.iter().sum::<usize>() < self.items.values().filter(|item| item.scan == id).count()
        {
            return;
        }
        let [.., partial, degraded, failed, _] = counts;
        let is_good = partial + degraded + failed == 0;
        if !scan.finished {
            (scan.finished, scan.reason) = (true, "");
            if scan.status != "cancelled" {
                scan.status = if is_good { "completed" } else { "incomplete" };
            }
        } else if scan.status == "incomplete" && is_good {
            scan.status = "completed";
        }
    }

    /// Requeued items follow the state of their scan.
    fn apply_scan_status(&mut self, id: ScanId) {
        match self.scans[&id].status {
            "paused" => self.set_state(
                id,
                &[ModelState::Pending, ModelState::Delayed],
                ModelState::Held,
            ),
            "cancelled" => {
                self.set_state(
                    id,
                    &[ModelState::Pending, ModelState::Delayed],
                    ModelState::Cancelled,
                );
                self.end_if_complete(id);
            }
            _ => {}
        }
    }

    /// Ended items: ok, empty, partial, degraded, failed, cancelled.
    fn counts(&self, scan: ScanId) -> [usize; 6] {
        let count = |is: &dyn Fn(&ModelItem) -> bool| {
            self.items
                .values()
                .filter(|item| item.scan == scan && is(item))
                .count()
        };
        let done = |status: &'static str| {
            move |item: &ModelItem| item.state == ModelState::Done && item.status == status
        };
        [
            count(&done("ok")),
            count(&done("empty")),
            count(&done("partial")),
            count(&done("degraded")),
            count(&|item| item.state == ModelState::Failed),
            count(&|item| item.state == ModelState::Cancelled),
        ]
    }

    /// All rows, in the format in which the test reads the database.
    pub fn rows(&self) -> Vec<String> {
        let join = |words: &[String]| {
            words
                .iter()
                .filter(|word| !word.is_empty())
                .cloned()
                .collect::<Vec<_>>()
                .join(" ")
        };
        let mut rows = Vec::new();
        for (id, item) in &self.items {
            let state = format!(
                "{:?} {} {} {} {}",
                item.state, item.number, item.calls, item.counted, item.spent
            )
            .to_lowercase();
            let worker = item
                .worker
                .map_or(String::new(), |worker| format!("of {}", worker.0));
            rows.push(format!(
                "{id}: {}",
                join(&[state, item.status.into(), item.reason.into(), worker])
            ));
        }
        for ((id, number), attempt) in &self.attempts {
            let open = if attempt.open { "open" } else { "" };
            let row = [
                attempt.spent.to_string(),
                open.into(),
                attempt.status.into(),
                attempt.reason.into(),
            ];
            rows.push(format!("{id} {number}: {}", join(&row)));
        }
        for (id, scan) in &self.scans {
            let counts = self.counts(*id).map(|count| count.to_string()).join(" ");
            let finished = if scan.finished { "finished" } else { "" };
            let row = [
                scan.status.into(),
                scan.reason.into(),
                counts,
                scan.spent.to_string(),
                finished.into(),
            ];
            rows.push(format!("{id}: {}", join(&row)));
        }
        rows
    }

    /// The invariants that hold after any step.
    pub fn check(&self) {
        for (id, scan) in &self.scans {
            let items = || self.items.iter().filter(|(_, item)| item.scan == *id);
            assert!(
                scan.max.is_none_or(|max| scan.spent <= max),
                "{id} spent more than it may"
            );
            assert_eq!(
                scan.spent,
                items().map(|(_, item)| item.spent).sum::<i32>(),
                "{id}"
            );
            let may_wait = matches!(scan.status, "queued" | "running");
            for (item, seen) in items() {
                let attempts: Vec<_> = self
                    .attempts
                    .range((*item, 0)..=(*item, i32::MAX))
                    .map(|(_, attempt)| attempt)
                    .collect();
                assert_eq!(
                    seen.spent,
                    attempts.iter().map(|attempt| attempt.spent).sum::<i32>(),
                    "{item}"
                );
                assert_eq!(
                    usize::try_from(seen.calls).unwrap(),
                    attempts.len(),
                    "{item}: each call is one attempt"
                );
                assert!(
                    seen.counted <= scan.max_attempts,
                    "{item} was called more often than its scan allows"
                );
                assert!(
                    attempts.iter().filter(|attempt| attempt.open).count() <= 1,
                    "{item} has two calls in flight"
                );
                assert!(
                    may_wait
                        || !matches!(
                            seen.state,
                            ModelState::Pending | ModelState::Claimed | ModelState::Delayed
                        ),
                    "{item} waits but {id} does not"
                );
                assert!(
                    scan.status == "paused" || seen.state != ModelState::Held,
                    "{item} is held but {id} is not paused"
                );
                assert_eq!(
                    seen.worker.is_some(),
                    matches!(seen.state, ModelState::Claimed | ModelState::Calling),
                    "{item}"
                );
            }
        }
    }
}
