//! Alerts (SPEC R12): what goes wrong is raised, listed, acknowledged, silenced, and is over by itself with a reason. The
//! rules and the state are a pure machine (`machine`); here it meets events, time, and those who are told.

mod alert;
mod machine;
mod measure;
mod rule;
mod series;
mod webhook;

use std::convert::Infallible;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};
use std::time::Duration;

use serde_json::{Value, json};
use steadyhand::{
    BreakerState, Event, FailureCode, Observer, ObserverQueue, Outcome, ToolExecutor, Watch, clock,
};
use steadyhand_mcp::Phase;
use tokio::time::Instant;

use crate::live::{AlertChanged, Live, LiveEvent};
pub use alert::{Alert, AlertState, Change, ChangeKind};
pub use machine::{Ended, Machine, Now};
pub use rule::{Rule, Watched};
use steadyhand_config::settings::{AlertSettings, LogLevel};
use steadyhand_runtime::net::{Client, Url};
use steadyhand_runtime::pins::Pins;
use steadyhand_runtime::runtime::NOTICE;
use steadyhand_runtime::runtime::Runtime;
use webhook::Webhook;

/// How often everything is looked at.
const LOOK: Duration = Duration::from_secs(1);
/// What happened is known well before that. A thread that is woken for every event costs more than all it does.
const QUEUE: ObserverQueue = ObserverQueue {
    events_max: 16 * 1024,
    gather: Duration::from_millis(50),
};

/// The alerts of a server. Cheap to clone: clones are the same.
#[derive(Clone)]
pub struct Alerts {
    inner: Arc<Inner>,
}

struct Inner {
    http: Client,
    live: Live,
    machine: Mutex<Machine>,
    told: Mutex<Told>,
    watch: OnceLock<Watch>,
}

#[derive(Default)]
struct Told {
    /// For each rule.
    targets: Vec<Target>,
    webhooks: Vec<Arc<Webhook>>,
}

#[derive(Clone)]
struct Target {
    log: Option<LogLevel>,
    webhook: Option<Arc<Webhook>>,
}

impl Alerts {
    /// With the rules that hold where nothing is configured.
    pub fn new(http: Client, live: Live) -> Alerts {
        let rules = Rule::defaults();
        let targets = rules.iter().map(|_| Target::default()).collect();
        Alerts {
            inner: Arc::new(Inner {
                http,
                live,
                machine: Mutex::new(Machine::new(rules)),
                told: Mutex::new(Told {
                    targets,
                    webhooks: Vec::new(),
                }),
                watch: OnceLock::new(),
            }),
        }
    }

    /// From here on, what happens to the calls of this executor counts.
    pub fn follow(&self, executor: &ToolExecutor) -> std::io::Result<()> {
        let watching = Watching(Arc::downgrade(&self.inner));
        let watch = executor.observe_with_queue(watching, QUEUE)?;
        let _ = self.inner.watch.set(watch);
        Ok(())
    }

    /// The rules of a configuration, references replaced. What it says nothing of keeps its default.
    pub fn apply(&self, settings: &[AlertSettings]) {
        let mut rules = Vec::new();
        let mut targets = Vec::new();
        let mut told = self.told();
        let mut webhooks: Vec<Arc<Webhook>> = Vec::new();
        for one in settings {
            // The check of the file has told what is wrong with it.
            let Ok(rule) = Rule::of_settings(one) else {
                continue;
            };
            let webhook = one.notify.webhook.as_ref().and_then(|address| {
                let url = Url::parse(address.expose()).ok()?;
                let secret = one.notify.secret.as_ref();
                let is_it = |known: &&Arc<Webhook>| known.is(&url, secret);
                let known = webhooks
                    .iter()
                    .find(is_it)
                    .or(told.webhooks.iter().find(is_it));
                Some(match known {
                    Some(known) => Arc::clone(known),
                    None => {
                        let http = self.inner.http.clone();
                        Arc::new(Webhook::new(url, secret.cloned(), http))
                    }
                })
            });
            webhooks.extend(webhook.clone());
            rules.push(rule);
            targets.push(Target {
                log: one
                    .notify
                    .log
                    .or(webhook.is_none().then_some(LogLevel::Warn)),
                webhook,
            });
        }
        let said: Vec<Watched> = rules.iter().map(|rule| rule.watched).collect();
        for rule in Rule::defaults() {
            if !said.contains(&rule.watched) {
                rules.push(rule);
                targets.push(Target::default());
            }
        }
        webhooks.dedup_by(|one, other| Arc::ptr_eq(one, other));
        *told = Told { targets, webhooks };
        drop(told);
        let changes = self.machine().replace_rules(rules, now());
        // Their rules have no target any more: they are told to those who watch.
        changes.iter().for_each(|change| self.publish(change));
    }

