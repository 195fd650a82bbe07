// Calls a server through openapi-fetch, with the types that openapi-typescript made. Arguments: its address, a token.
import createClient from "openapi-fetch";
import type { components, paths } from "./schema";

declare const process: { argv: string[]; exitCode?: number };

type Outcome = components["schemas"]["Outcome"];
type Operations = keyof import("./schema").operations;

const [address, token] = process.argv.slice(2);
const client = createClient<paths>({ baseUrl: address, headers: { authorization: `Bearer ${token}` } });

function expect(holds: boolean, what: string): asserts holds {
    if (!holds) throw new Error(what);
}

async function main() {
    const called = await client.POST("/v1/calls", { body: { name: "weather", args: { city: "Oslo" }, id: "ts-1" } });
    expect(called.data !== undefined && "toolName" in called.data, "an outcome");
    const outcome: Outcome = called.data;
    expect(outcome.status === "success", outcome.status);
    expect(called.response.headers.get("steadyhand-outcome") === "success", "the header says how it ended");

    const failed = await client.POST("/v1/calls", { body: { name: "weather" } });
    expect(failed.data !== undefined && "toolName" in failed.data, "an outcome");
    expect(failed.data.error?.code === "VALIDATION_ERROR", "what is missing is told");
    expect(failed.data.error.effect === "none", "and that nothing was run");

    const flat = await client.POST("/v1/calls", { params: { query: { view: "flat" } }, body: { name: "echo", args: {} } });
    expect(flat.data !== undefined && "success" in flat.data && flat.data.success, "the flat view");

    // @ts-expect-error a call needs a name
    const nameless = await client.POST("/v1/calls", { body: { args: {} } });
    expect(nameless.response.status === 400, "400");
    expect(nameless.error?.error.message === "name is missing", "a helpful error");
    expect(nameless.error.error.help.startsWith("Send an object: {name, args}"), nameless.error.error.help);

    const batch = await client.POST("/v1/batches", { body: { calls: [{ name: "echo" }, { name: "" }] } });
    expect(batch.data?.outcomes.length === 2, "as many outcomes as calls");

    const tools = await client.GET("/v1/tools");
    const names = tools.data?.tools.map((tool) => ("name" in tool ? tool.name : undefined));
    expect(names?.includes("weather") === true, "the tools");
    const missing = await client.GET("/v1/tools/{name}", { params: { path: { name: "wether" } } });
    expect(missing.error?.error.code === "no_such_tool", "an error with its code");

    const kept = await client.GET("/v1/calls/{id}", { params: { path: { id: "ts-1" } } });
    expect(kept.data?.state === "ok", "it is kept");
    const listed = await client.GET("/v1/calls", { params: { query: { tool: "weather", limit: 10 } } });
    expect((listed.data?.calls.length ?? 0) >= 1, "and listed");

    const stranger = createClient<paths>({ baseUrl: address });
    const refused = await stranger.GET("/v1/whoami");
    expect(refused.response.status === 401 && refused.error?.error.code === "token_missing", "credentials are wanted");
    const health = await stranger.GET("/health/ready");
    expect(health.data?.ready === true, "but not for this");

    const unique: Operations[] = ["create_call", "list_tools", "list_calls", "list_servers", "list_keys"];
    console.log(`${unique.length} names, all good`);
}

main().catch((error) => {
    console.error(error);
    process.exitCode = 1;
});
