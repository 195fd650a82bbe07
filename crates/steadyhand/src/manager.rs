//! All tools now: ordered, found by name or alias, swapped as a whole while calls run.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use arc_swap::{ArcSwap, ArcSwapOption, Guard};
use foldhash::fast::RandomState;
use parking_lot::{Mutex, MutexGuard};
use tokio::sync::watch;
use tokio::time::Instant;

use crate::arrival::Arrivals;
use crate::call::Arguments;
use crate::clock;
use crate::event::Event;
use crate::failure::Failure;
use crate::guard::breaker::{Breaker, BreakerState, Change};
use crate::guard::caller_lines::CallerLines;
use crate::guard::limit::Limit;
use crate::guard::retry::Budget;
use crate::metrics::{BreakerView, LastFailure, Metrics, ToolMetrics};
use crate::near_names::{COMPARED_CHARS_MAX, COMPARED_NAMES_MAX};
use crate::observer::Observers;
use crate::policy::Policy;
use crate::schema::{self, CheckFailure, Mended, Rules, STEPS_MAX, Schema};
use crate::state::States;
use crate::tool::Tool;
use crate::tool_source::{SourceError, ToolSource};

const NAME_BYTES_MAX: usize = 256;
const SUGGESTIONS_MAX: usize = 3;

/// The collection of all tools. Cheap to clone: clones are the same collection.
#[derive(Clone, Default)]
pub struct ToolManager {
    inner: Arc<Inner>,
}

#[derive(Default)]
struct Inner {
    catalogue: ArcSwap<Catalogue>,
    defaults: ArcSwap<Policy>,
    states: ArcSwap<States>,
    observers: Arc<Observers>,
    unknown_calls: AtomicU64,
    arrivals: ArcSwapOption<Box<dyn Arrivals>>,
    /// Counts the times the tools changed.
    version: watch::Sender<u64>,
    // One writer at a time; readers never wait.
    writing: Mutex<()>,
}

impl ToolManager {
    /// No tools.
    pub fn new() -> ToolManager {
        ToolManager::default()
    }

    /// The policy of tools that are added from here on, where they do not say otherwise.
    #[must_use]
    pub fn with_defaults(self, policy: Policy) -> ToolManager {
        self.inner.defaults.store(Arc::new(policy));
        self
    }

    /// Calls of tools that are not there yet wait for what these know to be on its way.
    pub fn expect(&self, arrivals: impl Arrivals + 'static) {
        self.inner
            .arrivals
            .store(Some(Arc::new(Box::new(arrivals))));
    }

