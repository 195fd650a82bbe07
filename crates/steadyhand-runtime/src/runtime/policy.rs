//! From the settings of a policy to the policy the engine keeps, and where each value came from.

use std::time::Duration;

use serde_json::Value;
use steadyhand::{BreakerPolicy, FailureCode, Fallback, Policy};

use steadyhand_config::settings::{
    BreakerSettings, FallbackSettings, LimitSettings, PolicySettings, RetryOn, RetrySettings,
};
use steadyhand_config::template::JsonTemplate;
use steadyhand_config::template::Values;

/// Lays settings over a policy; what they do not say stays as it is.
pub fn lay_over(policy: &mut Policy, settings: &PolicySettings) {
    if let Some(timeout) = settings.timeout {
        policy.timeout = timeout.0;
    }
    if let Some(deadline) = settings.deadline {
        policy.deadline = deadline.0;
    }
    if let Some(retry) = &settings.retry {
        lay_retry(policy, retry);
    }
    if let Some(breaker) = &settings.breaker {
        lay_breaker(policy, breaker);
    }
    if let Some(limits) = &settings.limits {
        lay_limits(policy, limits);
    }
    if let Some(fallback) = &settings.fallback {
        policy.fallback = fallback_of(fallback);
    }
    if let Some(idempotent) = settings.idempotent {
        policy.safe_to_repeat = idempotent;
    }
    if let Some(coerce) = settings.coerce {
        policy.coerce = coerce;
    }
    if let Some(strict) = settings.strict {
        policy.strict = strict;
    }
}

fn lay_retry(policy: &mut Policy, settings: &RetrySettings) {
    let retry = &mut policy.retry;
    if let Some(attempts) = settings.attempts {
        retry.attempts = attempts;
    }
    if let Some(backoff) = settings.backoff {
        retry.first_wait = backoff.0;
    }
    if let Some(jitter) = settings.jitter {
        retry.jitter = jitter;
    }
    if let Some(on) = &settings.on {
        retry.on = on.iter().map(|on| code_of(*on)).collect();
    }
}

fn code_of(on: RetryOn) -> FailureCode {
    match on {
        RetryOn::Network => FailureCode::NetworkError,
        RetryOn::Timeout => FailureCode::Timeout,
        RetryOn::RateLimit => FailureCode::RateLimitError,
        RetryOn::Unknown => FailureCode::ToolExecutionError,
    }
}

/// The word that `retry.on` has for failures of this code.
pub fn retry_word(code: FailureCode) -> &'static str {
    match code {
        FailureCode::NetworkError => "network",
        FailureCode::Timeout => "timeout",
        FailureCode::RateLimitError => "rate_limit",
        FailureCode::ToolExecutionError => "unknown",
        // Never repeated, so the setting has no word for it.
        other => other.as_str(),
    }
}

fn lay_breaker(policy: &mut Policy, settings: &BreakerSettings) {
    if settings.enabled == Some(false) {
        policy.breaker = None;
        return;
    }
    let mut breaker = policy.breaker.unwrap_or_default();
    if let Some(failures) = settings.failures {
        breaker.failures = failures;
    }
    if let Some(cooldown) = settings.cooldown {
        breaker.cooldown_ms = milliseconds(cooldown.0);
    }
    policy.breaker = Some(BreakerPolicy { ..breaker });
}

fn lay_limits(policy: &mut Policy, settings: &LimitSettings) {
    if let Some(concurrency) = settings.concurrency {
        policy.limit.concurrent = concurrency as usize;
    }
    if let Some(queue) = settings.queue {
        policy.limit.queue = queue as usize;
    }
    if let Some(result) = settings.result {
        policy.output_bytes_max = bytes(result.0);
    }
    if let Some(args) = settings.args {
        policy.args_bytes_max = bytes(args.0);
    }
}

fn fallback_of(settings: &FallbackSettings) -> Option<Fallback> {
    let fallback = match (&settings.tool, &settings.result) {
        (Some(tool), _) => match &settings.args {
            None => Fallback::tool(tool),
            Some(args) => match JsonTemplate::parse(&Value::Object(args.clone())) {
                Ok(args) => Fallback::tool_with(tool, move |of_the_call| {
                    let values = Values::new(of_the_call, &Value::Null);
                    args.fill(&values).unwrap_or_default()
                }),
                // The check of the file has told what is wrong with them.
                Err(_) => Fallback::tool(tool),
            },
        },
        (None, Some(result)) => Fallback::value(result.clone()),
        (None, None) => return None,
    };
    let fallback = match settings.timeout {
        Some(timeout) => fallback.timeout(timeout.0),
        None => fallback,
    };
    Some(match settings.when_open {
        Some(false) => fallback.not_when_open(),
        Some(true) | None => fallback,
    })
}

fn milliseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

fn bytes(size: u64) -> usize {
    usize::try_from(size).unwrap_or(usize::MAX)
}