    /// Looks at everything every second, for ever.
    pub async fn watch(
        &self,
        runtime: &Runtime,
        pins: &Pins,
        waiting: impl Fn() -> Vec<(String, Instant)>,
    ) -> Infallible {
        let mut every = tokio::time::interval(LOOK);
        every.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        loop {
            every.tick().await;
            self.machine().approvals_wait(waiting());
            self.look_at_breakers(runtime);
            self.look_at_servers(runtime);
            self.look_at_definitions(pins);
            let changes = self.machine().tick(now());
            self.tell(changes);
        }
    }

    /// A model's answer was not what its provider accepts.
    pub fn response_invalid(&self, provider: &str) {
        self.machine().response_invalid(provider, now());
    }

    /// A conversation was mended on its way to this provider.
    pub fn conversation_mended(&self, provider: &str) {
        self.machine().conversation_mended(provider, now());
    }

    /// Something is so, and why; or it is over, and what ended it.
    pub fn state(&self, watched: Watched, subject: &str, is_so: Result<String, String>) {
        let changes = self.machine().state(watched, subject, is_so, now());
        self.tell(changes);
    }

    /// One that is so, or was.
    pub fn find(&self, id: &str) -> Option<Alert> {
        let mut alerts = self.machine().alerts().into_iter();
        alerts.find(|alert| alert.id == id)
    }

    pub fn acknowledge(&self, id: &str, by: &str) -> Option<Alert> {
        let alert = self.machine().acknowledge(id, by, now())?;
        self.publish_alert(&alert);
        Some(alert)
    }

    pub fn silence(&self, id: &str, span: Duration) -> Option<Alert> {
        let alert = self.machine().silence(id, span, now())?;
        self.publish_alert(&alert);
        Some(alert)
    }

    /// How many are so now.
    pub fn active(&self) -> usize {
        let alerts = self.machine().alerts();
        let is_active = |alert: &&Alert| alert.state != AlertState::Cleared;
        alerts.iter().filter(is_active).count()
    }

    /// Those that nobody knows of yet, and that are not kept quiet.
    pub fn unseen(&self) -> Vec<Alert> {
        let mut alerts = self.machine().alerts();
        alerts
            .retain(|alert| alert.state == AlertState::Raised && alert.silenced_until_ms.is_none());
        alerts
    }

    /// Everything there is to know.
    pub fn view(&self) -> Value {
        let machine = self.machine();
        let alerts = machine.alerts();
        let rules: Vec<String> = machine.rules().iter().map(Rule::to_string).collect();
        drop(machine);
        let active = alerts
            .iter()
            .filter(|alert| alert.state != AlertState::Cleared);
        let told = self.told();
        let webhooks: Vec<Value> = told.webhooks.iter().map(|webhook| webhook.view()).collect();
        json!({
            "active": active.count(),
            "count": alerts.len(),
            "alerts": alerts,
            "rules": rules,
            "webhooks": webhooks,
        })
    }

    /// Runs on the observer's own thread.
    fn observe(&self, event: &Event) {
        match event {
            Event::Finished { outcome, .. } => {
                if let Some(ended) = ended(outcome) {
                    let took = outcome.running_time();
                    self.machine()
                        .call_ended(&outcome.tool_name, ended, took, now());
                }
            }
            Event::BreakerChanged {
                tool_name,
                to,
                cause,
                ..
            } => {
                let is_so = match to {
                    BreakerState::Open => {
                        let last = cause.as_ref().map_or(String::new(), |last| {
                            format!("; the last failure: {}", last.message)
                        });
                        Ok(format!(
                            "the breaker of {tool_name} is open: it failed too often in a row and is not run{last}"
                        ))
                    }
                    BreakerState::Closed => Err("its breaker is closed again".to_owned()),
                    // On its way: it was open, and a trial says what becomes of it.
                    BreakerState::HalfOpen => return,
                };
                self.state(Watched::BreakerOpen, tool_name, is_so);
            }
            _ => {}
        }
    }

    /// A breaker whose tool is gone, or whose end nobody heard of.
    fn look_at_breakers(&self, runtime: &Runtime) {
        for subject in self.subjects(Watched::BreakerOpen) {
            let because = match runtime
                .manager()
                .breaker(&subject)
                .map(|breaker| breaker.state)
            {
                None => "the tool, or its breaker, is gone",
                Some(BreakerState::Closed) => "its breaker is closed again",
                Some(BreakerState::Open | BreakerState::HalfOpen) => continue,
            };
            self.state(Watched::BreakerOpen, &subject, Err(because.to_owned()));
        }
    }

