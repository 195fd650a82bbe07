//! The threads that connections are served on. Each connection stays on one of them, with all it waits for: where threads
//! take work from each other, a call costs a quarter more (docs/benchmarks.md).

use std::future::pending;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use tokio::runtime::{Builder, Handle};
use tokio_util::sync::{CancellationToken, DropGuard};

/// There are as many as processors, up to this.
const LANES_MAX: usize = 32;

pub(super) struct Lanes {
    lanes: Vec<Lane>,
    /// Goes with the server, and the threads with it.
    _open: DropGuard,
}

struct Lane {
    handle: Handle,
    connections: Arc<AtomicUsize>,
}

impl Lanes {
    /// As many as there are threads for.
    pub(super) fn open() -> Lanes {
        let closed = CancellationToken::new();
        let wanted = thread::available_parallelism().map_or(1, |count| count.get());
        let mut lanes = Vec::new();
        for _ in 0..wanted.min(LANES_MAX) {
            match Lane::open(closed.clone()) {
                Ok(lane) => lanes.push(lane),
                Err(error) => tracing::warn!(%error, "there is no thread for more connections"),
            }
        }
        Lanes {
            lanes,
            _open: closed.drop_guard(),
        }
    }

    /// Serves a connection where there are the fewest.
    pub(super) fn serve(&self, connection: impl Future<Output = ()> + Send + 'static) {
        let load = |lane: &&Lane| lane.connections.load(Ordering::Relaxed);
        let Some(lane) = self.lanes.iter().min_by_key(load) else {
            // Without threads of their own they are served like everything else.
            tokio::spawn(connection);
            return;
        };
        let counted = Counted::one_more(&lane.connections);
        lane.handle.spawn(async move {
            connection.await;
            drop(counted);
        });
    }
}

impl Lane {
    fn open(closed: CancellationToken) -> io::Result<Lane> {
        let runtime = Builder::new_current_thread().enable_all().build()?;
        let handle = runtime.handle().clone();
        thread::Builder::new()
            .name("steadyhand-lane".to_owned())
            .spawn(move || {
                runtime.block_on(closed.run_until_cancelled(pending::<()>()));
                // Blocking work that is left over is not waited for.
                runtime.shutdown_background();
            })?;
        Ok(Lane {
            handle,
            connections: Arc::default(),
        })
    }
}

/// One connection among those of its lane, for as long as it lives.
struct Counted(Arc<AtomicUsize>);

impl Counted {
    fn one_more(connections: &Arc<AtomicUsize>) -> Counted {
        connections.fetch_add(1, Ordering::Relaxed);
        Counted(Arc::clone(connections))
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}
