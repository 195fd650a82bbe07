//! Can this model use tools? Seven fixed tasks, each with tools of its own, run by the same loop as everything else.

use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use steadyhand::Message;
use steadyhand_models::{Agent, AgentEvent, AgentSettings, CancellationToken, Delivery, End};
use steadyhand_models::{Model, ModelError, TurnEnd};
use tokio::time::Instant;

use super::scratch::{self, Scratch};

/// The longest a task may take, whatever the model's own patience is.
const TASK_MAX: Duration = Duration::from_secs(600);
/// What is kept of an answer.
const ANSWER_CHARS_MAX: usize = 200;

/// One task.
pub struct Task {
    /// Its name.
    pub name: &'static str,
    /// What it looks at, in words.
    pub about: &'static str,
    prompt: &'static str,
    tools: fn() -> Vec<Scratch>,
    judge: fn(&Run) -> Verdict,
}

/// How a model did.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Grade {
    /// As it should be.
    Passed,
    /// The work was done, but not as well as it could be.
    Partly,
    /// Not done.
    Failed,
}

/// How a model did at one task.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TaskResult {
    /// The task.
    pub task: String,
    /// How it did.
    pub grade: Grade,
    /// Why, in words.
    pub reason: String,
    /// What it called, in order.
    pub calls: Vec<Called>,
    /// What it answered in the end, or the beginning of that.
    pub answer: String,
    /// How long it took.
    pub elapsed_ms: u64,
}

/// A call that a model made.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Called {
    /// The tool.
    pub name: String,
    /// With what.
    pub args: Value,
    /// In which round, counted from 1: calls of the same round were asked for together.
    pub round: u32,
    /// Whether it worked.
    pub ok: bool,
}

struct Verdict(Grade, String);

/// What a model did with a task.
struct Run {
    calls: Vec<Called>,
    answer: String,
}

/// The tasks, in their order.
pub const TASKS: [Task; 7] = [
    Task {
        name: "single_call",
        about: "one tool, one call",
        prompt: "What is the weather in Oslo right now?",
        tools: || vec![scratch::weather()],
        judge: |run| {
            run.must_call("get_weather", |args| mentions(&args["city"], "oslo"))
                .and_answer(run, "7")
        },
    },
    Task {
        name: "right_arguments",
        about: "values of the right kind in the right places",
        prompt: "Set the light in the kitchen to 40 percent.",
        tools: || vec![scratch::light()],
        judge: |run| {
            run.must_call("set_light", |args| {
                args["room"] == "kitchen" && args["brightness"] == json!(40)
            })
        },
    },
    Task {
        name: "choice_of_six",
        about: "the right tool among six",
        prompt: "What time is it in Tokyo?",
        tools: || {
            vec![
                scratch::weather(),
                scratch::news(),
                scratch::time(),
                scratch::translate(),
                scratch::timer(),
                scratch::light(),
            ]
        },
        judge: |run| {
            run.must_call("get_time", |args| mentions(&args["city"], "tokyo"))
                .and_answer(run, "5:17")
        },
    },
    Task {
        name: "parallel",
        about: "two calls at once",
        prompt: "How is the weather in Oslo, and how is it in Rome? Ask for both at the same time.",
        tools: || vec![scratch::weather()],
        judge: judge_parallel,
    },
    Task {
        name: "multi_step",
        about: "a second call with what the first one said",
        prompt: "Send Anna the text message: dinner is ready. Look up her number first.",
        tools: || vec![scratch::contacts(), scratch::message()],
        judge: judge_steps,
    },
    Task {
        name: "recovers",
        about: "tries again as an error says",
        prompt: "How many eggs are on my note with the title shopping?",
        tools: || vec![scratch::note()],
        judge: |run| {
            run.must_call("read_note", |args| args["force"] == json!(true))
                .and_answer(run, "9")
        },
    },
    Task {
        name: "leaves_tools_alone",
        about: "no call where none is needed",
        prompt: "Say good morning to me, in one short sentence.",
        tools: || vec![scratch::weather(), scratch::message(), scratch::timer()],
        judge: |run| match run.calls.first() {
            None if run.answer.trim().is_empty() => failed("no call, and no answer either"),
            None => passed("it just answered"),
            Some(call) => failed(format!("it called {}", call.name)),
        },
    },
];

/// Has a model do one task. `recover_calls` is as in its settings.
///
/// # Errors
///
/// Where the model could not be asked: that says nothing about what it can do.
pub async fn run(
    task: &Task,
    model: &Arc<dyn Model>,
    recover_calls: bool,
) -> Result<TaskResult, ModelError> {
    let mut settings = AgentSettings::default();
    settings.delivery = Delivery::Whole;
    settings.caller = Some("models check".to_owned());
    settings.recover_calls = recover_calls;
    let executor = scratch::executor((task.tools)());
    let agent = Agent::new(Arc::clone(model), executor).with(settings);
    let mut conversation = vec![Message::human(task.prompt)];
    let began = Instant::now();
    let cancel = CancellationToken::new();
    let mut tell = |_: AgentEvent| {};
    let turn = agent.run(&mut conversation, &cancel, &mut tell);
    let ended = tokio::time::timeout(TASK_MAX, turn).await;
    let elapsed_ms = began.elapsed().as_millis() as u64;
    let TurnEnd { end, text, .. } = match ended {
        Ok(ended) => ended,
        Err(_) => return Ok(too_slow(task, &conversation, elapsed_ms)),
    };
    if let End::Failed(error) = end {
        return Err(error);
    }
    let run = Run {
        calls: in_order(&conversation),
        answer: text,
    };
    let Verdict(grade, reason) = (task.judge)(&run);
    Ok(TaskResult {
        task: task.name.to_owned(),
        grade,
        reason,
        calls: run.calls,
        answer: run.answer.chars().take(ANSWER_CHARS_MAX).collect(),
        elapsed_ms,
    })
}

