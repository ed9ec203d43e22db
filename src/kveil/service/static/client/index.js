// What an application imports.
// @ts-check
export { LocalClient } from "./client.js";
export { IndexedStorage } from "./indexed.js";
export { Ledger } from "./ledger.js";
export { canVerify, verified } from "./manifest.js";
export { systemWord } from "./randomiser.js";
export { Refused } from "./refused.js";
export { campaigns, chain, deliver, followKeys } from "./sender.js";
export { mostSure } from "./sure.js";
