//! One call is one row (SPEC T02): whatever it waits for, however late its end is heard of, however often the process
//! ends in between.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use proptest::prelude::*;
use rusqlite::Connection;
use serde_json::json;
use steadyhand::redact::Secrets;
use steadyhand::{Effect, Event, FailureCode, Observer, Outcome, Output, clock};
use tokio::time::{Instant, advance};

use super::HistoryOptions;
use super::maintenance;
use super::record::CallState;
use super::recorder::{self, Recorder};
use super::schema::{KIND, read_id, state_of};
use super::shared::Shared;
use super::write::{Names, Writing};

const DEADLINE_MS: f64 = 60_000.0;

#[derive(Debug, Clone)]
enum Step {
    /// A call comes in, and waits for an approval or runs at once.
    Call {
        needs_approval: bool,
    },
    /// The oldest call that waits is approved, and its tool is started.
    Approve,
    /// The oldest call that runs ends.
    End,
    /// The oldest call that waits is denied.
    Deny,
    /// The oldest call ends and nobody hears of it: events were dropped.
    Lose,
    Wait(Duration),
    /// The writer does its work, and looks for calls whose end it has missed.
    Write,
    /// What is to be written fails, and waits again.
    FailToWrite,
    /// The process is killed, and another one takes over the file.
    Kill,
    /// The server ends by itself: every call is answered first.
    Drain,
}

fn step() -> impl Strategy<Value = Step> {
    let waits = [50, 200, 45_000, 95_000, 600_000, 10_800_000].map(Duration::from_millis);
    prop_oneof![
        4 => any::<bool>().prop_map(|needs_approval| Step::Call { needs_approval }),
        3 => Just(Step::Approve),
        3 => Just(Step::End),
        1 => Just(Step::Deny),
        1 => Just(Step::Lose),
        5 => proptest::sample::select(waits.to_vec()).prop_map(Step::Wait),
        5 => Just(Step::Write),
        1 => Just(Step::FailToWrite),
        1 => Just(Step::Kill),
        1 => Just(Step::Drain),
    ]
}

/// How far a call is, as the caller knows it.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Fate {
    Waiting,
    Running,
    /// Its end was told.
    Ended(CallState),
    /// Its end was not told.
    Lost {
        started: bool,
    },
}

/// A history whose writer is this test: it writes when it is told to, on a clock that stands still.
struct World {
    shared: Arc<Shared>,
    recorder: Recorder,
    connection: Connection,
    run: i64,
    fates: HashMap<u64, Fate>,
    /// Calls whose tool was started, and calls whose end is in the file.
    started: HashSet<u64>,
    written: HashSet<u64>,
    last: u64,
}

impl World {
    fn new() -> World {
        let shared = Arc::new(Shared::new(HistoryOptions::new("not a file")));
        let connection = Connection::open_in_memory().expect("memory");
        for step in KIND.migrations {
            connection.execute_batch(step).expect("SQL");
        }
        let mut world = World {
            recorder: Recorder::new(Arc::clone(&shared)),
            shared,
            connection,
            run: 1,
            fates: HashMap::new(),
            started: HashSet::new(),
            written: HashSet::new(),
            last: 0,
        };
        world.begin();
        world
    }

    fn begin(&mut self) {
        let now_ms = clock::wall_ms();
        maintenance::sign_of_life(&self.connection, self.run, now_ms).expect("written");
        maintenance::tell_interrupted(&mut self.connection, self.run, now_ms).expect("told");
    }

    fn oldest(&self, fate: Fate) -> Option<u64> {
        let of_it = self.fates.iter().filter(|(_, it)| **it == fate);
        of_it.map(|(number, _)| *number).min()
    }

