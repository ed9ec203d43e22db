// BLAKE2b (RFC 7693), which WebCrypto does not have: for the seed of a report and the seal of a ledger. Short messages only.
// @ts-check

const IV = [
  0x6a09e667f3bcc908n, 0xbb67ae8584caa73bn, 0x3c6ef372fe94f82bn, 0xa54ff53a5f1d36f1n,
  0x510e527fade682d1n, 0x9b05688c2b3e6c1fn, 0x1f83d9abfb41bd6bn, 0x5be0cd19137e2179n,
];
const SIGMA = [
  "0123456789abcdef", "ea489fd61c02b753", "b8c052fdae367194", "7931dcbe265a40f8", "905724afe1bc683d",
  "2c6a0b834d75fe19", "c51fed4a0763928b", "db7ec13950f4862a", "6fe9b308c2d714a5", "a2847615fb9e3cd0",
].map((row) => Array.from(row, (digit) => parseInt(digit, 16)));
const BLOCK = 128;
const ALL = 0xffffffffffffffffn;

/**
 * @param {Uint8Array} message
 * @param {{size: number, key?: Uint8Array, person?: string}} options size: bytes of the digest
 */
export function blake2b(message, { size, key = new Uint8Array(), person = "" }) {
  const parameters = new Uint8Array(64);
  parameters.set([size, key.length, 1, 1]);
  parameters.set(new TextEncoder().encode(person), 48);
  const state = words(parameters).map((word, i) => word ^ IV[i]);
  const whole = withKey(message, key);
  const blocks = Math.max(1, Math.ceil(whole.length / BLOCK));
  for (let i = 0; i < blocks; i++) {
    const block = new Uint8Array(BLOCK);
    block.set(whole.subarray(i * BLOCK, (i + 1) * BLOCK));
    const isLast = i === blocks - 1;
    compress(state, words(block), BigInt(isLast ? whole.length : (i + 1) * BLOCK), isLast);
  }
  const out = new DataView(new ArrayBuffer(64));
  state.forEach((word, i) => out.setBigUint64(8 * i, word, true));
  return new Uint8Array(out.buffer, 0, size).slice();
}

/**
 * A key is a block of its own before the message.
 * @param {Uint8Array} message
 * @param {Uint8Array} key
 */
function withKey(message, key) {
  if (!key.length) return message;
  const whole = new Uint8Array(BLOCK + message.length);
  whole.set(key);
  whole.set(message, BLOCK);
  return whole;
}

/** @param {Uint8Array} bytes */
function words(bytes) {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.length);
  return Array.from({ length: bytes.length / 8 }, (_, i) => view.getBigUint64(8 * i, true));
}

/**
 * @param {bigint[]} state
 * @param {bigint[]} block
 * @param {bigint} length bytes so far
 * @param {boolean} isLast
 */
function compress(state, block, length, isLast) {
  const v = [...state, ...IV];
  v[12] ^= length;
  if (isLast) v[14] ^= ALL;
  for (let round = 0; round < 12; round++) {
    const order = SIGMA[round % 10].map((place) => block[place]);
    for (let i = 0; i < 4; i++) stir(v, i, 4 + i, 8 + i, 12 + i, order[2 * i], order[2 * i + 1]);
    for (let i = 0; i < 4; i++) {
      stir(v, i, 4 + ((i + 1) % 4), 8 + ((i + 2) % 4), 12 + ((i + 3) % 4), order[8 + 2 * i], order[9 + 2 * i]);
    }
  }
  state.forEach((word, i) => (state[i] = word ^ v[i] ^ v[i + 8]));
}

/**
 * The function G of the standard.
 * @param {bigint[]} v
 * @param {number} a
 * @param {number} b
 * @param {number} c
 * @param {number} d
 * @param {bigint} x
 * @param {bigint} y
 */
function stir(v, a, b, c, d, x, y) {
  v[a] = (v[a] + v[b] + x) & ALL;
  v[d] = turned(v[d] ^ v[a], 32n);
  v[c] = (v[c] + v[d]) & ALL;
  v[b] = turned(v[b] ^ v[c], 24n);
  v[a] = (v[a] + v[b] + y) & ALL;
  v[d] = turned(v[d] ^ v[a], 16n);
  v[c] = (v[c] + v[d]) & ALL;
  v[b] = turned(v[b] ^ v[c], 63n);
}

/**
 * @param {bigint} x
 * @param {bigint} n
 */
function turned(x, n) {
  return ((x >> n) | (x << (64n - n))) & ALL;
}
