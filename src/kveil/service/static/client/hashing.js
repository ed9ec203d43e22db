// Public hashing of (seed, key): mix is the finisher of SplitMix64, H(seed, tag, key) = mix(mix(seed + tag G) ^ mix(key + G)).
// Words of 64 bits are BigInt; arithmetic wraps.
// @ts-check

const GOLDEN = 0x9e3779b97f4a7c15n;
export const [OLH, SIGN, ROW, CODEBOOK, DIRECTION, BIN] = [1n, 2n, 3n, 4n, 5n, 6n];

/** @param {bigint} x */
export function mix(x) {
  x = wrapped((x ^ (x >> 30n)) * 0xbf58476d1ce4e5b9n);
  x = wrapped((x ^ (x >> 27n)) * 0x94d049bb133111ebn);
  return x ^ (x >> 31n);
}

/**
 * @param {bigint} seed
 * @param {bigint} tag
 * @param {bigint} key
 */
export function hashed(seed, tag, key) {
  return pair(mixedSeed(seed, tag), key);
}

/**
 * @param {bigint} seed
 * @param {bigint} tag
 */
export function mixedSeed(seed, tag) {
  return mix(wrapped(seed + tag * GOLDEN));
}

/**
 * The hash of a seed that is mixed already, and a key.
 * @param {bigint} mixed
 * @param {bigint} key
 */
export function pair(mixed, key) {
  return mix(mixed ^ mix(wrapped(key + GOLDEN)));
}

/**
 * A number in [0, 1).
 * @param {bigint} word
 */
export function uniform(word) {
  return Number(word >> 11n) * 2 ** -53;
}

/** @param {bigint} x */
function wrapped(x) {
  return BigInt.asUintN(64, x);
}
