//! The codes of a model that gives no answer.

use super::Seen::Command;
use super::{Page, page};
use crate::error::Exit;

pub(super) const PAGES: &[Page] = &[
    page(
        "model_settings",
        &[Command(Exit::Config)],
        "The settings of a model are wrong, or no model has this name.",
        &[
            "`steadyhand models list` shows the models there are.",
            "`steadyhand config check` says what is wrong under `[models]`.",
        ],
    ),
    page(
        "model_unauthorized",
        &[Command(Exit::SignIn)],
        "The provider does not accept the key.",
        &[
            "Check `key` of the model; `steadyhand config show` says where it comes from, not what it is.",
            "Without a configuration the provider's own variable is read: `ANTHROPIC_API_KEY`, `OPENAI_API_KEY`.",
        ],
    ),
    page(
        "model_unreachable",
        &[Command(Exit::NotReachable)],
        "The provider could not be reached.",
        &[
            "Check the network, and `url` of the model.",
            "For Ollama: does it run? `ollama serve` starts it.",
            "`steadyhand chat --model demo` needs no network: a fixed script, not an AI.",
        ],
    ),
    page(
        "model_not_found",
        &[Command(Exit::NotReachable)],
        "The provider has no model of this name.",
        &["Check `model`; for Ollama: `ollama pull NAME` fetches one."],
    ),
    page(
        "model_overloaded",
        &[Command(Exit::NotReachable)],
        "The provider is busy, or a limit of your account is reached. It was asked again as often as `attempts` allows.",
        &["Wait, and ask again; `attempts` of the model allows more."],
    ),
    page(
        "model_failed",
        &[Command(Exit::NotReachable)],
        "The provider failed with an error of its own.",
        &["Ask again. The provider's words are in the message."],
    ),
    page(
        "model_broke_off",
        &[Command(Exit::NotReachable)],
        "The answer broke off in the middle. What had come is kept, and no call of it was run whose arguments may not be whole.",
        &["`steadyhand chat --resume` goes on with the conversation."],
    ),
    page(
        "model_unreadable",
        &[Command(Exit::NotReachable)],
        "What came is no answer of this provider.",
        &["Check `url` and `provider` of the model: something else may be listening there."],
    ),
    page(
        "model_too_large",
        &[Command(Exit::NotReachable)],
        "The conversation is longer than the model takes.",
        &[
            "Begin a new one, or give tools a smaller `limits = { result = \"16KiB\" }`.",
            "For Ollama, `num_ctx` of the model is how much it takes.",
        ],
    ),
    page(
        "model_refused",
        &[Command(Exit::NotReachable)],
        "The provider refused the request as it was. Its words are in the message.",
        &[
            "If it speaks of `tool_use` and `tool_result`: this should not happen here, please report it. For conversations of other programs: `steadyhand repair`.",
            "If it speaks of a setting, such as `temperature`: change it under `[models]`.",
        ],
    ),
    page(
        "model_timed_out",
        &[Command(Exit::TimedOut)],
        "The model gave no whole answer in time.",
        &[
            "Raise `timeout` of the model; a large model on a small machine needs minutes for its first word.",
        ],
    ),
    page(
        "script_ended",
        &[Command(Exit::Unexpected)],
        "A scripted model was asked more often than its script has answers.",
        &["Give the script another answer."],
    ),
    page(
        "refusal",
        &[Command(Exit::Refused)],
        "The model declined to answer.",
        &["Ask in another way; nothing is wrong with the program."],
    ),
    page(
        "max_iterations",
        &[Command(Exit::Refused)],
        "The model went on calling tools and gave no answer within its rounds.",
        &[
            "`steadyhand calls list` shows what it called.",
            "Allow more with `--max-iterations`, or `max_iterations` of the model.",
        ],
    ),
];
