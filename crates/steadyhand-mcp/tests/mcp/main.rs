//! MCP servers, real and hostile, through the crate's public surface.

<<<<<<< HEAD
mod causes;
mod definitions;
mod failures;
mod names;
mod parameters;
mod results;
=======
mod serve;
>>>>>>> 37a3cbee72ad51b117bc3d25a125c8a6103a3ca4
