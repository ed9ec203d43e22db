// Which values a point prefers, under a query. Nothing here can weaken the guarantee: whatever comes out, the randomiser makes
// it a report whose chances differ by at most e**epsilon. The order of operations is part of the protocol.
// @ts-check
import { floats } from "./bytes.js";
import { bestAligned } from "./codebook.js";
import { BIN, DIRECTION, OLH, ROW, SIGN, hashed, uniform } from "./hashing.js";

/** @typedef {any} Query as `queries.js` has checked it */

const LARGEST = 1e300; // coordinates are cut here first, so that nothing overflows
const ROOT = 3; // side of the root cell
const SHARE_OF_POINT = 0.8;
const SHARE_OF_COUNT = 0.2; // of a vector's squared length

/**
 * The point relative to the public ball. One that is no list of finite numbers is its centre, one outside is pulled in.
 * @param {unknown} point
 * @param {number[]} center
 * @param {number} radius
 */
export function intoDomain(point, center, radius) {
  const isPoint = Array.isArray(point) && point.length === center.length && point.every(Number.isFinite);
  const row = isPoint ? point.map((x) => Math.min(Math.max(x, -LARGEST), LARGEST)) : center;
  const away = row.map((x, i) => x - center[i]);
  const largest = away.reduce((most, x) => Math.max(most, Math.abs(x)), 0) || 1;
  const length = largest * Math.sqrt(squared(away.map((x) => x / largest)));
  const shrink = radius / Math.max(length, radius);
  return away.map((x, i) => (center[i] + x * shrink - center[i]) / radius);
}

/**
 * The values that a point of the unit ball prefers.
 * @param {Query} query
 * @param {number[]} x
 * @param {bigint} seed
 * @returns {number[]}
 */
export function preferred(query, x, seed) {
  const key = keyOf(query, x);
  if (query.kind === "olh") return [Number(((hashed(seed, OLH, key) >> 32n) * BigInt(query.M)) >> 32n)];
  if (query.kind === "grr") return [Number(key)];
  if (query.kind === "hrr") return [parity(hashed(seed, ROW, 0n) & (rows(query, x.length) - 1n) & key)];
  const sign = hashed(seed, SIGN, key) >> 63n ? -1 : 1;
  const signed = vectorOf(query, x, key).map((v) => sign * v);
  return bestAligned(seed, direction(signed, seed), query.M, query.kappa);
}

/**
 * How many keys there are before folding.
 * @param {Query} query
 * @param {number} nColumns
 * @returns {bigint}
 */
export function wholeKeys(query, nColumns) {
  if (query.key_rule === "cell") return 1n << BigInt(query.depth);
  if (query.key_rule === "product") {
    const [some, others] = query.centres.map((/** @type {string} */ text) => floats(text).length);
    return BigInt(some / query.map[0].d) * BigInt(others / query.map[1].d);
  }
  return BigInt(floats(query.centres).length / ("map" in query ? query.map.d : nColumns));
}

/**
 * @param {Query} query
 * @param {number[]} x
 */
function keyOf(query, x) {
  const key = wholeKey(query, x);
  if (!query.fold) return key;
  const bin = hashed(BigInt(query.fold.seed), BIN, key) & BigInt(query.fold.bins - 1);
  return (bin << 1n) | ((key >> BigInt(query.fold.bit)) & 1n);
}

/**
 * @param {Query} query
 * @param {number[]} x
 */
function wholeKey(query, x) {
  if (query.key_rule === "cell") return cell(query.map, image(query.map, x), query.depth);
  if (query.key_rule === "product") {
    const [some, others] = query.centres.map((/** @type {string} */ text) => floats(text));
    const first = nearest(image(query.map[0], x), some);
    const second = nearest(image(query.map[1], x), others);
    return BigInt(first * (others.length / query.map[1].d) + second);
  }
  return BigInt(nearest(query.map ? image(query.map, x) : x, floats(query.centres)));
}

/**
 * @param {{A: string, d: number}} map
 * @param {number[]} x
 */
function image(map, x) {
  const axes = floats(map.A, x.length * map.d);
  return intoBall(Array.from({ length: map.d }, (_, j) => x.reduce((sum, v, i) => sum + v * axes[i * map.d + j], 0)));
}