/// The calls as the conversation has them: in the order asked, each with its result.
fn in_order(conversation: &[Message]) -> Vec<Called> {
    let mut calls: Vec<(String, Called)> = Vec::new();
    let mut round = 0;
    for message in conversation {
        match message {
            Message::Ai(ai) => {
                round += 1;
                let whole = ai.tool_calls.iter().map(|call| {
                    let args = Value::Object(call.args.clone());
                    (call.id.clone(), call.name.clone(), args)
                });
                let broken = ai.invalid_tool_calls.iter().map(|call| {
                    let args = json!(call.args);
                    let name = call.name.clone().unwrap_or_default();
                    (call.id.clone().unwrap_or_default(), name, args)
                });
                for (id, name, args) in whole.chain(broken) {
                    calls.push((
                        id,
                        Called {
                            name,
                            args,
                            round,
                            ok: false,
                        },
                    ));
                }
            }
            Message::Tool(result) => {
                let call = calls.iter_mut().rfind(|(id, _)| *id == result.tool_call_id);
                if let Some((_, call)) = call {
                    call.ok = !result.is_error;
                }
            }
            Message::System(_) | Message::Human(_) | Message::Other(_) => {}
        }
    }
    calls.into_iter().map(|(_, call)| call).collect()
}

impl Run {
    /// One call of this tool that worked and whose arguments fit; others beside it cost half.
    fn must_call(&self, name: &str, fits: impl Fn(&Value) -> bool) -> Verdict {
        let right = self
            .calls
            .iter()
            .filter(|call| call.name == name && call.ok && fits(&call.args))
            .count();
        if right == 0 {
            return match self.calls.iter().rfind(|call| call.name == name) {
                Some(call) => failed(format!("{name} was called with {}", call.args)),
                None => failed(self.instead_of(name)),
            };
        }
        let others = self
            .calls
            .iter()
            .filter(|call| call.name != name)
            .map(|call| call.name.as_str());
        let others: Vec<&str> = others.collect();
        match (right, others.as_slice()) {
            (1, []) => passed(format!("{name}, as it should be")),
            (_, []) => partly(format!("{name} was called {right} times")),
            (_, others) => partly(format!("it also called {}", others.join(", "))),
        }
    }

    fn instead_of(&self, name: &str) -> String {
        match self.calls.as_slice() {
            [] => format!("{name} was not called, nor any other tool"),
            calls => {
                let names: Vec<&str> = calls.iter().map(|call| call.name.as_str()).collect();
                format!("{name} was not called, but {}", names.join(", "))
            }
        }
    }
}

impl Verdict {
    /// The answer must have what the tool said.
    fn and_answer(self, run: &Run, part: &str) -> Verdict {
        match self.0 {
            Grade::Passed if !run.answer.contains(part) => partly(format!(
                "the call was right, but the answer does not have \"{part}\""
            )),
            Grade::Passed | Grade::Partly | Grade::Failed => self,
        }
    }
}

fn judge_parallel(run: &Run) -> Verdict {
    let find = |city: &str| {
        run.calls
            .iter()
            .find(|call| call.name == "get_weather" && mentions(&call.args["city"], city))
    };
    match (find("oslo"), find("rome")) {
        (Some(oslo), Some(rome)) if oslo.round == rome.round => passed("both in one round"),
        (Some(_), Some(_)) => partly("both, one after the other"),
        (Some(_), None) => failed("only Oslo was asked for"),
        (None, Some(_)) => failed("only Rome was asked for"),
        (None, None) => failed(run.instead_of("get_weather")),
    }
}

fn judge_steps(run: &Run) -> Verdict {
    let find = run
        .calls
        .iter()
        .position(|call| call.name == "find_contact");
    let sent = run.calls.iter().position(|call| {
        call.name == "send_message" && call.ok && mentions(&call.args["number"], "5550137")
    });
    match (find, sent) {
        (Some(find), Some(sent)) if find < sent => passed("looked up, then sent"),
        (None, _) => failed(run.instead_of("find_contact")),
        (Some(_), _) => match run.calls.iter().find(|call| call.name == "send_message") {
            Some(call) => failed(format!("send_message was called with {}", call.args)),
            None => failed("the number was looked up, and nothing was sent"),
        },
    }
}

fn too_slow(task: &Task, conversation: &[Message], elapsed_ms: u64) -> TaskResult {
    TaskResult {
        task: task.name.to_owned(),
        grade: Grade::Failed,
        reason: format!("no answer within {} s", TASK_MAX.as_secs()),
        calls: in_order(conversation),
        answer: String::new(),
        elapsed_ms,
    }
}

fn mentions(value: &Value, part: &str) -> bool {
    let text = value
        .as_str()
        .map_or_else(|| value.to_string(), str::to_lowercase);
    text.contains(part)
}

fn passed(reason: impl Into<String>) -> Verdict {
    Verdict(Grade::Passed, reason.into())
}

fn partly(reason: impl Into<String>) -> Verdict {
    Verdict(Grade::Partly, reason.into())
}

fn failed(reason: impl Into<String>) -> Verdict {
    Verdict(Grade::Failed, reason.into())
}
