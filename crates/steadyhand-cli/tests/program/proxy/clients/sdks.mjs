// SDKs for JavaScript send histories that died: each is asked for an answer, whole and as a stream.
// Arguments: where the packages are, which client, and its base URL. Written: for each history and way, the answer or
// the refusal.

import { createRequire } from "node:module";
import { join } from "node:path";
import { pathToFileURL } from "node:url";

const [home, clientName, baseURL] = process.argv.slice(2);
const require = createRequire(join(home, "package.json"));
const load = (name) => import(pathToFileURL(require.resolve(name)).href);
const question = "What is the weather in Rome and Oslo?";
const schema = { type: "object", properties: { city: { type: "string" } }, required: ["city"] };
const about = { apiKey: "sk-a-key-of-the-client", baseURL, maxRetries: 0 };
const longId = "call_" + "x".repeat(60);

async function anthropic() {
  const { Anthropic } = require("@anthropic-ai/sdk");
  const client = new Anthropic(about);
  const tools = [{ name: "weather", description: "Tells the weather", input_schema: schema }];
  const call = (id) => ({ type: "tool_use", id, name: "weather", input: { city: "Rome" } });
  const result = (id) => ({ type: "tool_result", tool_use_id: id, content: "18 C" });
  const asked = { role: "user", content: question };
  const histories = {
    interrupted: [asked, { role: "assistant", content: [call("t1"), call("t2")] }, { role: "user", content: "Hello?" }],
    orphan: [asked, { role: "assistant", content: "Well." }, { role: "user", content: [result("t9")] }],
  };
  const ask = async (messages, streams) => {
    const body = { model: "strict-1", max_tokens: 100, tools, messages };
    const reply = streams ? await client.messages.stream(body).finalMessage() : await client.messages.create(body);
    return reply.content[0].text;
  };
  return { histories, ask, refusal: (error) => [error.status, error.error?.error?.message ?? error.message] };
}

async function openai() {
  const { OpenAI } = require("openai");
  const client = new OpenAI(about);
  const tools = [{ type: "function", function: { name: "weather", description: "Tells the weather", parameters: schema } }];
  const call = (id) => ({ id, type: "function", function: { name: "weather", arguments: '{"city":"Rome"}' } });
  const asked = { role: "user", content: question };
  const histories = {
    interrupted: [asked, { role: "assistant", content: null, tool_calls: [call("c1")] }, { role: "user", content: "Hello?" }],
    orphan: [asked, { role: "tool", tool_call_id: "c9", content: "18 C" }, { role: "user", content: "Hello?" }],
  };
  const ask = async (messages, streams) => {
    const body = { model: "strict-1", tools, messages };
    const reply = streams ? await client.chat.completions.stream(body).finalChatCompletion() : await client.chat.completions.create(body);
    return reply.choices[0].message.content;
  };
  return { histories, ask, refusal: (error) => [error.status, error.error?.message ?? error.message] };
}

// Vercel's looks after missing results itself, and throws before anything is sent; ids of other providers it passes on.
async function vercel(of) {
  const { generateText, streamText, tool, jsonSchema } = await load("ai");
  const settings = { apiKey: about.apiKey, baseURL };
  let model;
  if (of === "anthropic") {
    const { createAnthropic } = await load("@ai-sdk/anthropic");
    model = createAnthropic(settings)("strict-1");
  } else {
    const { createOpenAI } = await load("@ai-sdk/openai");
    model = createOpenAI(settings).chat("strict-1");
  }
  const id = of === "anthropic" ? "functions.weather:0" : longId;
  const tools = { weather: tool({ description: "Tells the weather", inputSchema: jsonSchema(schema) }) };
  const call = { type: "tool-call", toolCallId: id, toolName: "weather", input: { city: "Rome" } };
  const result = { type: "tool-result", toolCallId: id, toolName: "weather", output: { type: "text", value: "18 C" } };
  const histories = {
    "an id of another provider": [
      { role: "user", content: question },
      { role: "assistant", content: [call] },
      { role: "tool", content: [result] },
      { role: "user", content: "And now?" },
    ],
  };
  const ask = async (messages, streams) => {
    const options = { model, tools, messages, maxRetries: 0 };
    if (!streams) return (await generateText(options)).text;
    let failure;
    const reply = streamText({ ...options, onError: ({ error }) => (failure = error) });
    let text = "";
    for await (const piece of reply.textStream) text += piece;
    if (failure) throw failure;
    return text;
  };
  const refusal = (error) => {
    const body = JSON.parse(error.responseBody);
    return [error.statusCode, (body.error ?? body).message];
  };
  return { histories, ask, refusal };
}

const clients = {
  anthropic,
  openai,
  "vercel-anthropic": () => vercel("anthropic"),
  "vercel-openai": () => vercel("openai"),
};
const { histories, ask, refusal } = await clients[clientName]();
const told = [];
for (const [history, messages] of Object.entries(histories)) {
  for (const streams of [false, true]) {
    const row = { history, streams };
    try {
      row.answer = await ask(messages, streams);
    } catch (error) {
      if ((error.status ?? error.statusCode) === undefined) throw error;
      [row.status, row.message] = refusal(error);
    }
    told.push(row);
  }
}
process.stdout.write(JSON.stringify(told));
