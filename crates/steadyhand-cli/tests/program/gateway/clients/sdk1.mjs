// The SDK for TypeScript, 1.x: what most clients stand on.
import { readFileSync } from 'node:fs';
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';

const [where, ...rest] = process.argv.slice(2);
const transport = where.startsWith('http')
  ? new StreamableHTTPClientTransport(new URL(where))
  : new StdioClientTransport({ command: where, args: rest, env: process.env });
// The transport is told what was agreed on; nobody else keeps it.
let version;
const told = transport.setProtocolVersion?.bind(transport);
transport.setProtocolVersion = (agreed) => {
  version = agreed;
  told?.(agreed);
};
const client = new Client({ name: 'sdk1', version: '1' }, { capabilities: {} });
await client.connect(transport);
const { tools } = await client.listTools();
const called = await client.callTool({ name: 'test_simple_text', arguments: {} });
const echoed = await client.callTool({ name: 'echo', arguments: { word: 'hi' } });
const steps = [];
await client.callTool({ name: 'test_tool_with_progress', arguments: {} }, undefined, {
  onprogress: (step) => steps.push(step.progress),
});
const prompt = await client.getPrompt({ name: 'test_simple_prompt' });
const resource = await client.readResource({ uri: 'test://static-text' });
const installed = new URL('./node_modules/@modelcontextprotocol/sdk/package.json', import.meta.url);
console.log(
  JSON.stringify({
    tools: tools.map((tool) => tool.name),
    text: called.content[0].text,
    echoed: echoed.structuredContent,
    steps,
    prompt: prompt.messages[0].content.text,
    resource: resource.contents[0].text,
    version,
    client: `TypeScript SDK ${JSON.parse(readFileSync(installed)).version}`,
    server: client.getServerVersion().name,
  }),
);
await client.close();
