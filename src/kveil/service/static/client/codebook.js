// Codewords, made anew for every report from its seed. The only file with log, cos and sin, whose last bit differs between
// machines; rounding to 2**-24 hides that nearly always. It can cost accuracy and never privacy.
// @ts-check
import { CODEBOOK, mixedSeed, pair } from "./hashing.js";

const UNIT = 2 ** 24;

/**
 * The `kappa` codewords with the largest product with a direction; of equal ones the first. No number counts as the least.
 * @param {bigint} seed
 * @param {number[]} direction
 * @param {number} M
 * @param {number} kappa
 */
export function bestAligned(seed, direction, M, kappa) {
  const mixed = mixedSeed(seed, CODEBOOK);
  const scored = Array.from({ length: M }, (_, j) => {
    const product = codeword(mixed, j, direction.length).reduce((sum, number, i) => sum + number * direction[i], 0);
    return { j, loss: Number.isNaN(product) ? Infinity : -product };
  });
  scored.sort((one, other) => compared(one.loss, other.loss) || one.j - other.j);
  return scored.slice(0, kappa).map(({ j }) => j);
}

/**
 * Codeword j: a direction from pairs of normal deviates (Box, Muller), in whole units of 2**-24.
 * @param {bigint} mixed seed
 * @param {number} j
 * @param {number} length
 */
export function codeword(mixed, j, length) {
  const numbers = new Array(length);
  let total = 0;
  for (let i = 0; i < length; i += 2) {
    const place = 65536n * BigInt(j) + BigInt(i);
    const first = Number(pair(mixed, place) >> 11n);
    const second = Number(pair(mixed, place + 1n) >> 11n);
    const radius = Math.sqrt(-2 * Math.log((first + 1) * 2 ** -53));
    const angle = 2 * Math.PI * (second * 2 ** -53);
    numbers[i] = radius * Math.cos(angle);
    total += numbers[i] * numbers[i];
    if (i + 1 < length) {
      numbers[i + 1] = radius * Math.sin(angle);
      total += numbers[i + 1] * numbers[i + 1];
    }
  }
  const norm = Math.sqrt(total);
  return numbers.map((x) => (norm > 0 ? toEven((x / norm) * UNIT) : 0));
}

/**
 * Halves to even; `Math.round` takes them up.
 * @param {number} x
 */
function toEven(x) {
  const rounded = Math.round(x);
  return rounded - x === 0.5 && rounded % 2 !== 0 ? rounded - 1 : rounded;
}

/**
 * Two infinities are equal, and their difference is no number.
 * @param {number} x
 * @param {number} y
 */
function compared(x, y) {
  return x < y ? -1 : x > y ? 1 : 0;
}