    /// A value that tools added from here on may ask for as [`State<T>`](crate::State).
    #[must_use]
    pub fn with_state<T: Clone + Send + Sync + 'static>(self, value: T) -> ToolManager {
        let mut states = States::clone(&self.inner.states.load());
        states.insert(value);
        self.inner.states.store(Arc::new(states));
        self
    }

    /// Adds a tool, after checking its definition (SPEC V06). A tool of the same name is replaced,
    /// with a warning (SPEC D3); it keeps its place in the order and its counters.
    pub fn add(&self, tool: Tool) -> Result<(), RefusedTool> {
        match self.add_all([tool]).pop() {
            None => Ok(()),
            Some(refused) => Err(refused),
        }
    }

    /// Adds many tools in one swap. Gives back the ones that were refused; the others are in.
    pub fn add_all(&self, tools: impl IntoIterator<Item = Tool>) -> Vec<RefusedTool> {
        let _writing = self.writing();
        let mut entries = self.catalogue().entries.clone();
        let refused = self.put(&mut entries, tools);
        self.publish(entries);
        refused
    }

    /// Puts the tools of one source in the place of the ones it had, in one swap.
    pub fn replace_source(
        &self,
        source: &str,
        tools: impl IntoIterator<Item = Tool>,
    ) -> Vec<RefusedTool> {
        let source: Arc<str> = source.into();
        let tools: Vec<Tool> = tools
            .into_iter()
            .map(|tool| tool.from_source(Arc::clone(&source)))
            .collect();
        let _writing = self.writing();
        let mut entries = self.catalogue().entries.clone();
        entries.retain(|entry| {
            entry.tool.source() != Some(&*source)
                || tools.iter().any(|tool| tool.name() == entry.tool.name())
        });
        let refused = self.put(&mut entries, tools);
        self.publish(entries);
        refused
    }

    /// Puts these tools in the place of all there are, in one swap. One that is handed in unchanged (a
    /// clone of the one there is) goes on as it is: breaker, queue, counters.
    pub fn replace_all(&self, tools: impl IntoIterator<Item = Tool>) -> Vec<RefusedTool> {
        let _writing = self.writing();
        let before = self.catalogue();
        let mut entries: Vec<Arc<Entry>> = Vec::new();
        let mut places: HashMap<String, usize> = HashMap::new();
        let mut refused = Vec::new();
        for tool in tools {
            let old = before.find(tool.name());
            let entry = match old {
                Some(old) if old.tool.is_same_as(&tool) => Arc::clone(old),
                _ => match self.entry(tool) {
                    Ok(entry) => Arc::new(entry.counting_on_from(old)),
                    Err(refusal) => {
                        refused.push(refusal);
                        continue;
                    }
                },
            };
            let name = entry.tool.name().to_owned();
            match places.get(&name) {
                Some(place) => {
                    tracing::warn!(
                        tool = name,
                        "a tool of this name is replaced by a newer one"
                    );
                    entries[*place] = entry;
                }
                None => {
                    places.insert(name, entries.len());
                    entries.push(entry);
                }
            }
        }
        self.publish(entries);
        refused
    }

    /// Asks a source for its tools and takes them in.
    pub async fn load(&self, source: &dyn ToolSource) -> Result<Vec<RefusedTool>, SourceError> {
        let tools = source.tools().await?;
        Ok(self.replace_source(source.name(), tools))
    }

    /// Takes a tool out. Calls that run go on with it.
    pub fn remove(&self, name: &str) -> Option<Arc<Tool>> {
        let _writing = self.writing();
        let catalogue = self.catalogue();
        let removed = Arc::clone(&catalogue.find(name)?.tool);
        let mut entries = catalogue.entries.clone();
        entries.retain(|entry| !Arc::ptr_eq(&entry.tool, &removed));
        self.publish(entries);
        Some(removed)
    }

    /// A tool by name or alias.
    pub fn find(&self, name: &str) -> Option<Arc<Tool>> {
        Some(Arc::clone(&self.catalogue().find(name)?.tool))
    }

    /// All tools in their order, as they were defined.
    pub fn list(&self) -> Vec<Arc<Tool>> {
        let catalogue = self.catalogue();
        catalogue
            .entries
            .iter()
            .map(|entry| Arc::clone(&entry.tool))
            .collect()
    }

    /// How many tools there are.
    pub fn len(&self) -> usize {
        self.catalogue().entries.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Told whenever the tools change.
    pub fn changes(&self) -> watch::Receiver<u64> {
        self.inner.version.subscribe()
    }

    /// The policy a tool runs under.
    pub fn policy(&self, name: &str) -> Option<Policy> {
        Some(self.catalogue().find(name)?.policy.clone())
    }

    /// The counters of one tool.
    pub fn metrics(&self, name: &str) -> Option<ToolMetrics> {
        Some(self.catalogue().find(name)?.snapshot())
    }

    /// The counters of all tools, in their order.
    pub fn all_metrics(&self) -> Vec<(String, ToolMetrics)> {
        let catalogue = self.catalogue();
        let snapshot = |entry: &Arc<Entry>| (entry.tool.name().to_owned(), entry.snapshot());
        catalogue.entries.iter().map(snapshot).collect()
    }

    /// Calls that asked for a tool nobody has: they belong to no tool's counters.
    pub fn unknown_calls(&self) -> u64 {
        self.inner.unknown_calls.load(Ordering::Relaxed)
    }

    /// Where a tool's breaker stands; none for unknown tools and tools without one.
    pub fn breaker(&self, name: &str) -> Option<BreakerView> {
        let catalogue = self.catalogue();
        catalogue.find(name)?.breaker_view()
    }

    /// Closes a tool's breaker by hand. False if there is no such tool.
    pub fn reset_breaker(&self, name: &str) -> bool {
        let catalogue = self.catalogue();
        let Some(entry) = catalogue.find(name) else {
            return false;
        };
        if let Some(breaker) = &entry.breaker {
            entry.tell_change(breaker.reset(), &self.inner.observers);
        }
        true
    }

    /// Checks arguments as a call would, without one: every fault in them, or nothing. None if there is no such tool.
    pub fn check(&self, name: &str, mut arguments: Arguments) -> Option<Result<(), Box<Failure>>> {
        let catalogue = self.catalogue();
        let entry = catalogue.find(name)?;
        Some(entry.check(&mut arguments))
    }

    /// Lets the next call of a tool whose breaker is open through, as the trial, without waiting for the end of its
    /// rest. False if there is no such tool.
    pub fn allow_trial(&self, name: &str) -> bool {
        let catalogue = self.catalogue();
        let Some(entry) = catalogue.find(name) else {
            return false;
        };
        if let Some(breaker) = &entry.breaker {
            breaker.rested();
        }
        true
    }

    /// How long the open breaker of a tool still rests before a trial; none if it is not open.
    pub fn rest_of_breaker(&self, name: &str) -> Option<Duration> {
        let catalogue = self.catalogue();
        let entry = catalogue.find(name)?;
        let rest_ms = entry.breaker.as_ref()?.rest_ms(entry.ms(Instant::now()))?;
        Some(Duration::from_millis(rest_ms))
    }

    pub(crate) fn catalogue(&self) -> Guard<Arc<Catalogue>> {
        self.inner.catalogue.load()
    }

    pub(crate) fn count_unknown_call(&self) {
        self.inner.unknown_calls.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn observers(&self) -> &Arc<Observers> {
        &self.inner.observers
    }

    pub(crate) fn arrivals(&self) -> Option<Arc<Box<dyn Arrivals>>> {
        self.inner.arrivals.load_full()
    }

    pub(crate) fn default_deadline(&self) -> std::time::Duration {
        self.inner.defaults.load().deadline
    }

    fn writing(&self) -> MutexGuard<'_, ()> {
        // Nothing is left half done by a panic: what is published is whole.
        self.inner.writing.lock()
    }

    fn put(
        &self,
        entries: &mut Vec<Arc<Entry>>,
        tools: impl IntoIterator<Item = Tool>,
    ) -> Vec<RefusedTool> {
        let mut places: HashMap<String, usize> = entries
            .iter()
            .enumerate()
            .map(|(place, entry)| (entry.tool.name().to_owned(), place))
            .collect();
        let mut refused = Vec::new();
        for tool in tools {
            let entry = match self.entry(tool) {
                Ok(entry) => entry,
                Err(refusal) => {
                    refused.push(refusal);
                    continue;
                }
            };
            let name = entry.tool.name().to_owned();
            match places.get(&name) {
                Some(place) => {
                    let old = &entries[*place];
                    if old.tool.source().is_none() || old.tool.source() != entry.tool.source() {
                        tracing::warn!(
                            tool = name,
                            "a tool of this name is replaced by a newer one"
                        );
                    }
                    entries[*place] = Arc::new(entry.counting_on_from(Some(old)));
                }
                None => {
                    places.insert(name, entries.len());
                    entries.push(Arc::new(entry));
                }
            }
        }
        refused
    }

    fn entry(&self, tool: Tool) -> Result<Entry, RefusedTool> {
        Entry::new(
            tool,
            &self.inner.defaults.load(),
            &self.inner.states.load_full(),
        )
    }

    fn publish(&self, entries: Vec<Arc<Entry>>) {
        self.inner
            .catalogue
            .store(Arc::new(Catalogue::new(entries)));
        self.inner.version.send_modify(|version| *version += 1);
    }
}

