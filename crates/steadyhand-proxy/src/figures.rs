//! What has passed the proxy, counted; and how many exchanges are under way.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use tokio::sync::Notify;

use super::site::Site;
use steadyhand_server::telemetry::ProxyFigures;

/// How an exchange ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Ended {
    /// The provider answered.
    Answered,
    /// The provider said no.
    Refused,
    /// There was no answer, or no whole one.
    Failed,
    /// The client went away first.
    Left,
}

impl Ended {
    const ALL: [Ended; 4] = [Ended::Answered, Ended::Refused, Ended::Failed, Ended::Left];

    fn as_str(self) -> &'static str {
        match self {
            Ended::Answered => "answered",
            Ended::Refused => "refused",
            Ended::Failed => "failed",
            Ended::Left => "left",
        }
    }
}

/// Counts exchanges.
#[derive(Debug, Default)]
pub(super) struct Counts {
    ended: [[AtomicU64; Ended::ALL.len()]; Site::ALL.len()],
    broken: [AtomicU64; Site::ALL.len()],
    open: Arc<Open>,
}

#[derive(Debug, Default)]
struct Open {
    count: AtomicUsize,
    none: Notify,
}

/// An exchange that is under way, until this goes.
#[derive(Debug)]
pub(super) struct UnderWay(Arc<Open>);

impl Counts {
    pub(super) fn begin(&self) -> UnderWay {
        self.open.count.fetch_add(1, Ordering::Relaxed);
        UnderWay(Arc::clone(&self.open))
    }

    pub(super) fn end(&self, site: Site, how: Ended) {
        self.ended[site as usize][how as usize].fetch_add(1, Ordering::Relaxed);
    }

    /// An answer whose calls are broken.
    pub(super) fn broken(&self, site: Site) {
        self.broken[site as usize].fetch_add(1, Ordering::Relaxed);
    }

    /// Waits until no exchange is under way.
    pub(super) async fn until_none(&self) {
        loop {
            let none = self.open.none.notified();
            if self.open.count.load(Ordering::Acquire) == 0 {
                return;
            }
            none.await;
        }
    }

    /// Nothing before the first exchange.
    pub(super) fn figures(&self) -> Option<ProxyFigures> {
        let mut figures = ProxyFigures {
            open: self.open.count.load(Ordering::Relaxed) as u64,
            ..ProxyFigures::default()
        };
        for site in Site::ALL {
            for how in Ended::ALL {
                let count = self.ended[site as usize][how as usize].load(Ordering::Relaxed);
                if count > 0 {
                    let row = (site.as_str(), how.as_str(), count);
                    figures.exchanges.push(row);
                }
            }
            let broken = self.broken[site as usize].load(Ordering::Relaxed);
            if broken > 0 {
                figures.broken_answers.push((site.as_str(), broken));
            }
        }
        (figures.open > 0 || !figures.exchanges.is_empty()).then_some(figures)
    }
}

impl Drop for UnderWay {
    fn drop(&mut self) {
        if self.0.count.fetch_sub(1, Ordering::AcqRel) == 1 {
            self.0.none.notify_waiters();
        }
    }
}
