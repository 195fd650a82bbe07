//! A whole answer on its way to the client: mended where that is safe, or an error where nobody could use it (SPEC R03).

use axum::body::Bytes;
use serde_json::Value;
use steadyhand_conversation::{Code, Problem, Provider, What, repair_response, validate};

use super::report::Report;
use super::splice::spliced;
use super::tap;
use super::trouble::Trouble;

/// Checks an answer, and gives it as the client gets it, where that is not as it came.
pub(super) fn sanitize(
    provider: Provider,
    text: &[u8],
    answer: Value,
    report: &mut Report,
) -> Result<Option<Bytes>, Trouble> {
    let seen = tap::checked(provider, answer.clone());
    let problems = seen.problems.clone();
    report.saw(seen);
    mended(provider, text, answer, &problems, report)
}

/// The same for an answer in which these problems were found.
pub(super) fn mended(
    provider: Provider,
    text: &[u8],
    answer: Value,
    problems: &[Problem],
    report: &mut Report,
) -> Result<Option<Bytes>, Trouble> {
    if problems.is_empty() {
        return Ok(None);
    }
    let is_explained = is_explained(&answer);
    let (mended, fixes) = repair_response(provider, answer);
    let is_absent = fixes.iter().any(|fix| fix.code == Code::NoMessages);
    let absent = problems.iter().find(|one| one.code == Code::NoMessages);
    let words = absent.map(|problem| problem.message.clone());
    if is_absent {
        // A prompt that was blocked has no answer, and the provider says why.
        return match is_explained {
            true => Ok(None),
            false => Err(Trouble::Garbage(words.unwrap_or_default())),
        };
    }
    if let Some(call) = unusable(provider, &mended) {
        return Err(Trouble::Garbage(format!(
            "{} at {}. None of its calls reached the client",
            call.message, call.at
        )));
    }
    if fixes.is_empty() {
        return Ok(None);
    }
    let written = spliced(text, &mended);
    report.mended_answer(fixes);
    Ok(Some(written.into()))
}

/// Google says why there is no answer.
fn is_explained(answer: &Value) -> bool {
    let reasons = ["/promptFeedback/blockReason", "/candidates/0/finishReason"];
    reasons.iter().any(|place| answer.pointer(place).is_some())
}

/// A call whose arguments are no object, where they must be one: no client can read it, and made into an object it could
/// be run. One that the answer ran out of tokens in says so by itself.
fn unusable(provider: Provider, answer: &Value) -> Option<Problem> {
    if !provider.format().has_object_arguments() {
        return None;
    }
    let left = validate(provider, What::Response, answer);
    left.into_iter()
        .find(|one| matches!(one.code, Code::BadArguments | Code::UnfinishedArguments))
}