impl fmt::Debug for ToolManager {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ToolManager({} tools)", self.len())
    }
}

/// A definition that was not taken in, and why.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("tool '{name}' was refused: {fault}")]
pub struct RefusedTool {
    /// The tool, by the name it came with.
    pub name: String,
    /// What is wrong with it, and what to do.
    pub fault: String,
}

/// All tools at one moment. A call runs against the catalogue it was resolved in.
#[derive(Default)]
pub(crate) struct Catalogue {
    entries: Vec<Arc<Entry>>,
    by_name: HashMap<Box<str>, usize, RandomState>,
}

impl Catalogue {
    fn new(entries: Vec<Arc<Entry>>) -> Catalogue {
        let mut by_name =
            HashMap::with_capacity_and_hasher(entries.len() * 2, RandomState::default());
        // Aliases first: a name is stronger than another tool's alias.
        for (place, entry) in entries.iter().enumerate() {
            if let Some(alias) = entry.tool.lc_name()
                && by_name.insert(alias.into(), place).is_some()
            {
                tracing::warn!(
                    alias,
                    "two tools have this lc_name; the newer one is found by it"
                );
            }
        }
        for (place, entry) in entries.iter().enumerate() {
            let taken = by_name.insert(entry.tool.name().into(), place);
            if taken.is_some_and(|other| other != place) {
                tracing::warn!(
                    tool = entry.tool.name(),
                    "another tool's alias is this tool's name; the name wins"
                );
            }
        }
        Catalogue { entries, by_name }
    }

