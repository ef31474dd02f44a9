/** Files of an export, most of them packed by gzip: not every web server packs what it sends. */

/** @typedef {(name: string) => Promise<Uint8Array>} Read */

/**
 * Return a function that reads files of a folder from a web server.
 *
 * @param {string | URL} folder its address, which ends with a slash
 * @param {(bytes: number) => void} [received] is told how many bytes have come
 * @returns {Read}
 */
export function reader(folder, received = () => {}) {
  return async (name) => {
    const fail = (/** @type {string} */ why) => {
      throw new Error(`${name} cannot be loaded: ${why}.`);
    };
    // The browser asks the server whether what it has kept is still right: another file may be there by now.
    const asked = fetch(new URL(name, folder), {cache: "no-cache"});
    const response = await asked.catch(() => fail("the web server does not answer"));
    if (!response.ok || !response.body) return fail(`the web server answers with status ${response.status}`);
    const parts = [];
    const stream = response.body.getReader();
    const next = () => stream.read().catch(() => fail("the connection broke off"));
    for (let part = await next(); !part.done; part = await next()) {
      parts.push(part.value);
      received(part.value.length);
    }
    return unpacked(name, new Uint8Array(await new Blob(parts).arrayBuffer()));
  };
}

/** @param {string} name @param {Uint8Array<ArrayBuffer>} bytes @returns {Promise<Uint8Array>} the file, unpacked if it is packed */
export async function unpacked(name, bytes) {
  // A server may say that a .gz file is packed, and the browser unpacks it then.
  if (bytes[0] !== 0x1f || bytes[1] !== 0x8b) return bytes;
  try {
    const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
    return new Uint8Array(await new Response(stream).arrayBuffer());
  } catch {
    throw new Damaged(name);
  }
}

/** A file that cannot be read. */
export class Damaged extends Error {
  /** @param {string} file */
  constructor(file) {
    super(`${file} is damaged or cut off. Load the page again.`);
    this.file = file;
  }
}
