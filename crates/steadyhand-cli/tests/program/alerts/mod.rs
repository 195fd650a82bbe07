//! Alerts (SPEC R12): when they are raised and not, how they end, and who is told.

mod lifecycle;
mod served;
mod webhooks;