    pub(crate) fn find(&self, name: &str) -> Option<&Arc<Entry>> {
        self.by_name.get(name).map(|place| &self.entries[*place])
    }

    /// Names close to one that nobody has, the closest first.
    pub(crate) fn near(&self, name: &str) -> Vec<String> {
        let wanted = folded(name);
        let mut near: Vec<(f64, &str)> = self
            .entries
            .iter()
            .take(COMPARED_NAMES_MAX)
            .map(|entry| {
                let name = entry.tool.name();
                let whole = likeness(&wanted, &entry.folded);
                // A tool of a server that was asked for by its bare name.
                let bare = name.rsplit_once("__");
                let bare = bare.map_or(0.0, |(_, bare)| likeness(&wanted, &folded(bare)));
                (whole.max(bare), name)
            })
            .filter(|(likeness, _)| *likeness >= 0.84)
            .collect();
        near.sort_by(|a, b| b.0.total_cmp(&a.0));
        near.into_iter()
            .take(SUGGESTIONS_MAX)
            .map(|(_, name)| name.to_owned())
            .collect()
    }
}

/// How alike two folded names are, from 0 to 1.
fn likeness(wanted: &str, known: &str) -> f64 {
    match known.len().abs_diff(wanted.len()) <= 8 {
        true => strsim::jaro_winkler(wanted, known),
        false => 0.0,
    }
}

/// A name without what people and models get wrong: case and separators.
fn folded(name: &str) -> String {
    name.chars()
        .filter(|c| c.is_alphanumeric())
        .flat_map(char::to_lowercase)
        .take(COMPARED_CHARS_MAX)
        .collect()
}

/// One tool with everything that protects it.
pub(crate) struct Entry {
    pub(crate) tool: Arc<Tool>,
    pub(crate) policy: Policy,
    pub(crate) schema: Arc<Schema>,
    pub(crate) rules: Rules,
    pub(crate) breaker: Option<Breaker>,
    /// What the breaker last counted.
    last_failure: Mutex<Option<LastFailure>>,
    pub(crate) limit: Limit,
    pub(crate) lines: CallerLines,
    pub(crate) budget: Option<Budget>,
    pub(crate) metrics: Arc<Metrics>,
    pub(crate) states: Arc<States>,
    folded: String,
    epoch: Instant,
}

