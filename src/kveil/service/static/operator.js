// The operator's page, on the admin address: rounds, counts, deadlines, and at the end centres with their uncertainty. Read only.
// @ts-check

/**
 * @typedef {{centers: number[][], counts: number[] | null, count_sd: number | null, sd: number[] | null, warnings: string[], forgery: string[]}} Result
 * @typedef {{campaign: string, name: string, state: string, round: number, rounds: number, not_before: string, not_after: string,
 *   days_left: number, reports: number, least: number, laid_out_for: number, epsilon: string, stuck: number, result?: Result}} Campaign
 */

const STATUS = new URL("../status", import.meta.url); // of the address that serves this page
const SECONDS = 30;

await show();
setInterval(show, 1000 * SECONDS);

async function show() {
  const about = /** @type {HTMLElement} */ (document.getElementById("about"));
  try {
    const reply = await fetch(STATUS, { credentials: "omit", cache: "no-store" });
    if (!reply.ok) throw new Error(`status ${reply.status}`);
    /** @type {{campaigns: Campaign[]}} */
    const { campaigns } = await reply.json();
    document.getElementById("campaigns")?.replaceChildren(...campaigns.map(section));
    about.textContent = campaigns.length ? `As of ${new Date().toLocaleTimeString()}, refreshed every ${SECONDS} seconds.` : "There is no campaign yet.";
  } catch {
    about.textContent = "The collector does not answer. What is shown may be old.";
  }
}

/** @param {Campaign} one */
function section(one) {
  const made = node("section", "", node("h2", one.name), node("p", "", node("span", one.state, "state")));
  const rows = [
    ["Campaign", `${one.campaign.slice(0, 16)}…`],
    ["Round", `${one.round} of ${one.rounds}, epsilon ${one.epsilon}`],
    ["Days", `${one.not_before} to ${one.not_after}${one.state === "open" ? `, ${one.days_left} left` : ""}`],
    ["Reports", `${number(one.reports)}, at least ${number(one.least)}, laid out for ${number(one.laid_out_for)}`],
  ];
  const lines = rows.map(([name, value]) => node("tr", "", node("th", name), node("td", value)));
  made.append(node("div", "", table(lines)));
  if (one.stuck) made.append(node("p", "Its days are over and it has too few reports. It can only be ended.", "alarm"));
  if (one.result) made.append(...outcome(one.result));
  return made;
}

/** @param {Result} result */
function outcome(result) {
  const { centers, counts, count_sd: countSd, sd } = result;
  const head = ["Centre", ...(sd ? ["± per coordinate"] : []), ...(counts ? ["People"] : [])];
  const lines = centers.map((centre, i) => {
    const cells = [centre.map((x) => short(x)).join(", "), ...(sd ? [short(sd[i])] : [])];
    if (counts) cells.push(number(Math.round(counts[i])) + (countSd === null ? "" : ` ± ${number(Math.round(countSd))}`));
    return node("tr", "", ...cells.map((text) => node("td", text)));
  });
  const made = node("div", "", table([node("tr", "", ...head.map((text) => node("th", text))), ...lines]));
  made.className = "wide";
  const warnings = result.warnings.map((text) => node("p", `Warning: ${text}`));
  return [node("h3", "Result"), made, ...warnings, ...result.forgery.map((text) => node("p", `Forged reports: ${text}`))];
}

/** @param {HTMLElement[]} lines */
function table(lines) {
  return node("table", "", node("tbody", "", ...lines));
}

/**
 * An element with text, which is never read as HTML.
 * @param {string} name
 * @param {string} text
 * @param {...(HTMLElement | string)} more elements inside, or a class at the end
 */
function node(name, text, ...more) {
  const made = document.createElement(name);
  made.textContent = text;
  for (const one of more) {
    if (typeof one === "string") made.className = one;
    else made.append(one);
  }
  return made;
}

/** @param {number} x */
function number(x) {
  return x.toLocaleString("en");
}

/** @param {number} x */
function short(x) {
  return String(Number(x.toPrecision(4)));
}
