// The page that a person meets: one question, one answer with noise, and in plain words what leaves the device.
// @ts-check
import { IndexedStorage, Ledger, LocalClient, Refused, canVerify, mostSure, systemWord } from "./client/index.js";
import { campaigns, chain, deliver, followKeys } from "./client/sender.js";
import { floats } from "./client/bytes.js";
import { written } from "./client/book.js";
import { Place, part } from "./map.js";

const HERE = new URL("..", import.meta.url).href.replace(/\/$/, ""); // the collector that serves this page
const SERVICE = meta("kveil-service") || HERE;
const PINNED = meta("kveil-key");
const LITTLE = 2; // epsilon above which a report hides little
const OLD_BROWSER =
  "This browser cannot check signatures (Ed25519), so it does not answer. Chrome 137, Firefox 129, Safari 17 and later can, over https.";

/**
 * @typedef {import("./client/book.js").Row} Row
 * @typedef {import("./client/manifest.js").Manifest} Manifest
 */

start().catch((error) => {
  part("about").textContent = error instanceof Refused ? sentence(error.message) : "The question could not be loaded. Try again later.";
});

async function start() {
  if (!(await canVerify())) throw new Refused("manifest", OLD_BROWSER);
  const ledger = await Ledger.open(await IndexedStorage.open(), { day: now(), word: systemWord, isLost: hasMarker() });
  const client = new LocalClient(ledger, { nFeatures: 0, key: PINNED });
  part("trust").textContent = trustWords();
  await deliver(client, SERVICE, () => true); // what an earlier visit stored and could not send
  const question = await openQuestion(client);
  if (!question) {
    part("about").textContent = "There is no question now.";
    return;
  }
  await show(client, question);
}

/**
 * The signed manifests of the first open campaign that this browser has not answered, or else of the first open one.
 * @param {LocalClient} client
 */
async function openQuestion(client) {
  const open = (await campaigns(SERVICE)).filter((one) => one.state === "open");
  const answered = new Set((await client.history()).map((row) => row.campaign));
  const one = open.find(({ campaign }) => !answered.has(campaign)) ?? open[0];
  return one && chain(SERVICE, one.manifests);
}

/**
 * @param {LocalClient} client
 * @param {string[]} question
 */
async function show(client, question) {
  await client.trustFirst(question);
  await followKeys(client, SERVICE);
  client.nFeatures = JSON.parse(JSON.parse(question[0]).manifest).header.domain.D; // the page asks for as many numbers
  const { manifest, row } = await client.look(question);
  part("name").textContent = manifest.header.name; // text, never HTML
  part("about").textContent = `Open until ${manifest.not_after}. One answer per browser.`;
  if (row) {
    tell(row, "This browser has answered this question.");
    return;
  }
  await explain(client, manifest);
  const { domain } = manifest.header;
  const place = new Place(floats(domain.o), floats(domain.Rad)[0]);
  part("form").hidden = false;
  part("form").addEventListener("submit", (event) => {
    event.preventDefault();
    if (place.isSet) void answer(client, question, place);
    else part("told").textContent = "Choose your place first.";
  });
}

/**
 * @param {LocalClient} client
 * @param {Manifest} manifest
 */
async function explain(client, manifest) {
  const { eps } = manifest.header.privacy;
  const many = manifest.queries.map((/** @type {{M: number}} */ query) => query.M);
  const [fewest, most] = [Math.min(...many), Math.max(...many)];
  part("values").textContent = fewest === most ? `${most}` : `${fewest} to ${most}`;
  part("sure").textContent =
    `Someone who thought it 50:50 whether you are in one place or another can become at most ${mostSure(eps)} % sure, ` +
    "whatever else they know.";
  const [p, q = 1] = eps.split("/").map(Number);
  part("little").hidden = p / q <= LITTLE;
  part("cost").textContent = eps;
  part("left").textContent = written(await client.remaining());
  part("cap").textContent = written(client.cap);
}

/**
 * @param {LocalClient} client
 * @param {string[]} question
 * @param {Place} place
 */
async function answer(client, question, place) {
  const button = /** @type {HTMLButtonElement} */ (part("send"));
  button.disabled = true;
  part("told").textContent = "";
  try {
    await keepStorage();
    const row = await client.answer(question, () => place.point);
    const outcome = (await deliver(client, SERVICE, () => true)).get(row.campaign);
    part("form").hidden = true;
    tell(row, outcomeWords(outcome));
  } catch (error) {
    part("told").textContent = error instanceof Refused ? sentence(error.message) : "Something failed. Nothing more was drawn.";
    button.disabled = false;
  }
}

/** @param {string | undefined} outcome undefined: another tab has sent it */
function outcomeWords(outcome) {
  if (outcome === "later") return "Stored here, not sent yet. Open this page again later: the same 22 bytes will be sent.";
  if (outcome === "refused") return "The question was closed before the answer arrived. It was not counted, and nothing is drawn again.";
  return "Sent. Thank you. This browser will not answer this question again.";
}

/**
 * @param {Row} row
 * @param {string} words
 */
function tell(row, words) {
  part("told").textContent = words;
  part("bytes").textContent = row.report;
  part("proof").hidden = false;
}

/** Ask the browser to keep the ledger, and this page's server for a cookie that tells a cleared ledger from a new one. */
async function keepStorage() {
  await navigator.storage?.persist?.().catch(() => false);
  await fetch(`${HERE}/client/marker`, { credentials: "same-origin", referrerPolicy: "no-referrer", cache: "no-store" }).catch(() => undefined);
}

function hasMarker() {
  return document.cookie.split("; ").includes("kveil=1");
}

function trustWords() {
  const key = PINNED ? "Questions must be signed by the key that came with this page." : "Questions must be signed by the key that this browser met here first.";
  return `${key} Whoever serves this page could change it at any visit, and then nothing of the above need hold. Other browsers and private windows keep a count of their own.`;
}

/** @param {string} name */
function meta(name) {
  return document.querySelector(`meta[name="${name}"]`)?.getAttribute("content") ?? "";
}

function now() {
  return new Date().toISOString().slice(0, 10);
}

/** @param {string} words */
function sentence(words) {
  return words.charAt(0).toUpperCase() + words.slice(1);
}