impl Entry {
    fn new(tool: Tool, defaults: &Policy, states: &Arc<States>) -> Result<Entry, RefusedTool> {
        let refuse = |fault: String| RefusedTool {
            name: tool.name().to_owned(),
            fault,
        };
        check_name(tool.name()).map_err(refuse)?;
        if let Some(alias) = tool.lc_name() {
            check_name(alias).map_err(|fault| refuse(format!("its lc_name: {fault}")))?;
        }
        if tool.description().trim().is_empty() {
            return Err(refuse(
                "it has no description; models choose a tool by its description, so say what it does"
                    .to_owned(),
            ));
        }
        if let Some(need) = tool.needs().iter().find(|need| !states.has(need)) {
            return Err(refuse(format!(
                "it asks for State<{0}>, which the manager does not have; give it with ToolManager::with_state first",
                need.type_name
            )));
        }
        let schema = Schema::compile(tool.schema()).map_err(refuse)?;
        let policy = tool.policy_from(defaults);
        Ok(Entry {
            schema: Arc::new(schema),
            rules: Rules {
                strict: policy.strict,
                coerce: policy.coerce,
                args_bytes_max: policy.args_bytes_max,
            },
            breaker: policy.breaker.map(Breaker::new),
            last_failure: Mutex::default(),
            limit: Limit::new(policy.limit),
            lines: CallerLines::default(),
            budget: policy.retry.budget.map(Budget::new),
            metrics: Arc::default(),
            states: Arc::clone(states),
            folded: folded(tool.name()),
            epoch: Instant::now(),
            tool: Arc::new(tool),
            policy,
        })
    }

    /// Checks arguments on this thread, with all the steps they may take.
    fn check(&self, arguments: &mut Arguments) -> Result<(), Box<Failure>> {
        let (document, mended) = (self.tool.schema(), &mut Mended::default());
        let args = schema::read(
            arguments,
            document,
            self.rules,
            self.tool.preparation(),
            mended,
        )?;
        let mut steps = STEPS_MAX;
        let checked = self
            .schema
            .check(args, document, self.rules, mended, &mut steps);
        checked.map_err(CheckFailure::into_failure)
    }

    /// The counters belong to the name: they go on when the tool behind it is another one.
    fn counting_on_from(mut self, old: Option<&Arc<Entry>>) -> Entry {
        if let Some(old) = old {
            self.metrics = Arc::clone(&old.metrics);
        }
        self
    }

    pub(crate) fn snapshot(&self) -> ToolMetrics {
        let waiting = self.limit.waiting() + self.lines.waiting();
        self.metrics.snapshot(self.breaker_view(), waiting)
    }

    pub(crate) fn breaker_view(&self) -> Option<BreakerView> {
        let breaker = self.breaker.as_ref()?;
        Some(BreakerView::of(breaker, self.last_failure()))
    }

    /// The breaker counts this failure of a call: what is wrong with the tool stays known while calls are refused.
    pub(crate) fn breaker_counts(&self, failure: &Failure, call_id: &str) {
        if self.breaker.is_some() {
            let last = LastFailure::of(failure, call_id);
            *self.last_failure.lock() = Some(last);
        }
    }

    /// The last failure that the breaker counted.
    pub(crate) fn last_failure(&self) -> Option<LastFailure> {
        self.last_failure.lock().clone()
    }

    /// Milliseconds of this tool's breaker.
    pub(crate) fn ms(&self, now: Instant) -> u64 {
        now.saturating_duration_since(self.epoch).as_millis() as u64
    }

    /// Tells those who watch that the breaker moved; called after it did, with nothing locked.
    pub(crate) fn tell_change(&self, change: Option<Change>, observers: &Observers) {
        let Some(Change { from, to }) = change else {
            return;
        };
        tracing::info!(tool = self.tool.name(), ?from, ?to, "breaker changed");
        if observers.is_empty() {
            return;
        }
        observers.tell(Event::BreakerChanged {
            tool_name: self.tool.name().to_owned(),
            from,
            to,
            at_ms: clock::wall_ms(),
            cause: self.last_failure().filter(|_| to == BreakerState::Open),
        });
    }
}

fn check_name(name: &str) -> Result<(), String> {
    if name.trim().is_empty() {
        return Err("it has no name".to_owned());
    }
    if name.len() > NAME_BYTES_MAX {
        return Err(format!("its name is longer than {NAME_BYTES_MAX} bytes"));
    }
    if name.chars().any(|c| c.is_control() || c.is_whitespace()) {
        return Err(
            "its name has spaces or control characters; use letters, digits, _ and -".to_owned(),
        );
    }
    Ok(())
}
