//! Turns of readers whose input never pauses.

use std::future::poll_fn;
use std::io;
use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use steadyhand::{CooperativeBudget, CooperativeStream};
use tokio::io::{AsyncRead, ReadBuf};
use tokio::time::timeout;

const MOMENT: Duration = Duration::from_millis(20);

#[tokio::test]
async fn s01_a_reader_that_always_finds_more_is_ended_by_its_time_limit() {
    let reading = async {
        let mut turn = CooperativeBudget::default();
        loop {
            turn.spend(0).await;
        }
    };
    assert!(timeout(MOMENT, reading).await.is_err());
    let mut turn = CooperativeBudget::default();
    let polled = poll_fn(|context| {
        loop {
            if turn.poll_spend(context, 1).is_pending() {
                return Poll::<()>::Pending;
            }
        }
    });
    assert!(timeout(MOMENT, polled).await.is_err());
}

#[tokio::test]
async fn s01_a_turn_ends_after_64_kib_or_256_small_items() {
    let turns_of = async |items: usize, bytes: usize| {
        let others = AtomicUsize::new(0);
        let reading = async {
            let mut turn = CooperativeBudget::default();
            for _ in 0..items {
                turn.spend(bytes).await;
            }
        };
        let counting = async {
            loop {
                others.fetch_add(1, Ordering::Relaxed);
                tokio::task::yield_now().await;
            }
        };
        tokio::select! {
            biased;
            () = reading => {}
            () = counting => {}
        }
        others.load(Ordering::Relaxed)
    };
    assert_eq!(turns_of(255, 1).await, 0);
    assert_eq!(turns_of(1024, 1).await, 4);
    assert_eq!(turns_of(8, 64 * 1024).await, 8);
}

/// It always has something to be read.
struct Endless;

impl AsyncRead for Endless {
    fn poll_read(
        self: Pin<&mut Self>,
        _: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let room = buffer.remaining();
        buffer.put_slice(&vec![b'x'; room]);
        Poll::Ready(Ok(()))
    }
}

/// A parser of HTTP is such a reader, where it finds nothing for anybody in what comes.
#[tokio::test]
async fn s01_a_stream_ends_the_turn_of_a_reader_that_never_gives_way_by_itself() {
    for room in [1, 8 * 1024, 1024 * 1024] {
        let mut stream = CooperativeStream::new(Endless);
        let (mut bytes, mut space) = (0, vec![0; room]);
        let reading = poll_fn(|context| -> Poll<()> {
            loop {
                let mut buffer = ReadBuf::new(&mut space);
                ready!(
                    Pin::new(&mut stream)
                        .poll_read(context, &mut buffer)
                        .map(drop)
                );
                bytes += buffer.filled().len();
                assert!(buffer.filled().len() <= 16 * 1024);
            }
        });
        assert!(timeout(MOMENT, reading).await.is_err());
        assert!(bytes > 0);
    }
}
