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

const NO_CAMPAIGN =
  "This link has a code and does not say for which question, so the code is not used: sent with another answer, it would " +
  "show that both are yours. Ask for a link that names its question.";

/**
 * @typedef {import("./client/book.js").Row} Row
 * @typedef {import("./client/manifest.js").Manifest} Manifest
 */

addEventListener("hashchange", () => location.reload()); // another link to this page, followed in the same tab
start().catch((error) => {
  part("about").textContent = error instanceof Refused ? sentence(error.message) : "The question could not be loaded. Try again later.";
});

async function start() {
  if (!(await canVerify())) throw new Refused("manifest", OLD_BROWSER);
  const ledger = await Ledger.open(await IndexedStorage.open(), { day: now(), word: systemWord, isLost: hasMarker() });
  const client = new LocalClient(ledger, { nFeatures: 0, key: PINNED });
  part("trust").textContent = trustWords();
  await deliver(client, SERVICE, () => true, link()); // what an earlier visit stored and could not send
  const { campaign, code } = link();
  if (code && !campaign) throw new Refused("manifest", NO_CAMPAIGN); // before an answer is paid for that nobody would take
  const question = await openQuestion(client, campaign);
  if (!question) {
    part("about").textContent = campaign ? "The question of this link is not open now." : "There is no question now.";
    return;
  }
  await show(client, question, campaign);
}

/**
 * The signed manifests of the campaign that the link names. Without one, of the first open one that this browser has not
 * answered, or else of the first open one.
 * @param {LocalClient} client
 * @param {string} named
 */
async function openQuestion(client, named) {
  const open = (await campaigns(SERVICE)).filter((one) => one.state === "open");
  const answered = new Set((await client.history()).map((row) => row.campaign));
  const first = open.find(({ campaign }) => !answered.has(campaign)) ?? open[0];
  const one = named ? open.find(({ campaign }) => campaign === named) : first;
  return one && chain(SERVICE, one.manifests);
}

/**
 * @param {LocalClient} client
 * @param {string[]} question
 * @param {string} named by the link, or ""
 */
async function show(client, question, named) {
  await client.trustFirst(question);
  await followKeys(client, SERVICE);
  client.nFeatures = JSON.parse(JSON.parse(question[0]).manifest).header.domain.D; // the page asks for as many numbers
  const { manifest, row } = await client.look(question);
  if (named && manifest.campaign !== named) throw new Refused("manifest", "the collector shows another question than the link names.");
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
  part("coded").hidden = !link().code;
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
    const outcome = (await deliver(client, SERVICE, () => true, link())).get(row.campaign);
    part("form").hidden = true;
    tell(row, outcomeWords(outcome));
  } catch (error) {
    part("told").textContent = error instanceof Refused ? sentence(error.message) : "Something failed. Nothing more was drawn.";
    button.disabled = false;
  }
}

/** @param {string | undefined} outcome undefined: another tab has sent it */
function outcomeWords(outcome) {
  if (outcome === "later") return "Stored here, not sent yet. Open this page again later, by your link if you have one: the same 22 bytes will be sent.";
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
  void navigator.storage?.persist?.().catch(() => false); // not waited for: Firefox asks the person, who may not answer
  await fetch(`${HERE}/client/marker`, { credentials: "same-origin", referrerPolicy: "no-referrer", cache: "no-store" }).catch(() => undefined);
}

function hasMarker() {
  return document.cookie.split("; ").includes("kveil=1");
}

function trustWords() {
  const key = PINNED ? "Questions must be signed by the key that came with this page." : "Questions must be signed by the key that this browser met here first.";
  return `${key} Whoever serves this page could change it at any visit, and then nothing of the above need hold. Other browsers and private windows keep a count of their own.`;
}

/** A campaign and a one-time code for it, from the end of a link (`#campaign=...&code=...`), which no browser sends to a server. */
function link() {
  const said = new URLSearchParams(location.hash.slice(1));
  return { campaign: (said.get("campaign") ?? "").toLowerCase(), code: said.get("code") ?? "" };
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