/**
 * The cell of an image: bit i of its key tells the half along axis i mod d.
 * @param {{gamma: string, d: number}} map
 * @param {number[]} y
 * @param {number} depth
 */
function cell(map, y, depth) {
  const shift = floats(map.gamma, map.d);
  const bits = y.map((_, axis) => Math.max(0, Math.ceil((depth - axis) / map.d)));
  const places = y.map((v, i) => {
    const share = (v + shift[i] + ROOT / 2) / ROOT;
    return BigInt(Math.floor(Math.min(Math.max(share * 2 ** bits[i], 0), 2 ** bits[i] - 1)));
  });
  let key = 0n;
  for (let step = 0; step < depth; step++) {
    const axis = step % map.d;
    const done = Math.floor(step / map.d);
    key = (key << 1n) | ((places[axis] >> BigInt(bits[axis] - 1 - done)) & 1n);
  }
  return key;
}

/**
 * The nearest of centres that lie one after the other in `flat`; of equal ones the first.
 * @param {number[]} y
 * @param {number[]} flat
 */
function nearest(y, flat) {
  let [best, least] = [0, Infinity];
  for (let j = 0; j < flat.length / y.length; j++) {
    const centre = flat.slice(j * y.length, (j + 1) * y.length);
    const score = squared(centre) - 2 * y.reduce((sum, v, i) => sum + v * centre[i], 0);
    if (score < least) [best, least] = [j, score];
  }
  return best;
}

/**
 * The vector of a point: where it is from its base, in units of rho, and a one for counting.
 * @param {Query} query
 * @param {number[]} x
 * @param {bigint} key
 */
function vectorOf(query, x, key) {
  const start = base(query, x.length, Number(key));
  const rho = floats(query.rho, 1)[0];
  const away = intoBall(x.map((v, i) => (v - start[i]) / rho));
  return [...away.map((v) => Math.sqrt(SHARE_OF_POINT) * v), Math.sqrt(SHARE_OF_COUNT)];
}

/**
 * @param {Query} query
 * @param {number} nColumns
 * @param {number} key
 * @returns {number[]}
 */
function base(query, nColumns, key) {
  const origin = new Array(nColumns).fill(0);
  if (query.key_rule === "product") {
    const [some, others] = query.centres.map((/** @type {string} */ text) => floats(text));
    const [d, e] = query.map.map((/** @type {{d: number}} */ map) => map.d);
    const [first, second] = [Math.floor(key / (others.length / e)), key % (others.length / e)];
    const both = [...some.slice(first * d, (first + 1) * d), ...others.slice(second * e, (second + 1) * e)];
    const lift = floats(query.lift, (d + e) * nColumns);
    return intoBall(origin.map((_, i) => both.reduce((sum, v, row) => sum + v * lift[row * nColumns + i], 0)));
  }
  if (query.key_rule === "nearest" && !query.map) {
    return floats(query.centres).slice(key * nColumns, (key + 1) * nColumns);
  }
  return origin;
}

/**
 * A unit vector whose mean is the vector: its direction with chance (1 + length)/2, else the opposite. The coin is a hash.
 * @param {number[]} vector
 * @param {bigint} seed
 */
function direction(vector, seed) {
  const length = Math.sqrt(squared(vector));
  const unit = length > 0 ? vector.map((v) => v / length) : vector.map((_, i) => (i === 0 ? 1 : 0));
  const isKept = uniform(hashed(seed, DIRECTION, 0n)) < (1 + Math.min(length, 1)) / 2;
  return isKept ? unit : unit.map((v) => -v);
}

/**
 * Rows of the Hadamard matrix: the power of 2 that has room for all keys.
 * @param {Query} query
 * @param {number} nColumns
 */
function rows(query, nColumns) {
  const keys = query.fold ? 2n * BigInt(query.fold.bins) : wholeKeys(query, nColumns);
  return keys > 1n ? 1n << BigInt((keys - 1n).toString(2).length) : 1n;
}

/** @param {bigint} common */
function parity(common) {
  let odd = 0;
  for (; common; common >>= 1n) odd ^= Number(common & 1n);
  return odd;
}

/** @param {number[]} v */
function intoBall(v) {
  const length = Math.max(Math.sqrt(squared(v)), 1);
  return v.map((x) => x / length);
}

/** @param {number[]} v */
function squared(v) {
  return v.reduce((sum, x) => sum + x * x, 0);
}
