//! Outgoing HTTP: one client with pooled connections, which addresses it may reach, what its errors mean.
