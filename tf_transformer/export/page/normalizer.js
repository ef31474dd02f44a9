/** The normalisation of SentencePiece: the rules that are compiled into a model, and the marks of spaces. */

import {SPACE_MARK} from "./sentencepiece.js";

const SPACE = 0x20;
const REPLACEMENT = new TextEncoder().encode("\ufffd");

/** Replaces what the rules of a model replace. */
export class Normalizer {
  /**
   * @param {import("./sentencepiece.js").Rules} rules
   * @param {string[]} [asTheyAre] pieces that no rule changes
   * @param {boolean} [spaceAsSuffix]
   */
  constructor(rules, asTheyAre = [], spaceAsSuffix = false) {
    this.rules = rules;
    this.spaceAsSuffix = spaceAsSuffix;
    const encoder = new TextEncoder();
    this.asTheyAre = asTheyAre.map((piece) => encoder.encode(piece)).sort((a, b) => b.length - a.length);
    const map = rules.charsmap;
    const size = map.length ? new DataView(map.buffer, map.byteOffset).getUint32(0, true) : 0;
    /** A double array, as the library Darts writes it: a unit of 32 bits for each node. */
    this.units = new Uint32Array(new Uint8Array(map.subarray(4, 4 + size)).buffer);
    this.replacements = map.subarray(4 + size);
  }

  /** @param {string} given @returns {string} */
  normalize(given) {
    const {addPrefix, removeExtraSpaces, escapeSpaces} = this.rules;
    const bytes = new TextEncoder().encode(given);
    /** @type {number[]} */
    const written = [];
    let place = 0;
    while (removeExtraSpaces && place < bytes.length) {
      const [start, length] = this.next(bytes, place);
      if (start.length !== 1 || start[0] !== SPACE) break;
      place += length;
    }
    if (place === bytes.length) return "";
    let isAfterSpace = removeExtraSpaces;
    while (place < bytes.length) {
      const [part, length] = this.next(bytes, place);
      place += length;
      let from = 0;
      while (isAfterSpace && part[from] === SPACE) from++;
      for (let i = from; i < part.length; i++) written.push(part[i]);
      if (from < part.length) isAfterSpace = part[part.length - 1] === SPACE;
      if (!removeExtraSpaces) isAfterSpace = false;
    }
    const mark = escapeSpaces ? SPACE_MARK : " ";
    const decoded = new TextDecoder("utf-8", {ignoreBOM: true}).decode(new Uint8Array(written)).replaceAll(" ", mark);
    let text = addPrefix && !this.spaceAsSuffix ? mark + decoded : decoded;
    // Marks that the text itself has at its end are taken for spaces.
    while (removeExtraSpaces && text.endsWith(mark)) text = text.slice(0, -1);
    return addPrefix && this.spaceAsSuffix ? text + mark : text;
  }

  /**
   * @param {Uint8Array} bytes @param {number} place
   * @returns {[Uint8Array, number]} what the next bytes become, and how many they are
   */
  next(bytes, place) {
    const fixed = this.asTheyAre.find((piece) => piece.every((byte, i) => bytes[place + i] === byte));
    if (fixed) return [fixed, fixed.length];
    const [length, replacement] = this.longestRule(bytes, place);
    if (length) return [this.replacements.subarray(replacement, this.replacements.indexOf(0, replacement)), length];
    const ofCharacter = lengthOf(bytes[place]);
    return ofCharacter ? [bytes.subarray(place, place + ofCharacter), ofCharacter] : [REPLACEMENT, 1];
  }

  /** @param {Uint8Array} bytes @param {number} place @returns {[number, number]} bytes of a rule, its replacement */
  longestRule(bytes, place) {
    const units = this.units;
    let [length, replacement] = [0, 0];
    if (!units.length) return [length, replacement];
    let node = offset(units[0]);
    for (let i = place; i < bytes.length; i++) {
      node ^= bytes[i];
      const unit = units[node];
      if ((unit & 0x800000ff) >>> 0 !== bytes[i]) break;
      node ^= offset(unit);
      if ((unit >>> 8) & 1) [length, replacement] = [i + 1 - place, units[node] & 0x7fffffff];
    }
    return [length, replacement];
  }
}

/** @param {number} unit @returns {number} */
function offset(unit) {
  return (unit >>> 10) << ((unit & 0x200) >>> 6);
}

/** @param {number} first @returns {number} the bytes of a character of UTF-8, given the first */
export function lengthOf(first) {
  if (first < 0x80) return 1;
  if (first < 0xc2 || first > 0xf4) return 0;
  return first < 0xe0 ? 2 : first < 0xf0 ? 3 : 4;
}
