// Verdicts of the browser's client on chains that come as JSON on standard input; a crash of the client is its own word.
import { readFileSync } from "node:fs";
import { KEY, module, verdict } from "./common.mjs";

const { verified } = await module("manifest");
const told = [];
for (const chain of JSON.parse(readFileSync(0, "utf8"))) {
  told.push(await verdict(() => verified(chain, KEY)).catch((error) => `crashed: ${error}`));
}
console.log(JSON.stringify(told));
