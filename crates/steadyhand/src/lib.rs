//! Steadyhand runs the tools of AI applications: a [`Call`] goes in, exactly one [`Outcome`] comes
//! out. Never hang, never lie, never fire twice.

mod arrival;
mod byte_budget;
mod call;
mod case;
pub mod clock;
mod cooperative_budget;
mod cooperative_stream;
pub mod cut;
mod event;
mod exact;
mod executor;
mod failure;
mod failures;
mod fair_queue;
mod fallback;
mod function;
mod gate;
pub mod guard;
mod handler;
mod idempotency;
mod kept_outcomes;
mod key_store;
mod lent_arguments;
mod luggage;
mod manager;
mod message;
mod metrics;
pub mod near_names;
mod observer;
mod outcome;
mod output;
mod permit;
pub mod plain_words;
mod policy;
pub mod redact;
mod repeated_name;
mod schema;
pub mod source;
mod state;
mod sync;
#[cfg(feature = "testing")]
pub mod testing;
mod tool;
mod tool_error;
mod tool_source;
mod trace;
pub mod typed_json;
pub mod visible;
pub mod wildcard;

pub use arrival::Arrivals;
pub use byte_budget::{BudgetExceeded, ByteBudget, ReservedBytes};
pub use call::{Arguments, Call, CallProgress, OnProgress};
pub use cooperative_budget::CooperativeBudget;
pub use cooperative_stream::CooperativeStream;
pub use event::Event;
pub use exact::{InexactInteger, with_exact_integers};
pub use executor::ToolExecutor;
pub use failure::{Effect, Failure, FailureCode, Health, Problem};
pub use fair_queue::{FairQueue, FairTurn};
pub use fallback::Fallback;
pub use function::{FromInvocation, IntoOutput, NoArgs, ToolFunction, ToolReturn};
pub use gate::{Asked, Gate};
pub use guard::breaker::{BreakerPolicy, BreakerState};
pub use guard::limit::LimitPolicy;
pub use guard::retry::{BudgetPolicy, RetryPolicy, StopReason};
pub use handler::{CallContext, Handler, Invocation};
pub use key_store::{KeyStore, KeyStoreError, Taken};
pub use luggage::Luggage;
pub use manager::{RefusedTool, ToolManager};
pub use message::AiMessage;
pub use message::Content;
pub use message::Extra;
pub use message::FormatError;
pub use message::InvalidToolCall;
pub use message::Message;
pub use message::OtherMessage;
pub use message::Placeholder;
pub use message::PlainMessage;
pub use message::ToolCall;
pub use message::ToolMessage;
pub use message::answer_open_calls;
pub use message::turn;
pub use metrics::{BreakerView, LastFailure, Times, ToolMetrics};
pub use observer::{Observer, ObserverQueue, Watch};
pub use outcome::{FlatView, Outcome, Status, StructuredView};
pub use output::{Cut, Output};
pub use permit::{KeyCaller, Permission, Permit};
pub use policy::{Classifier, Policy};
pub use repeated_name::{MemberName, RepeatedName, member_names};
pub use schema::limits as schema_limits;
pub use schema::{Coercion, CompiledSchema, SchemaBudget, check_schema, example_arguments};
pub use state::{Need, State};
pub use steadyhand_macros::tool;
pub use tool::Tool;
pub use tool_error::{Category, ToolError};
pub use tool_source::{SourceError, ToolSource};
pub use trace::{CallSpan, Spans, Traceparent};

/// The examples of the README and of its page about the library are compiled as tests.
#[cfg(doctest)]
#[doc = include_str!("../../../README.md")]
#[doc = include_str!("../../../docs/library.md")]
struct Readme;
