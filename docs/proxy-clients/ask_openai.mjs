// Goes on with a history that broke off inside a call, streaming. Argument: the base URL.

import { OpenAI } from "openai";

const client = new OpenAI({ baseURL: process.argv[2], apiKey: "any", maxRetries: 0 });
const call = { id: "call_A", type: "function", function: { name: "weather", arguments: '{"city":"Rome"}' } };
const messages = [
  { role: "user", content: "What is the weather in Rome?" },
  { role: "assistant", content: null, tool_calls: [call] },
  { role: "user", content: "Hello?" },
];
try {
  const stream = await client.chat.completions.create({ model: "gpt-5", messages, stream: true });
  for await (const chunk of stream) process.stdout.write(chunk.choices[0].delta.content ?? "");
  console.log();
} catch (error) {
  console.log(error.status, error.error?.message ?? error.message);
}