    fn call(&mut self, needs_approval: bool) {
        self.last += 1;
        let (number, call_id, tool_name) = (self.last, id(self.last), "t".to_owned());
        self.recorder.observe(&Event::Started {
            number,
            call_id: call_id.clone(),
            tool_name: tool_name.clone(),
            at_ms: clock::wall_ms(),
            caller: None,
            traceparent: None,
            replay_of: None,
            source: None,
            deadline_ms: Some(DEADLINE_MS),
        });
        if !needs_approval {
            self.fates.insert(number, Fate::Running);
            return self.start(number);
        }
        self.fates.insert(number, Fate::Waiting);
        self.recorder.observe(&Event::ApprovalAsked {
            number,
            call_id,
            tool_name,
            elapsed_ms: 0.1,
            args: Some(Arc::new(json!({"door": "front"}))),
        });
    }

    fn start(&mut self, number: u64) {
        self.started.insert(number);
        self.recorder.observe(&Event::AttemptStarted {
            number,
            call_id: id(number),
            tool_name: "t".to_owned(),
            attempt: 1,
            elapsed_ms: 1.0,
            waited_ms: 0.0,
            args: None,
        });
    }

    fn approve(&mut self, number: u64) {
        self.recorder.observe(&Event::Approved {
            number,
            call_id: id(number),
            tool_name: "t".to_owned(),
            elapsed_ms: 2.0,
            waited_ms: 1.0,
            by: "ada".to_owned(),
        });
        // It is written down before the tool is started.
        self.write();
        self.fates.insert(number, Fate::Running);
        self.start(number);
    }

    fn end(&mut self, number: u64, failure: Option<(FailureCode, CallState)>) {
        let attempts = u32::from(self.fates[&number] == Fate::Running);
        let result = match failure {
            None => Ok(Output::json(json!("done"))),
            Some((code, _)) => {
                let effect = if attempts == 0 { "none" } else { "unknown" };
                let failure = json!({"code": code, "message": "no", "userMessage": "no",
                    "retryable": false, "effect": effect, "problems": []});
                Err(serde_json::from_value(failure).expect("a failure"))
            }
        };
        let state = failure.map_or(CallState::Ok, |(_, state)| state);
        self.recorder.observe(&Event::Finished {
            number,
            at_ms: clock::wall_ms(),
            args: None,
            sent: None,
            source: None,
            kind: Some("mock"),
            caller: None,
            traceparent: None,
            replay_of: None,
            secrets: Secrets::default(),
            outcome: Arc::new(Outcome {
                call_id: id(number),
                tool_name: "t".to_owned(),
                result,
                fallback: None,
                execution_time: Duration::from_millis(3),
                approval_time: Duration::ZERO,
                attempts,
                coerced: Vec::new(),
                dropped_arguments: Vec::new(),
                replayed: false,
            }),
        });
        self.fates.insert(number, Fate::Ended(state));
    }

    fn write(&mut self) {
        let now = Instant::now();
        // Not in the head of the loop: that would hold the lock while `push` wants it.
        let lost = self.shared.pending().lost(now);
        for open in lost {
            self.shared
                .push(recorder::lost(&open, clock::wall_ms(), 1000));
        }
        let batch = self.shared.pending().take(1000, now);
        let mut writing = Writing {
            names: &mut Names::default(),
            run: self.run,
            value_bytes_max: 1000,
        };
        writing
            .write(&mut self.connection, &batch)
            .expect("written");
        self.shared.pending().wrote(&batch);
        let ended = self.fates.iter();
        let ended = ended.filter(|(_, fate)| matches!(fate, Fate::Ended(_)));
        self.written.extend(ended.map(|(number, _)| *number));
    }

    fn fail_to_write(&self) {
        let batch = self.shared.pending().take(1000, Instant::now());
        self.shared.pending().give_back(batch);
    }

    /// Another process opens the file; what the one before it had not written is gone.
    fn restart(&mut self) {
        for (number, fate) in &mut self.fates {
            if !self.written.contains(number) {
                let started = self.started.contains(number);
                *fate = Fate::Lost { started };
            }
        }
        self.shared = Arc::new(Shared::new(HistoryOptions::new("not a file")));
        self.recorder = Recorder::new(Arc::clone(&self.shared));
        self.run += 1;
        self.begin();
    }

