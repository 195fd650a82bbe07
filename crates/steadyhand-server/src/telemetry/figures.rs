//! Every figure that is exported, read from the engine's own counters at the moment someone asks. Both
//! exporters write down what stands here, so they cannot disagree.

use std::collections::BTreeSet;
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use steadyhand::{BreakerState, ByteBudget, Times, ToolManager, ToolMetrics};
use steadyhand_conversation::{Code, Provider, fixes_made};
use steadyhand_mcp::measures::{self, Durations, Measure};
use tokio::time::Instant;

/// Tools that get a label of their own; what is called beyond them is counted under [`OTHER`] together.
pub const TOOLS_MAX: usize = 1000;
/// Servers whose state is told.
const SERVERS_MAX: usize = 1000;
/// The label of all tools that have none.
pub const OTHER: &str = "other";

/// Reads all figures. There is one for a process: which tools have a label is remembered here.
pub struct Figures {
    manager: ToolManager,
    process: Box<dyn Fn() -> ProcessFigures + Send + Sync>,
    started: Instant,
    started_at: jiff::Timestamp,
    /// Spans that were not exported: their exporter counts here.
    spans_dropped: Arc<AtomicU64>,
    /// First called, first labelled: a series that was there once must not move to another label.
    labelled: Mutex<BTreeSet<String>>,
}

/// What the rest of the program knows about itself. Whoever has a figure fills it in.
#[derive(Debug, Clone, Default)]
pub struct ProcessFigures {
    /// The configuration in force, counted from 1.
    pub generation: u64,
    /// The history of calls, where there is one.
    pub history: Option<HistoryFigures>,
    /// Readers of live events.
    pub event_readers: u64,
    /// Live events that were dropped before anyone could read them.
    pub events_dropped: u64,
    /// MCP servers.
    pub servers: Vec<ServerFigures>,
    /// The proxy, where something has passed it.
    pub proxy: Option<ProxyFigures>,
}

