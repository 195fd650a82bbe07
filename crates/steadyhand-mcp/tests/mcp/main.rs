//! MCP servers, real and hostile, through the crate's public surface.

mod adapting;
mod attacks;
mod beside;
mod camel_case_server;
mod causes;
mod definitions;
mod events;
mod exact;
mod failures;
mod fuzz;
#[path = "../../../steadyhand/tests/shared/fuzzing.rs"]
mod fuzzing;
mod hostile;
mod http;
mod logs;
mod names;
mod noise;
mod parameters;
mod peers;
mod real_servers;
mod relay;
mod results;
mod serve;
mod starting;
mod support;
mod under_load;
mod unreadable;
mod wire;
