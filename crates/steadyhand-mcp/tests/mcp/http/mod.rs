//! Servers over HTTP: hostile ones of our own, and real ones.

mod attacks;
mod bare;
mod eras;
mod faults;
mod hanging;
mod host;
mod hostile;
mod outage;
mod real;
mod reopening;
mod sessions;

/// One that does what it should.
pub(crate) async fn well_behaved() -> crate::support::Stage {
    let host = host::Host::of(host::Speaks::Legacy, faults::Fault::None).await;
    crate::support::Stage::with(crate::support::Folder::new(), host.settings()).await
}