/// What has passed the proxy.
#[derive(Debug, Clone, Default)]
pub struct ProxyFigures {
    /// Exchanges that ended, by provider and how.
    pub exchanges: Vec<(&'static str, &'static str, u64)>,
    /// Exchanges that are under way.
    pub open: u64,
    /// Answers whose calls were broken, by provider.
    pub broken_answers: Vec<(&'static str, u64)>,
}

/// How the history is doing.
#[derive(Debug, Clone, Copy, Default)]
pub struct HistoryFigures {
    /// Records that wait to be written.
    pub queued: u64,
    /// Records that were never written.
    pub dropped: u64,
}

/// How one MCP server is doing.
#[derive(Debug, Clone)]
pub struct ServerFigures {
    /// Its name in the configuration.
    pub name: String,
    /// One word: `ready`, `starting`, `down` …
    pub state: String,
    /// How often it was started.
    pub starts: u64,
}

/// One figure of many things: all tools, all servers.
#[derive(Debug, Clone, PartialEq)]
pub struct Family {
    /// With dots, without a prefix: `tool.calls`.
    pub name: &'static str,
    /// What it says.
    pub help: &'static str,
    /// What it counts.
    pub points: Points,
}

/// The values of a figure, each with its labels.
#[derive(Debug, Clone, PartialEq)]
pub enum Points {
    /// Only grows while the process lives.
    Counter(Vec<(Labels, u64)>),
    /// Goes up and down.
    Gauge(Vec<(Labels, f64)>),
    /// Seconds that go up.
    Seconds(f64),
    /// How times are spread.
    Times(Vec<(Labels, Times)>),
    /// The same by the bounds of OpenTelemetry's conventions for MCP, which name the labels, too.
    Durations(Vec<(Labels, Durations)>),
    /// Facts, as labels.
    Info(Labels),
}

/// What tells the values of one figure apart: never anything that comes from arguments.
pub type Labels = Vec<(&'static str, String)>;

impl Figures {
    /// The figures of these tools; `process` is asked each time for what the rest of the program knows.
    pub fn new(
        manager: ToolManager,
        process: impl Fn() -> ProcessFigures + Send + Sync + 'static,
    ) -> Figures {
        Figures {
            manager,
            process: Box::new(process),
            started: Instant::now(),
            started_at: jiff::Timestamp::now(),
            spans_dropped: Arc::default(),
            labelled: Mutex::default(),
        }
    }

    /// Since when counters count.
    pub fn started_at(&self) -> jiff::Timestamp {
        self.started_at
    }

    pub fn spans_dropped(&self) -> &Arc<AtomicU64> {
        &self.spans_dropped
    }

    /// All of them, now.
    pub fn read(&self) -> Vec<Family> {
        let mut families = of_tools(&self.tools());
        families.extend(self.of_process());
        families.extend(of_mcp());
        families
    }

    /// The tools that have been called, by label. One that was never called would be a page of zeros.
    fn tools(&self) -> Vec<(String, ToolMetrics)> {
        let mut labelled = self.labelled.lock().unwrap_or_else(PoisonError::into_inner);
        let called: Vec<(String, ToolMetrics)> = self
            .manager
            .all_metrics()
            .into_iter()
            .filter(|(name, metrics)| was_called(metrics) || labelled.contains(name))
            .collect();
        // A tool that is gone gives its label back.
        labelled.retain(|label| called.iter().any(|(name, _)| name == label));
        let mut rows: Vec<(String, ToolMetrics)> = Vec::new();
        let mut others: Option<ToolMetrics> = None;
        for (name, metrics) in called {
            // A tool of that very name shares the label with all the others.
            let has_label = name != OTHER
                && (labelled.contains(&name)
                    || labelled.len() < TOOLS_MAX && labelled.insert(name.clone()));
            match (has_label, &mut others) {
                (true, _) => rows.push((name, metrics)),
                (false, Some(others)) => add_up(others, metrics),
                (false, None) => others = Some(metrics),
            }
        }
        rows.extend(others.map(|metrics| (OTHER.to_owned(), metrics)));
        rows
    }

    fn of_process(&self) -> Vec<Family> {
        let process = (self.process)();
        let history = process.history;
        let server = |server: &ServerFigures| vec![("server", server.name.clone())];
        let servers = || process.servers.iter().take(SERVERS_MAX);
        let mut families = vec![
            Family {
                name: "build",
                help: "The program that runs",
                points: Points::Info(vec![("version", env!("CARGO_PKG_VERSION").to_owned())]),
            },
            Family {
                name: "uptime",
                help: "Time since the program started",
                points: Points::Seconds(self.started.elapsed().as_secs_f64()),
            },
            gauge(
                "config.generation",
                "The configuration in force, counted from 1",
                process.generation,
            ),
            gauge(
                "tools",
                "Tools that can be called",
                self.manager.len() as u64,
            ),
            counter(
                "unknown_tool.calls",
                "Calls that asked for a tool nobody has",
                self.manager.unknown_calls(),
            ),
            gauge(
                "events.readers",
                "Readers of live events",
                process.event_readers,
            ),
            counter(
                "events.dropped",
                "Live events dropped before anyone could read them",
                process.events_dropped,
            ),
            gauge(
                "memory.accounted",
                "Bytes that are held for callers and servers",
                ByteBudget::process().used() as u64,
            ),
            gauge(
                "memory.accounted.peak",
                "The most bytes that were ever held for callers and servers",
                ByteBudget::process().peak() as u64,
            ),
            gauge(
                "memory.limit",
                "The most bytes that may be held for callers and servers",
                ByteBudget::process().bytes_max() as u64,
            ),
            counter(
                "memory.refused",
                "How often there was no room for what a caller or a server wanted",
                ByteBudget::process().refused(),
            ),
            counter(
                "spans.dropped",
                "Spans that were not exported",
                self.spans_dropped.load(Ordering::Relaxed),
            ),
        ];
        families.extend(of_conversations());
        families.extend(process.proxy.iter().flat_map(of_proxy));
        if let Some(history) = history {
            families.push(gauge(
                "history.queued",
                "Records that wait to be written",
                history.queued,
            ));
            families.push(counter(
                "history.dropped",
                "Records that were never written",
                history.dropped,
            ));
        }
        if !process.servers.is_empty() {
            let state = |figures: &ServerFigures| {
                let mut labels = server(figures);
                labels.push(("state", figures.state.clone()));
                (labels, 1.0)
            };
            families.push(Family {
                name: "mcp_server.state",
                help: "1 for the state an MCP server is in",
                points: Points::Gauge(servers().map(state).collect()),
            });
            families.push(Family {
                name: "mcp_server.starts",
                help: "How often an MCP server was started",
                points: Points::Counter(servers().map(|it| (server(it), it.starts)).collect()),
            });
        }
        families
    }
}

impl fmt::Debug for Figures {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Figures of {:?}", self.manager)
    }
}

/// How long requests and sessions of MCP took; nothing before the first of a kind.
fn of_mcp() -> Vec<Family> {
    let family = |measure: Measure| {
        let points = measures::durations(measure);
        (!points.is_empty()).then_some(Family {
            name: measure.name(),
            help: match measure {
                Measure::ClientOperation => "Time of requests to MCP servers",
                Measure::ServerOperation => "Time of requests of MCP clients",
                Measure::ClientSession => "How long sessions at MCP servers lasted",
                Measure::ServerSession => "How long sessions of MCP clients lasted",
            },
            points: Points::Durations(points),
        })
    };
    Measure::ALL.into_iter().filter_map(family).collect()
}

/// What repairs changed in conversations; nothing before the first.
fn of_conversations() -> Option<Family> {
    let point = |(provider, code, count): (Provider, Code, u64)| {
        let labels = vec![
            ("provider", provider.as_str().to_owned()),
            ("code", code.as_str().to_owned()),
        ];
        (labels, count)
    };
    let points: Vec<_> = fixes_made().into_iter().map(point).collect();
    (!points.is_empty()).then_some(Family {
        name: "conversation.fixes",
        help: "Changes that repairs made to conversations",
        points: Points::Counter(points),
    })
}

fn of_proxy(proxy: &ProxyFigures) -> [Family; 3] {
    let provider = |name: &str| vec![("provider", name.to_owned())];
    let exchanges = proxy.exchanges.iter();
    let broken = proxy.broken_answers.iter();
    [
        Family {
            name: "proxy.exchanges",
            help: "Exchanges that went through the proxy, by how they ended",
            points: Points::Counter(
                exchanges
                    .map(|(name, result, count)| (with(provider(name), "result", result), *count))
                    .collect(),
            ),
        },
        Family {
            name: "proxy.broken_answers",
            help: "Answers of providers whose tool calls were broken",
            points: Points::Counter(
                broken
                    .map(|(name, count)| (provider(name), *count))
                    .collect(),
            ),
        },
        gauge(
            "proxy.open",
            "Exchanges that are under way in the proxy",
            proxy.open,
        ),
    ]
}

fn of_tools(tools: &[(String, ToolMetrics)]) -> Vec<Family> {
    let each = |read: &dyn Fn(&ToolMetrics) -> u64| -> Vec<(Labels, u64)> {
        let point = |(name, metrics): &(String, ToolMetrics)| (tool(name), read(metrics));
        tools.iter().map(point).collect()
    };
    let gauges = |read: &dyn Fn(&ToolMetrics) -> u64| {
        let points = each(read).into_iter();
        Points::Gauge(
            points
                .map(|(labels, value)| (labels, value as f64))
                .collect(),
        )
    };
    vec![
        Family {
            name: "tool.calls",
            help: "Calls that ended, by result; success, error and timeout are executions",
            points: Points::Counter(tools.iter().flat_map(by_result).collect()),
        },
        Family {
            name: "tool.errors",
            help: "Calls that failed, by code",
            points: Points::Counter(tools.iter().flat_map(by_code).collect()),
        },
        Family {
            name: "tool.duration",
            help: "Time of executions, waiting and retries included",
            points: Points::Times(
                tools
                    .iter()
                    .map(|(name, metrics)| (tool(name), metrics.times.clone()))
                    .collect(),
            ),
        },
        Family {
            name: "tool.retries",
            help: "Attempts beyond the first",
            points: Points::Counter(each(&|metrics| metrics.retries)),
        },
        Family {
            name: "tool.fallbacks",
            help: "Failed calls that a fallback answered",
            points: Points::Counter(each(&|metrics| metrics.fallbacks)),
        },
        Family {
            name: "tool.in_flight",
            help: "Calls that run now",
            points: gauges(&|metrics| metrics.in_flight),
        },
        Family {
            name: "tool.queued",
            help: "Calls that wait for a place now",
            points: gauges(&|metrics| metrics.queued),
        },
        Family {
            name: "tool.breaker.state",
            help: "1 for the state a breaker is in",
            points: Points::Gauge(tools.iter().flat_map(by_state).collect()),
        },
        Family {
            name: "tool.breaker.trips",
            help: "How often a breaker opened",
            points: Points::Counter(
                tools
                    .iter()
                    .filter_map(|(name, metrics)| {
                        Some((tool(name), metrics.breaker.as_ref()?.trips))
                    })
                    .collect(),
            ),
        },
    ]
}

fn by_result((name, metrics): &(String, ToolMetrics)) -> [(Labels, u64); 7] {
    [
        ("success", metrics.success_count),
        ("error", metrics.error_count),
        ("timeout", metrics.timeout_count),
        ("rejected", metrics.rejected),
        ("invalid", metrics.invalid),
        ("cancelled", metrics.cancelled),
        ("joined", metrics.joined),
    ]
    .map(|(result, calls)| (with(tool(name), "result", result), calls))
}

fn by_code((name, metrics): &(String, ToolMetrics)) -> Vec<(Labels, u64)> {
    let errors = metrics.errors_by_code.iter();
    errors
        .map(|(code, calls)| (with(tool(name), "code", code.as_str()), *calls))
        .collect()
}

fn by_state((name, metrics): &(String, ToolMetrics)) -> Vec<(Labels, f64)> {
    let Some(breaker) = &metrics.breaker else {
        return Vec::new();
    };
    [
        BreakerState::Closed,
        BreakerState::HalfOpen,
        BreakerState::Open,
    ]
    .map(|state| {
        let labels = with(tool(name), "state", state_name(state));
        (labels, f64::from(u8::from(breaker.state == state)))
    })
    .into()
}

/// A state as it stands in JSON.
pub fn state_name(state: BreakerState) -> &'static str {
    match state {
        BreakerState::Closed => "closed",
        BreakerState::HalfOpen => "half-open",
        BreakerState::Open => "open",
    }
}

