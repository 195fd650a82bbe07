// LangChain for JavaScript makes a conversation with tools, and reads one of ours.

import { createRequire } from "node:module";
import { join } from "node:path";
import { readFileSync } from "node:fs";

const require = createRequire(join(process.argv[2], "package.json"));
const core = require("@langchain/core/messages");

const given = core.mapStoredMessagesToChatMessages(JSON.parse(readFileSync(0, "utf8")));
const tool_calls = [
  { name: "get_weather", args: { city: "Rome" }, id: "call_1", type: "tool_call" },
  { name: "get_weather", args: { city: "Oslo" }, id: "call_2", type: "tool_call" },
];
const invalid_tool_calls = [{ name: "get_weather", args: '{"city":', id: "call_3", error: "unfinished", type: "invalid_tool_call" }];
const made = [
  new core.SystemMessage("Be brief."),
  new core.HumanMessage("What is the weather?"),
  new core.AIMessage({ content: "Let me look.", tool_calls, invalid_tool_calls }),
  new core.ToolMessage({ content: "18 C", tool_call_id: "call_1" }),
  new core.ToolMessage({ content: "no such city", tool_call_id: "call_2", status: "error" }),
];
process.stdout.write(
  JSON.stringify({
    made: core.mapChatMessagesToStoredMessages(made),
    kinds: given.map((message) => message.getType()),
    calls: given.flatMap((message) => (message.tool_calls ?? []).map((call) => [call.id, call.name, call.args])),
    results: given.filter((message) => message.getType() === "tool").map((message) => [message.tool_call_id, message.status]),
    usage: given.filter((message) => message.getType() === "ai").map((message) => message.usage_metadata ?? null),
  }),
);
