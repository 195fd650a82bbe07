// One scenario with an SDK for JavaScript: a list, a conversation with tools, whole and as a stream, a count, a refusal.
// Arguments: the folder of the SDKs, which client, and its base URL. Written: what the client was given at each step, and
// the bytes that came.
import { createRequire } from "node:module";
import { pathToFileURL } from "node:url";

const [home, name, url] = process.argv.slice(2);
const load = (path) => import(pathToFileURL(createRequire(`${home}/`).resolve(path)).href);
const schema = { type: "object", properties: { city: { type: "string" } }, required: ["city"] };
const came = [];

const own = globalThis.fetch;
globalThis.fetch = async (...request) => {
  const response = await own(...request);
  const copy = response.clone();
  const headers = Object.fromEntries(["content-type", "request-id", "x-request-id"].map((name) => [name, response.headers.get(name)]));
  came.push(copy.arrayBuffer().then((bytes) => ({ status: response.status, headers, bytes: Buffer.from(bytes).toString("hex") })));
  return response;
};

const all = async (events) => {
  const list = [];
  for await (const event of events) list.push(event);
  return list;
};

const clients = {
  async anthropic() {
    const { default: Anthropic } = await load("@anthropic-ai/sdk");
    const client = new Anthropic({ baseURL: url, apiKey: "sk-ant-a-key", maxRetries: 0 });
    const tools = [{ name: "weather", description: "Tells the weather", input_schema: schema }];
    const messages = [
      { role: "user", content: "Weather in Rome?" },
      { role: "assistant", content: [{ type: "tool_use", id: "toolu_1", name: "weather", input: { city: "Rome" } }] },
      { role: "user", content: [{ type: "tool_result", tool_use_id: "toolu_1", content: "18 °C" }] },
    ];
    const about = { model: "claude-sonnet-4-5", max_tokens: 100, tools, messages };
    const hello = [{ role: "user", content: "Hi" }];
    return [
      async () => (await client.models.list()).data,
      () => client.messages.countTokens({ model: "claude-sonnet-4-5", messages: hello }),
      () => client.messages.create(about),
      async () => all(await client.messages.create({ ...about, stream: true })),
      () => client.messages.create({ model: "refused", max_tokens: 1, messages: hello }),
    ];
  },
  async openai() {
    const { default: OpenAI } = await load("openai");
    const client = new OpenAI({ baseURL: `${url}/v1`, apiKey: "sk-a-key", maxRetries: 0 });
    const call = { id: "call_1", type: "function", function: { name: "weather", arguments: '{"city": "Rome"}' } };
    const messages = [
      { role: "user", content: "Weather in Rome?" },
      { role: "assistant", content: null, tool_calls: [call] },
      { role: "tool", tool_call_id: "call_1", content: "18 °C" },
    ];
    const tools = [{ type: "function", function: { name: "weather", description: "Tells the weather", parameters: schema } }];
    const about = { model: "gpt-5", tools, messages };
    const items = [
      { role: "user", content: "Weather in Rome?" },
      { type: "function_call", call_id: "call_1", name: "weather", arguments: '{"city": "Rome"}' },
      { type: "function_call_output", call_id: "call_1", output: "18 °C" },
    ];
    return [
      async () => (await client.models.list()).data,
      () => client.chat.completions.create(about),
      async () => all(await client.chat.completions.create({ ...about, stream: true })),
      () => client.chat.completions.create({ model: "refused", messages: [{ role: "user", content: "Hi" }] }),
      () => client.responses.create({ model: "gpt-5", input: items, store: false }),
      async () => all(await client.responses.create({ model: "gpt-5", input: items, store: false, stream: true })),
    ];
  },
  async gemini() {
    const { GoogleGenAI } = await load("@google/genai");
    const client = new GoogleGenAI({ apiKey: "a-key", httpOptions: { baseUrl: url } });
    const contents = [
      { role: "user", parts: [{ text: "Weather in Rome?" }] },
      { role: "model", parts: [{ functionCall: { name: "weather", args: { city: "Rome" } }, thoughtSignature: "YWJj" }] },
      { role: "user", parts: [{ functionResponse: { name: "weather", response: { output: "18 °C" } } }] },
    ];
    const about = { model: "gemini-2.5-pro", contents };
    return [
      () => client.models.countTokens(about),
      () => client.models.generateContent(about),
      async () => all(await client.models.generateContentStream(about)),
      () => client.models.generateContent({ model: "refused", contents: "Hi" }),
    ];
  },
  async bedrock() {
    process.env.AWS_BEARER_TOKEN_BEDROCK = "a-key";
    const { BedrockRuntimeClient, ConverseCommand, ConverseStreamCommand, InvokeModelCommand } = await load("@aws-sdk/client-bedrock-runtime");
    const { NodeHttpHandler } = await load("@smithy/node-http-handler");
    // A stream over HTTP/1.1: what serves the tests speaks no HTTP/2.
    const client = new BedrockRuntimeClient({ region: "us-east-1", endpoint: url, maxAttempts: 1, requestHandler: new NodeHttpHandler() });
    const modelId = "us.anthropic.claude-sonnet-4-5-v1:0";
    const messages = [
      { role: "user", content: [{ text: "Weather in Rome?" }] },
      { role: "assistant", content: [{ toolUse: { toolUseId: "t1", name: "weather", input: { city: "Rome" } } }] },
      { role: "user", content: [{ toolResult: { toolUseId: "t1", content: [{ text: "18 °C" }] } }] },
    ];
    const toolConfig = { tools: [{ toolSpec: { name: "weather", description: "Tells the weather", inputSchema: { json: schema } } }] };
    const about = { modelId, messages, toolConfig };
    const body = JSON.stringify({ anthropic_version: "bedrock-2023-05-31", max_tokens: 10, messages: [{ role: "user", content: "Hi" }] });
    const answer = ({ $metadata, ...given }) => given;
    return [
      async () => answer(await client.send(new ConverseCommand(about))),
      async () => all((await client.send(new ConverseStreamCommand(about))).stream),
      async () => Buffer.from((await client.send(new InvokeModelCommand({ modelId, body }))).body).toString(),
      () => client.send(new ConverseCommand({ modelId: "refused", messages: messages.slice(0, 1) })),
    ];
  },
};

const given = [];
for (const step of await clients[name]()) {
  try {
    given.push(await step());
  } catch (error) {
    given.push({ error: error.name, says: String(error.message).replaceAll(url, "URL") });
  }
}
console.log(JSON.stringify({ given, came: await Promise.all(came) }));