fn was_called(metrics: &ToolMetrics) -> bool {
    let ended = metrics.total_executions
        + metrics.rejected
        + metrics.invalid
        + metrics.cancelled
        + metrics.joined;
    ended + metrics.in_flight + metrics.queued > 0
}

/// Many tools as one. Their breakers are too many for one state: they are left out.
fn add_up(sum: &mut ToolMetrics, more: ToolMetrics) {
    sum.total_executions += more.total_executions;
    sum.success_count += more.success_count;
    sum.error_count += more.error_count;
    sum.timeout_count += more.timeout_count;
    sum.in_flight += more.in_flight;
    sum.queued += more.queued;
    sum.rejected += more.rejected;
    sum.invalid += more.invalid;
    sum.cancelled += more.cancelled;
    sum.joined += more.joined;
    sum.retries += more.retries;
    sum.fallbacks += more.fallbacks;
    for (code, calls) in more.errors_by_code {
        *sum.errors_by_code.entry(code).or_default() += calls;
    }
    sum.times = sum.times.and(&more.times);
    sum.breaker = None;
}

fn tool(name: &str) -> Labels {
    vec![("tool", name.to_owned())]
}

fn with(mut labels: Labels, name: &'static str, value: &str) -> Labels {
    labels.push((name, value.to_owned()));
    labels
}

fn counter(name: &'static str, help: &'static str, value: u64) -> Family {
    Family {
        name,
        help,
        points: Points::Counter(vec![(Vec::new(), value)]),
    }
}

fn gauge(name: &'static str, help: &'static str, value: u64) -> Family {
    Family {
        name,
        help,
        points: Points::Gauge(vec![(Vec::new(), value as f64)]),
    }
}
