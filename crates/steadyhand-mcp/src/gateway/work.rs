//! A request that is being worked on, and whoever drives it: part of the answer's own task, or apart from it.

use std::future::poll_fn;
use std::sync::Arc;
use std::task::{Context, Poll};

use futures_util::future::BoxFuture;
use tokio::task::AbortHandle;

use super::errors;
use super::inquiry::{Answer, Inquiry, Next};
use super::operation::Following;
use super::suspended::Subject;

/// A request that is being worked on. Dropping it ends the work.
pub(super) struct Work {
    pub(super) inquiry: Arc<Inquiry>,
    run: Run,
    is_followed: bool,
    pub(super) subject: Subject,
}

enum Run {
    /// Driven by whoever waits for the answer: no task is needed.
    Here(BoxFuture<'static, Answer>),
    /// In a task of its own.
    Apart {
        _task: AbortOnDrop,
    },
    Over,
}

/// A task that ends with this.
pub(super) struct AbortOnDrop(pub(super) AbortHandle);

impl Drop for AbortOnDrop {
    fn drop(&mut self) {
        self.0.abort();
    }
}

impl Work {
    pub(super) fn new(
        inquiry: Arc<Inquiry>,
        subject: Subject,
        work: BoxFuture<'static, Answer>,
    ) -> Work {
        Work {
            inquiry,
            run: Run::Here(work),
            is_followed: false,
            subject,
        }
    }

    /// Has its end counted. One that a client comes back for is counted as what it was begun as.
    pub(super) fn followed(mut self, following: Following) -> Work {
        self.run = match self.run {
            Run::Here(work) if !self.is_followed => {
                self.is_followed = true;
                Run::Here(Box::pin(async move {
                    let answer = work.await;
                    following.end(&answer);
                    answer
                }))
            }
            run => {
                following.end_well();
                run
            }
        };
        self
    }

    /// What is to be done next.
    pub(super) async fn next(&mut self) -> Next {
        poll_fn(|cx| self.poll_next(cx)).await
    }

    /// From here on it goes on whether someone waits for it or not.
    pub(super) fn set_apart(&mut self) {
        if !matches!(self.run, Run::Here(_)) {
            return;
        }
        let Run::Here(work) = std::mem::replace(&mut self.run, Run::Over) else {
            return;
        };
        let mut end = End {
            inquiry: Arc::clone(&self.inquiry),
            is_told: false,
        };
        let task = tokio::spawn(async move {
            let answer = work.await;
            end.is_told = true;
            end.inquiry.finish(answer);
        });
        self.run = Run::Apart {
            _task: AbortOnDrop(task.abort_handle()),
        };
    }

    fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Next> {
        if let Run::Here(work) = &mut self.run {
            // Before it is polled, so that a cancelled request does nothing more.
            if let Some(next) = self.inquiry.next() {
                return Poll::Ready(next);
            }
            if let Poll::Ready(answer) = work.as_mut().poll(cx) {
                self.run = Run::Over;
                self.inquiry.state().answer = Some(answer);
            }
        }
        if let Some(next) = self.inquiry.next() {
            return Poll::Ready(next);
        }
        let mut state = self.inquiry.state();
        // Said in between, by another thread.
        if let Some(next) = state.next() {
            return Poll::Ready(next);
        }
        match &mut state.waker {
            Some(waker) => waker.clone_from(cx.waker()),
            none => *none = Some(cx.waker().clone()),
        }
        Poll::Pending
    }
}

/// However the task ends, whoever waits is told.
struct End {
    inquiry: Arc<Inquiry>,
    is_told: bool,
}

impl Drop for End {
    fn drop(&mut self) {
        if !self.is_told {
            let error = errors::unanswered("the request ended without an answer");
            self.inquiry.finish(Err(error));
        }
    }
}
