// The makers' SDKs for JavaScript talk to a strict provider: two calls, their results, an answer; then something invalid.
// Arguments: where the SDKs are installed, which protocol, and its base URL.

import { createRequire } from "node:module";
import { join } from "node:path";

const [home, protocol, baseURL] = process.argv.slice(2);
const require = createRequire(join(home, "package.json"));
const question = "What is the weather in Rome and Oslo?";
const schema = { type: "object", properties: { city: { type: "string" } }, required: ["city"] };
const about = { apiKey: "k", baseURL, maxRetries: 0 };

async function refusal(ask) {
  try {
    await ask();
  } catch (error) {
    if (error.status !== 400) throw error;
    return error.error?.error?.message ?? error.error?.message ?? error.message;
  }
  return null;
}

async function anthropic(streams) {
  const { Anthropic } = require("@anthropic-ai/sdk");
  const client = new Anthropic(about);
  const tools = [{ name: "get_weather", description: "Tells the weather", input_schema: schema }];
  const ask = (messages) => {
    const body = { model: "strict-1", max_tokens: 100, tools, messages };
    return streams ? client.messages.stream(body).finalMessage() : client.messages.create(body);
  };
  const messages = [{ role: "user", content: question }];
  const reply = await ask(messages);
  const calls = reply.content.filter((block) => block.type === "tool_use");
  messages.push({ role: "assistant", content: reply.content });
  messages.push({ role: "user", content: calls.map((call) => ({ type: "tool_result", tool_use_id: call.id, content: "18 C" })) });
  const final = await ask(messages);
  const refused = await refusal(() => ask(messages.slice(0, 2)));
  const said = reply.content.filter((block) => block.type === "text").map((block) => block.text).join("");
  return [said, reply.stop_reason, calls.map((call) => [call.name, call.input]), final.content[0].text, final.stop_reason, refused];
}

async function openai(streams) {
  const { OpenAI } = require("openai");
  const client = new OpenAI(about);
  const tools = [{ type: "function", function: { name: "get_weather", description: "Tells the weather", parameters: schema } }];
  const ask = (messages) => {
    const body = { model: "strict-1", tools, messages };
    return streams ? client.chat.completions.stream(body).finalChatCompletion() : client.chat.completions.create(body);
  };
  const messages = [{ role: "user", content: question }];
  const reply = (await ask(messages)).choices[0];
  const calls = reply.message.tool_calls ?? [];
  messages.push(reply.message);
  messages.push(...calls.map((call) => ({ role: "tool", tool_call_id: call.id, content: "18 C" })));
  const final = (await ask(messages)).choices[0];
  const refused = await refusal(() => ask(messages.slice(0, 2)));
  const made = calls.map((call) => [call.function.name, JSON.parse(call.function.arguments)]);
  return [reply.message.content ?? "", reply.finish_reason, made, final.message.content, final.finish_reason, refused];
}

async function responses(streams) {
  const { OpenAI } = require("openai");
  // A stream adds `parsed_arguments`, which the API refuses; the SDK's own function takes it out.
  const { toResponseInputItems } = require("openai/lib/responses/ResponseInputItems");
  const client = new OpenAI(about);
  const tools = [{ type: "function", name: "get_weather", description: "Tells the weather", parameters: schema, strict: false }];
  const ask = (input) => {
    const body = { model: "strict-1", tools, store: false, input };
    return streams ? client.responses.stream(body).finalResponse() : client.responses.create(body);
  };
  const input = [{ role: "user", content: question }];
  const reply = await ask(input);
  const calls = reply.output.filter((item) => item.type === "function_call");
  input.push(...toResponseInputItems(reply.output));
  const broken = [...input];
  input.push(...calls.map((call) => ({ type: "function_call_output", call_id: call.call_id, output: "18 C" })));
  const final = await ask(input);
  const refused = await refusal(() => ask(broken));
  const made = calls.map((call) => [call.name, JSON.parse(call.arguments)]);
  return [reply.output_text, reply.status, made, final.output_text, final.status, refused];
}

const talk = { anthropic, openai, "openai-responses": responses }[protocol];
process.stdout.write(JSON.stringify([await talk(false), await talk(true)]));
