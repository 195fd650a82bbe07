// Calls a server through the client that @hey-api/openapi-ts made. Arguments: its address, a token.
import { client } from "./generated/client.gen";
import { cancelCall, createBatch, createCall, getCaller, getTool, listServers, listTools, streamEvents } from "./generated";
import type { ApiError, ListedTool, Outcome } from "./generated";

declare const process: { argv: string[]; exitCode?: number };

const [address, token] = process.argv.slice(2);

function expect(holds: boolean, what: string): asserts holds {
    if (!holds) throw new Error(what);
}

async function main() {
    client.setConfig({ baseUrl: address, auth: token });

    const called = await createCall({ body: { name: "weather", args: { city: "Oslo" } } });
    expect(called.data !== undefined && "toolName" in called.data, "an outcome");
    const outcome: Outcome = called.data;
    expect(outcome.status === "success", outcome.status);

    // @ts-expect-error a call needs a name
    const nameless = await createCall({ body: { args: {} } });
    const error: ApiError | undefined = nameless.error;
    expect(error?.error.message === "name is missing", "a helpful error");

    const batch = await createBatch({ body: { calls: [{ name: "echo" }, { name: "nothing" }] } });
    expect(batch.data?.outcomes.length === 2, "as many outcomes as calls");

    const tools = await listTools();
    const tool = tools.data?.tools[0] as ListedTool | undefined;
    expect(typeof tool?.description === "string", "the tools");
    const missing = await getTool({ path: { name: "wether" } });
    expect(missing.error?.error.code === "no_such_tool", "an error with its code");
    const ended = await cancelCall({ path: { id: "never" } });
    expect(ended.response?.status === 404, "nothing to cancel");

    const caller = await getCaller();
    expect(caller.data?.by === "token", "it shows its token");
    const servers = await listServers();
    expect(servers.data?.count === 0, "no MCP servers here");

    const watching = new AbortController();
    const { stream } = await streamEvents({ signal: watching.signal });
    const first = await stream.next();
    expect(first.value !== undefined, "an event");
    watching.abort();
    console.log("all good");
}

main().catch((error) => {
    console.error(error);
    process.exitCode = 1;
});
