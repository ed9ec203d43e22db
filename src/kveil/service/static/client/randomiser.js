// The one randomiser: a preferred value is a/b times as likely as any other. Every chance is decided in whole numbers.
// @ts-check

/** @typedef {() => bigint} Words a source of uniform words of 64 bits; the only source of chance in this client */

const OTHER = 1n << 32n; // weight b of a value that is not preferred

/**
 * Words of the system.
 * @type {Words}
 */
export function systemWord() {
  return new DataView(crypto.getRandomValues(new Uint8Array(8)).buffer).getBigUint64(0, true);
}

/**
 * The weights a = floor(2**32 e**(p/q)) and b = 2**32. e**x lies between sums of terms that were rounded down and up; with
 * enough bits both have the same floor, since e**x is irrational.
 * @param {string} epsilon "p" or "p/q"
 * @returns {[bigint, bigint]}
 */
export function weights(epsilon) {
  const [p, q = 1n] = epsilon.split("/").map(BigInt);
  for (let bits = 128n; ; bits *= 2n) {
    let [low, high, n] = [0n, 0n, 0n];
    let [least, most] = [1n << bits, 1n << bits];
    while (most > 1n || n * q < 2n * p) {
      low += least;
      high += most;
      n += 1n;
      least = (least * p) / (q * n);
      most = (most * p) / (q * n) + 1n;
    }
    high += 4n; // the rest: from here on a term is at most half of the one before
    const [below, above] = [low >> (bits - 32n), high >> (bits - 32n)];
    if (below === above) return [below, OTHER];
  }
}

/**
 * A uniform number below n from whole words: for moments and queries.
 * @param {Words} word
 * @param {bigint} n
 */
export function secretBelow(word, n) {
  const most = 2n ** 64n - (2n ** 64n % n);
  for (;;) {
    const drawn = word();
    if (drawn < most) return drawn % n;
  }
}

/**
 * One of `M` values. How many words it takes does not depend on what is preferred.
 * @param {Words} word
 * @param {unknown} preferred
 * @param {number} M
 * @param {number} kappa how many are preferred
 * @param {string} epsilon
 */
export function subsetSelect(word, preferred, M, kappa, epsilon) {
  const [a, b] = weights(epsilon);
  const total = BigInt(kappa) * a + BigInt(M - kappa) * b;
  return chosen(drawBelow(word, total), soundSubset(preferred, M, kappa), a, b);
}

/**
 * The value that a draw below all weights falls on: preferred ones first, then the others, both in order.
 * @param {bigint} draw
 * @param {number[]} subset ascending
 * @param {bigint} a
 * @param {bigint} b
 */
export function chosen(draw, subset, a, b) {
  const size = BigInt(subset.length);
  if (draw < size * a) return subset[Number(draw / a)];
  const rank = Number((draw - size * a) / b);
  return rank + subset.filter((value, i) => value - i <= rank).length;
}

/**
 * A uniform number below n from the top bits of words.
 * @param {Words} word
 * @param {bigint} n
 */
function drawBelow(word, n) {
  const dropped = 64n - BigInt((n - 1n).toString(2).length);
  for (;;) {
    const drawn = word() >> dropped;
    if (drawn < n) return drawn;
  }
}

/**
 * What is no list of `kappa` distinct values below M counts as 0 .. kappa-1: nothing may throw once a point was read.
 * @param {unknown} given
 * @param {number} M
 * @param {number} kappa
 * @returns {number[]}
 */
function soundSubset(given, M, kappa) {
  const listed = Array.isArray(given) && given.length === kappa && given.every(Number.isInteger) ? given : [];
  const ordered = [...listed].sort((x, y) => x - y);
  const isDistinct = ordered.every((value, i) => i === 0 || value > ordered[i - 1]);
  const isSound = ordered.length > 0 && isDistinct && ordered[0] >= 0 && ordered[kappa - 1] < M;
  return isSound ? ordered : Array.from({ length: kappa }, (_, i) => i);
}
