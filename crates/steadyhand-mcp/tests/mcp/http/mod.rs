//! Servers over HTTP: hostile ones of our own, and real ones.

mod bare;
mod eras;
mod faults;
mod hanging;
mod host;
mod hostile;
mod outage;
mod real;
mod sessions;
