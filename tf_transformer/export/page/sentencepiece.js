/** A SentencePiece model as its file holds it, a protocol buffer. */

export const KIND = {NORMAL: 1, UNKNOWN: 2, CONTROL: 3, USER_DEFINED: 4, UNUSED: 5, BYTE: 6};
export const UNIGRAM = 1, BPE = 2, WORD = 3, CHAR = 4;
export const SPACE_MARK = "\u2581";

/** @typedef {{text: string, score: number, kind: number}} Piece */
/** @typedef {{text: string, id: number}} Cut a piece of a text and its id */
/**
 * @typedef {Object} Model
 * @property {Piece[]} pieces
 * @property {number} algorithm UNIGRAM, BPE, WORD or CHAR
 * @property {boolean} byteFallback whether an unknown character becomes its bytes
 * @property {boolean} spaceAsSuffix whether a word has its space after it
 * @property {string} unknownSurface what is written for the unknown piece
 * @property {Rules} normalizer
 * @property {Rules | null} denormalizer
 */
/**
 * @typedef {Object} Rules how a text is normalised
 * @property {Uint8Array} charsmap
 * @property {boolean} addPrefix
 * @property {boolean} removeExtraSpaces
 * @property {boolean} escapeSpaces
 */

/**
 * Read a model.
 *
 * @param {Uint8Array} bytes
 * @returns {Model}
 */
export function readModel(bytes) {
  const {1: pieces = [], 2: [trainer = null] = [], 3: [normalizer = null] = [], 5: [denormalizer = null] = []} = fields(bytes);
  const settings = trainer ? fields(asBytes(trainer)) : {};
  const surface = settings[44]?.[0];
  const undone = denormalizer && readRules(asBytes(denormalizer));
  return {
    pieces: pieces.map((piece) => readPiece(asBytes(piece))),
    algorithm: number(settings, 3, UNIGRAM),
    byteFallback: number(settings, 35, 0) === 1,
    spaceAsSuffix: number(settings, 24, 0) === 1,
    unknownSurface: surface === undefined ? " \u2047 " : text(asBytes(surface)),
    normalizer: readRules(normalizer ? asBytes(normalizer) : new Uint8Array()),
    denormalizer: undone && undone.charsmap.length ? undone : null,
  };
}

/** @param {Uint8Array} bytes @returns {Piece} */
function readPiece(bytes) {
  const read = fields(bytes);
  const score = read[2] ? asBytes(read[2][0]) : new Uint8Array(4);
  return {
    text: text(asBytes(read[1][0])),
    score: new DataView(score.buffer, score.byteOffset, 4).getFloat32(0, true),
    kind: number(read, 3, KIND.NORMAL),
  };
}

/** @param {Uint8Array} bytes @returns {Rules} */
function readRules(bytes) {
  const read = fields(bytes);
  const [addPrefix, removeExtraSpaces, escapeSpaces] = [3, 4, 5].map((field) => number(read, field, 1) === 1);
  return {charsmap: read[2] ? asBytes(read[2][0]) : new Uint8Array(), addPrefix, removeExtraSpaces, escapeSpaces};
}

/**
 * Return the fields of a message: numbers for integers, bytes for all others.
 *
 * @param {Uint8Array} bytes
 * @returns {Record<number, (number | Uint8Array)[]>}
 */
function fields(bytes) {
  /** @type {Record<number, (number | Uint8Array)[]>} */
  const found = {};
  let place = 0;
  const integer = () => {
    let [value, factor, byte] = [0, 1, 0x80];
    while (byte & 0x80) {
      if (place >= bytes.length) throw new Error("the file is damaged or cut off");
      byte = bytes[place++];
      value += (byte & 0x7f) * factor;
      factor *= 128;
    }
    return value;
  };
  const part = (/** @type {number | undefined} */ length) => {
    if (length === undefined || place + length > bytes.length) throw new Error("the file is damaged or cut off");
    return bytes.subarray(place, (place += length));
  };
  while (place < bytes.length) {
    const key = integer();
    const [tag, kind] = [Math.floor(key / 8), key % 8];
    (found[tag] ??= []).push(kind === 0 ? integer() : part(kind === 2 ? integer() : {1: 8, 5: 4}[kind]));
  }
  return found;
}

/** @param {number | Uint8Array} value @returns {Uint8Array} */
function asBytes(value) {
  if (typeof value === "number") throw new Error("the file is damaged or cut off");
  return value;
}

/** @param {Record<number, (number | Uint8Array)[]>} read @param {number} field @param {number} otherwise */
function number(read, field, otherwise) {
  const value = read[field]?.[0] ?? otherwise;
  return typeof value === "number" ? value : otherwise;
}

/** @param {Uint8Array} bytes @returns {string} */
function text(bytes) {
  return new TextDecoder("utf-8", {fatal: true, ignoreBOM: true}).decode(bytes);
}
