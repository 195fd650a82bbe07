// The SDK for TypeScript, 2.x, in the era that is named first.
import { readFileSync } from 'node:fs';
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio';

const [mode, where, ...rest] = process.argv.slice(2);
const transport = where.startsWith('http')
  ? new StreamableHTTPClientTransport(new URL(where))
  : new StdioClientTransport({ command: where, args: rest, env: process.env });
const client = new Client(
  { name: 'sdk2', version: '1' },
  { capabilities: {}, versionNegotiation: { mode } },
);
await client.connect(transport);
const { tools } = await client.listTools();
const called = await client.callTool({ name: 'test_simple_text', arguments: {} });
const echoed = await client.callTool({ name: 'echo', arguments: { word: 'hi' } });
const steps = [];
await client.callTool(
  { name: 'test_tool_with_progress', arguments: {} },
  { onprogress: (step) => steps.push(step.progress) },
);
const prompt = await client.getPrompt({ name: 'test_simple_prompt' });
const resource = await client.readResource({ uri: 'test://static-text' });
const installed = new URL('./node_modules/@modelcontextprotocol/client/package.json', import.meta.url);
console.log(
  JSON.stringify({
    tools: tools.map((tool) => tool.name),
    text: called.content[0].text,
    echoed: echoed.structuredContent,
    steps,
    prompt: prompt.messages[0].content.text,
    resource: resource.contents[0].text,
    client: `TypeScript SDK ${JSON.parse(readFileSync(installed)).version}`,
    version: client.getNegotiatedProtocolVersion?.() ?? null,
  }),
);
await client.close();