    fn drain(&mut self) {
        let cancelled = (FailureCode::Cancelled, CallState::Cancelled);
        for fate in [Fate::Waiting, Fate::Running] {
            while let Some(number) = self.oldest(fate) {
                self.end(number, Some(cancelled));
            }
        }
        self.write();
        self.restart();
    }

    async fn take(&mut self, step: Step) {
        match step {
            Step::Call { needs_approval } => self.call(needs_approval),
            Step::Approve => {
                if let Some(number) = self.oldest(Fate::Waiting) {
                    self.approve(number);
                }
            }
            Step::End => {
                if let Some(number) = self.oldest(Fate::Running) {
                    self.end(number, None);
                }
            }
            Step::Deny => {
                if let Some(number) = self.oldest(Fate::Waiting) {
                    let denied = (FailureCode::ApprovalDenied, CallState::Rejected);
                    self.end(number, Some(denied));
                }
            }
            Step::Lose => {
                if let Some(number) = self.oldest(Fate::Running) {
                    self.fates.insert(number, Fate::Lost { started: true });
                }
            }
            Step::Wait(duration) => advance(duration).await,
            Step::Write => self.write(),
            Step::FailToWrite => self.fail_to_write(),
            Step::Kill => self.restart(),
            Step::Drain => self.drain(),
        }
    }

    /// The states and effects of the rows of each call.
    fn rows(&self) -> HashMap<String, Vec<(CallState, Option<i64>)>> {
        let mut rows: HashMap<String, Vec<_>> = HashMap::new();
        let mut list = self
            .connection
            .prepare("SELECT id, state, effect FROM calls")
            .expect("SQL");
        let mut found = list.query([]).expect("rows");
        while let Some(row) = found.next().expect("a row") {
            let id = read_id(row.get_ref(0).expect("an id"));
            let state = state_of(row.get(1).expect("a state"));
            let effect = row.get(2).expect("an effect");
            rows.entry(id).or_default().push((state, effect));
        }
        rows
    }

    fn check(&self, is_over: bool) -> Result<(), TestCaseError> {
        let rows = self.rows();
        for (number, fate) in &self.fates {
            let of_it = rows.get(&id(*number)).map_or(&[][..], |rows| rows);
            prop_assert!(of_it.len() <= 1, "{number} {fate:?} is {of_it:?}");
            let Some((state, effect)) = of_it.first() else {
                continue;
            };
            let is_none = *effect == Some(super::schema::effect_number(Effect::None));
            match fate {
                Fate::Ended(ended) if is_over => {
                    prop_assert_eq!(state, ended, "{} as it ended", number);
                }
                Fate::Lost { started: true } => {
                    prop_assert!(!is_none, "{number} was started, and is told as not run");
                }
                Fate::Lost { started: false } if *state == CallState::Interrupted => {
                    prop_assert!(is_none, "{number} was never started");
                }
                Fate::Waiting | Fate::Running => {
                    prop_assert!(
                        !is_none || *state != CallState::Interrupted,
                        "{number} lives"
                    );
                }
                _ => {}
            }
        }
        Ok(())
    }
}

fn id(number: u64) -> String {
    format!("c-{number}")
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn t02_one_call_is_one_row_over_long_waits_restarts_and_drains(
        steps in proptest::collection::vec(step(), 1..60)
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_time()
            .start_paused(true)
            .build()
            .expect("a runtime");
        runtime.block_on(async {
            let mut world = World::new();
            for step in steps {
                world.take(step).await;
                world.check(false)?;
            }
            world.write();
            world.check(true)
        })?;
    }
}

#[tokio::test(start_paused = true)]
async fn t02_a_call_that_is_approved_after_a_long_time_is_one_row_that_says_how_it_ended() {
    let mut world = World::new();
    world
        .take(Step::Call {
            needs_approval: true,
        })
        .await;
    for _ in 0..4 {
        world.take(Step::Wait(Duration::from_secs(40))).await;
        world.write();
    }
    world.take(Step::Approve).await;
    world.take(Step::End).await;
    world.write();
    let told = [(CallState::Ok, None)];
    assert_eq!(world.rows()[&id(1)], told);
}
