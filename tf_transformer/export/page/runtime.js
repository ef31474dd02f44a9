/** LiteRT as this browser can run it. */

import {Damaged} from "./files.js";
import {LiteRT, TooLarge} from "./litert.js";

const SIMD = [
  0, 97, 115, 109, 1, 0, 0, 0, 1, 5, 1, 96, 0, 1, 123, 3, 2, 1, 0, 10, 10, 1, 8, 0, 65, 0, 253, 15, 253, 98, 11,
];
const RELAXED_SIMD = [
  0, 97, 115, 109, 1, 0, 0, 0, 1, 5, 1, 96, 0, 1, 123, 3, 2, 1, 0, 10, 15, 1, 13, 0, 65, 1, 253, 15, 65, 2, 253, 15,
  253, 128, 2, 11,
];

/** @returns {string} the name of the files of the fastest build that runs here */
export function build() {
  const needed = {
    "WebAssembly with SIMD": typeof WebAssembly !== "undefined" && runs(SIMD),
    "decompression of files": typeof DecompressionStream !== "undefined",
  };
  for (const [name, isThere] of Object.entries(needed)) {
    if (!isThere) throw new Error(`This browser is too old: it has no ${name}, which the translator needs.`);
  }
  try {
    new WebAssembly.Module(new Uint8Array(SIMD));
  } catch {
    // It is valid, so what is left is a rule against it.
    throw new Error("The web server forbids WebAssembly: its Content-Security-Policy needs script-src 'wasm-unsafe-eval'.");
  }
  return runs(RELAXED_SIMD) ? "relaxed" : "plain";
}

/** @param {number[]} module @returns {boolean} */
function runs(module) {
  return WebAssembly.validate(new Uint8Array(module));
}

/** @param {import("./files.js").Read} read @returns {Promise<LiteRT>} */
export async function startLiteRT(read) {
  const name = build();
  const file = `runtime/${name}.wasm.gz`;
  const [script, binary] = await Promise.all([import(`./runtime/${name}.js`), read(file)]);
  // A web server may send a page of its own instead of a file.
  if (String.fromCharCode(...binary.subarray(0, 4)) !== "\0asm") throw new Damaged(file);
  return LiteRT.start(script.default, /** @type {ArrayBuffer} */ (binary.buffer)).catch((error) => {
    throw /memory/iu.test(String(error)) ? new TooLarge() : error;
  });
}
