// One query of a manifest, read strictly. Buckets (the protocol "lae") are not answered by this client.
// @ts-check
import { floats } from "./bytes.js";
import { wholeKeys } from "./encoding.js";
import { fields, whole } from "./fields.js";
import { need } from "./refused.js";

const COMMON = ["M", "id", "kappa", "key_rule", "kind", "weight"];
const ON_KEYS = ["olh", "grr", "hrr"];
const DEEPEST = 60;
const MOST_CENTRES = 4096;
const MOST_VALUES = 2 ** 16;
const MOST_NUMBERS = 2 ** 20; // of a codebook: about a second in a browser, where Python takes 2**26
const LEAST_RHO = 2 ** -126;

/**
 * @param {any} query
 * @param {number} number its place in the round
 * @param {number} nColumns
 */
export function checkQuery(query, number, nColumns) {
  need(typeof query === "object" && query !== null, "a query is no object");
  const isVector = query.kind === "vec";
  need(isVector || ON_KEYS.includes(query.kind), "a query is of a kind that this client does not know");
  const names = [...COMMON, ...checkRule(query, nColumns)];
  if (isVector) {
    names.push("rho");
    need(floats(query.rho, 1)[0] >= LEAST_RHO, "rho is out of range");
  } else if ("fold" in query) {
    names.push("fold");
    checkFold(query.fold);
  }
  fields(query, names);
  whole(query.id, number, number);
  whole(query.weight, 1, 2 ** 31);
  whole(query.M, 2, MOST_VALUES);
  whole(query.kappa, 1, isVector ? query.M - 1 : 1);
  checkSizes(query, nColumns);
}

/**
 * The fields that the rule of keys needs, if they are what they should be.
 * @param {any} query
 * @param {number} nColumns
 */
function checkRule(query, nColumns) {
  if (query.key_rule === "cell") {
    checkMap(query.map, nColumns);
    whole(query.depth, 1, DEEPEST);
    return ["map", "depth"];
  }
  if (query.key_rule === "nearest") {
    const hasMap = "map" in query;
    checkCentres(query.centres, hasMap ? checkMap(query.map, nColumns) : nColumns);
    return hasMap ? ["centres", "map"] : ["centres"];
  }
  need(query.key_rule === "product" && query.kind === "vec", "a query has a rule that this client does not know");
  for (const two of [query.map, query.centres]) need(Array.isArray(two) && two.length === 2, "a product has two of each");
  const axes = query.map.map((/** @type {any} */ map) => checkMap(map, nColumns));
  const n = query.centres.map((/** @type {any} */ text, /** @type {number} */ i) => checkCentres(text, axes[i]));
  need(n[0] + n[1] <= MOST_CENTRES, "there are too many centres");
  floats(query.lift, (axes[0] + axes[1]) * nColumns);
  return ["map", "centres", "lift"];
}

/**
 * @param {any} map
 * @param {number} nColumns
 */
function checkMap(map, nColumns) {
  fields(map, ["A", "d", "gamma"]);
  const axes = whole(map.d, 1, DEEPEST);
  floats(map.A, nColumns * axes);
  floats(map.gamma, axes);
  return axes;
}

/**
 * @param {any} text
 * @param {number} width
 */
function checkCentres(text, width) {
  const n = floats(text).length / width;
  need(Number.isInteger(n) && n >= 1 && n <= MOST_CENTRES, "centres have the wrong size, or are too many");
  return n;
}

/** @param {any} fold */
function checkFold(fold) {
  fields(fold, ["bins", "bit", "seed"]);
  whole(fold.seed, 0, 2 ** 53 - 1);
  whole(fold.bit, 0, 63);
  const bins = whole(fold.bins, 1, 2 ** 20);
  need((bins & (bins - 1)) === 0, "bins is no power of 2");
}

/**
 * @param {any} query
 * @param {number} nColumns
 */
function checkSizes(query, nColumns) {
  const unfolded = wholeKeys(query, nColumns);
  const keys = query.fold ? 2n * BigInt(query.fold.bins) : unfolded;
  need(unfolded <= 1n << BigInt(DEEPEST), "there are too many keys");
  need(query.kind !== "grr" || BigInt(query.M) === (keys > 2n ? keys : 2n), "M is not the number of keys");
  need(query.kind !== "hrr" || (query.M === 2 && keys <= 1n << 30n), "a Hadamard bit has two values and at most 2**30 keys");
  const isLong = query.kind === "vec" && query.M * (nColumns + 1) > MOST_NUMBERS;
  need(!isLong, "a codebook is so large that a browser would be busy for long");
}
