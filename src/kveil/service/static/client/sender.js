// A device's side of HTTP: fetch what is asked, and send stored reports until the collector has them. Nothing that tells devices
// apart goes along: no cookies, no referrer.
// @ts-check
import { fromHex } from "./bytes.js";
import * as canonical from "./canonical.js";

/**
 * @typedef {import("./client.js").LocalClient} LocalClient
 * @typedef {"stored" | "refused" | "later"} Outcome
 * @typedef {{campaign: string, code: string}} Admission a one-time code, and the campaign that it was made for
 */

const MEDIA = "application/vnd.kveil.collect;message=upload-req";
const NOT_ADMITTED = 4; // this reason is not final: the same bytes may come again with another proof
/** @type {RequestInit} */
const PLAIN = { credentials: "omit", referrerPolicy: "no-referrer", redirect: "error" };

/**
 * @param {string} service where the collector is, without a slash at the end
 * @returns {Promise<any[]>}
 */
export async function campaigns(service) {
  return (await (await fetched(`${service}/v1/campaigns`)).json()).campaigns;
}

/**
 * The signed manifests of these rounds; whether to trust them is for the client to say.
 * @param {string} service
 * @param {string[]} hashes
 */
export async function chain(service, hashes) {
  return Promise.all(hashes.map(async (hash) => (await fetched(`${service}/v1/manifests/${hash}`)).text()));
}

/**
 * Follow the changes of keys that a collector publishes, oldest first, as far as they begin at the key that is trusted.
 * @param {LocalClient} client
 * @param {string} service
 */
export async function followKeys(client, service) {
  for (const text of (await (await fetched(`${service}/v1/rotations`)).json()).rotations) {
    try {
      const { statement: body, by_old: byOld, by_new: byNew } = canonical.read(atob(text));
      await client.rotate({ body, byOld, byNew });
    } catch {
      // of another key, made before, or no statement at all: nothing was changed
    }
  }
}

/**
 * Send what is stored and not acknowledged, the same bytes as often as it takes. What became of each, by campaign. A code goes
 * with reports of its own campaign alone: with those of another, it would tell that both are one person's.
 * @param {LocalClient} client
 * @param {string} service
 * @param {(row: import("./book.js").Row) => boolean} [isDue]
 * @param {Admission} [admission] where the collector asks for a code
 * @returns {Promise<Map<string, Outcome>>}
 */
export async function deliver(client, service, isDue = (row) => Date.parse(row.sendAt) <= Date.now(), admission) {
  const told = new Map();
  for (const row of (await client.pending()).filter(isDue)) {
    await client.move(row.hash, "sent"); // before the first byte leaves
    const outcome = await sent(service, row.hash, row.report, row.campaign === admission?.campaign ? admission.code : "");
    if (outcome !== "later") await client.move(row.hash, "acked");
    told.set(row.campaign, outcome);
  }
  return told;
}

/**
 * "stored": it is on the collector's disk. "refused": it will never be. "later": send the same bytes again.
 * @param {string} service
 * @param {string} hash
 * @param {string} report in hexadecimal
 * @param {string} code
 * @returns {Promise<Outcome>}
 */
async function sent(service, hash, report, code) {
  try {
    const headers = { "Content-Type": MEDIA, ...(code && { Authorization: `Bearer ${code}` }) };
    const request = { ...PLAIN, method: "POST", body: fromHex(report), headers, keepalive: true, cache: /** @type {const} */ ("no-store") };
    const reply = await fetch(`${service}/v1/manifests/${hash}/reports`, request);
    const refused = new Uint8Array(await reply.arrayBuffer());
    if (reply.status === 200 && refused.length === 0) return "stored"; // nothing else is an acknowledgement
    return reply.status === 410 || (reply.status === 200 && refused[16] !== NOT_ADMITTED) ? "refused" : "later";
  } catch {
    return "later";
  }
}

/** @param {string} url */
async function fetched(url) {
  const reply = await fetch(url, PLAIN);
  if (!reply.ok) throw new Error("the collector does not answer, or not as one");
  return reply;
}
