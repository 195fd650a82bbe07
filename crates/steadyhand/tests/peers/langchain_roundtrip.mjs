// Passes messages through LangChain for JavaScript: dicts in, every shape it writes out.
// The one argument is the directory LangChain is installed in.

import { createRequire } from "node:module";
import { join } from "node:path";
import { readFileSync } from "node:fs";

const require = createRequire(join(process.argv[2], "package.json"));
const { mapStoredMessagesToChatMessages, mapChatMessagesToStoredMessages } = require("@langchain/core/messages");
const { load } = require("@langchain/core/load");

const given = JSON.parse(readFileSync(0, "utf8"));
const messages = mapStoredMessagesToChatMessages(given.dicts);
const constructors = JSON.parse(JSON.stringify(messages));

// Its own reading must agree before ours is held against it.
for (const [index, message] of messages.entries()) {
  const loaded = await load(JSON.stringify(message));
  if (loaded.constructor.name !== message.constructor.name) throw new Error(`message ${index} loads as another class`);
}

process.stdout.write(JSON.stringify({ dicts: mapChatMessagesToStoredMessages(messages), constructors }));