    /// Tools that are others than they were. One that is kept away is so for as long as it is.
    fn look_at_definitions(&self, pins: &Pins) {
        for change in pins.to_be_told() {
            self.state(Watched::ToolsChanged, &change.tool, Ok(change.words()));
        }
        for (tool, because) in pins.take_settled() {
            self.state(Watched::ToolsChanged, &tool, Err(because));
        }
    }

    fn look_at_servers(&self, runtime: &Runtime) {
        let servers = runtime.servers();
        let raised = self.subjects(Watched::ServerDown);
        for server in &servers {
            let is_known = raised.contains(&server.name);
            match (server.phase == Phase::Down, is_known) {
                (true, false) => {
                    let why = server.failure.as_ref().map(|failure| failure.summary());
                    let why = why.unwrap_or_else(|| "it does not answer".to_owned());
                    let message = format!("{} is down: {why}", server.name);
                    self.state(Watched::ServerDown, &server.name, Ok(message));
                }
                (false, true) => {
                    let because = format!("it is {}", server.phase.word());
                    self.state(Watched::ServerDown, &server.name, Err(because));
                }
                (true, true) | (false, false) => {}
            }
        }
        for gone in raised {
            if !servers.iter().any(|server| server.name == gone) {
                let because = "it is not configured any more".to_owned();
                self.state(Watched::ServerDown, &gone, Err(because));
            }
        }
    }

    fn subjects(&self, watched: Watched) -> Vec<String> {
        let alerts = self.machine().alerts();
        let of_it = alerts
            .into_iter()
            .filter(|alert| alert.watched == watched.word() && alert.state != AlertState::Cleared);
        of_it.map(|alert| alert.subject).collect()
    }

    fn tell(&self, changes: Vec<Change>) {
        for change in changes {
            self.publish(&change);
            let target = self.told().targets.get(change.rule).cloned();
            let Some(target) = target.filter(|_| !change.is_silenced) else {
                continue;
            };
            if let Some(level) = target.log {
                log(level, &change);
            }
            if let Some(webhook) = &target.webhook {
                webhook.send(&change);
            }
        }
    }

    fn publish(&self, change: &Change) {
        self.publish_alert(&change.alert);
    }

    fn publish_alert(&self, alert: &Alert) {
        self.inner
            .live
            .publish(LiveEvent::AlertChanged(AlertChanged {
                id: alert.id.clone(),
                state: alert.state.word().to_owned(),
                watched: alert.watched.clone(),
                subject: alert.subject.clone(),
                message: alert.message.clone(),
                at_ms: clock::wall_ms(),
            }));
    }

    fn machine(&self) -> MutexGuard<'_, Machine> {
        self.inner
            .machine
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    fn told(&self) -> MutexGuard<'_, Told> {
        self.inner
            .told
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}

/// Hears of calls. The engine must not keep alive what keeps the engine's tools alive.
struct Watching(Weak<Inner>);

impl Observer for Watching {
    fn observe(&self, event: &Event) {
        if let Some(inner) = self.0.upgrade() {
            Alerts { inner }.observe(event);
        }
    }

    fn wants(&self, event: &Event) -> bool {
        matches!(event, Event::Finished { .. } | Event::BreakerChanged { .. })
    }
}

/// A line of a log, where nothing else is said.
impl Default for Target {
    fn default() -> Target {
        Target {
            log: Some(LogLevel::Warn),
            webhook: None,
        }
    }
}

/// How a call ended, as far as rules care. What was refused before its tool was started is no failure of the tool.
fn ended(outcome: &Outcome) -> Option<Ended> {
    if outcome.replayed {
        return None;
    }
    let Some(failure) = outcome.failure() else {
        return Some(Ended::Well);
    };
    match (failure.code, outcome.attempts) {
        (FailureCode::Cancelled | FailureCode::ToolNotFound, _) => None,
        (FailureCode::ValidationError, 0) => Some(Ended::Invalid),
        (FailureCode::Overloaded, 0) => Some(Ended::NoRoom),
        (_, 0) => None,
        (_, _) => Some(Ended::Failed),
    }
}

fn log(level: LogLevel, change: &Change) {
    let alert = &change.alert;
    let (id, kind, message) = (&alert.id, change.kind.word(), &alert.message);
    let because = alert.cleared_because.as_deref();
    match level {
        // Somebody has asked for it: it is shown wherever warnings are.
        LogLevel::Info => tracing::info!(target: NOTICE, id, because, "{kind}: {message}"),
        LogLevel::Warn => tracing::warn!(id, because, "{kind}: {message}"),
        LogLevel::Error => tracing::error!(id, because, "{kind}: {message}"),
    }
}

fn now() -> Now {
    Now {
        instant: Instant::now(),
        wall_ms: clock::wall_ms(),
    }
}
