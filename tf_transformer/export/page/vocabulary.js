/** Text to ids and ids to text, as `tf_transformer.tokenizers.vocabulary` has them. */

import {Normalizer} from "./normalizer.js";
import {Segmentation} from "./segmentation.js";
import {KIND, readModel, SPACE_MARK} from "./sentencepiece.js";

const UNKNOWN = 1, END = 3;
const LANGUAGE = /^>>\S+<<$/u;
/** What is read as a language at the beginning of a text, known or not. */
export const AT_FRONT = /^>>.*?<</su;

/** The pieces of a SentencePiece model and their ids. */
export class Vocabulary {
  /**
   * @param {Uint8Array} file a SentencePiece model
   * @param {number} size the number of ids in use
   * @param {string} blanks the characters, as a class of a regular expression, of which a blank line consists
   */
  constructor(file, size, blanks) {
    this.model = readModel(file);
    this.size = size;
    this.blank = new RegExp(`^[${blanks}]*$`, "u");
    this.segmentation = new Segmentation(this.model);
    const {normalizer, denormalizer, spaceAsSuffix} = this.model;
    this.normalizer = new Normalizer(normalizer, this.segmentation.userDefined, spaceAsSuffix);
    this.denormalizer = denormalizer && new Normalizer(denormalizer);
    this.pieces = this.model.pieces.slice(0, size).map((piece) => piece.text);
    const isWhole = size === this.model.pieces.length && this.model.pieces.every((piece) => piece.kind !== KIND.UNUSED);
    /** @type {Map<string, number> | null} the ids of pieces, if those of the model are not right */
    this.ids = isWhole ? null : new Map();
    this.pieces.forEach((piece, id) => {
      if (id > END && this.model.pieces[id].kind !== KIND.CONTROL) this.ids?.set(piece, id);
    });
    /** Whether text may begin with a language such as `>>de<<`, which is one token. */
    this.hasCodes = [...(this.ids?.keys() ?? [])].some((piece) => LANGUAGE.test(piece));
  }

  /** @param {string} text @returns {number[]} its ids, without start and end */
  encode(text) {
    const whole = text.replace(/[\ud800-\udbff](?![\udc00-\udfff])|(?<![\ud800-\udbff])[\udc00-\udfff]/g, "?");
    if (this.blank.test(whole)) return [];
    const {ids} = this;
    if (!ids) return this.cut(whole).map(({id}) => id);
    const front = (this.hasCodes && whole.match(AT_FRONT)) || [];
    const pieces = this.cut(whole.slice(front[0]?.length ?? 0)).map(({text: piece}) => piece);
    return [...front, ...pieces].map((piece) => ids.get(piece) ?? UNKNOWN);
  }

  /** @param {string} text @returns {import("./sentencepiece.js").Cut[]} its pieces, unknown characters joined or in bytes */
  cut(text) {
    const {unknown} = this.segmentation;
    /** @type {import("./sentencepiece.js").Cut[]} */
    const found = [];
    let isAfterUnknown = false;
    for (const piece of this.segmentation.cut(this.normalizer.normalize(text))) {
      const isUnknown = piece.id === unknown;
      if (isUnknown && this.model.byteFallback) {
        for (const byte of new TextEncoder().encode(piece.text)) {
          found.push(this.segmentation.known(`<0x${byte.toString(16).toUpperCase().padStart(2, "0")}>`));
        }
      } else if (isUnknown && isAfterUnknown) {
        found[found.length - 1].text += piece.text;
      } else {
        found.push(piece);
      }
      isAfterUnknown = isUnknown;
    }
    return found;
  }

  /** @param {number[]} ids with or without special tokens @returns {string} */
  decode(ids) {
    const {pieces, normalizer, unknownSurface} = this.model;
    let text = "";
    let [isFirst, hadSpace] = [true, false];
    /** @type {number[]} */
    let bytes = [];
    const flush = () => {
      // A byte that belongs to no character is one replacement, as SentencePiece has it; TextDecoder may join them.
      text += decodedBytes(bytes);
      bytes = [];
    };
    for (const id of ids.filter((each) => (each === UNKNOWN || each > END) && each < this.size)) {
      const {text: piece, kind} = pieces[id];
      if (kind === KIND.BYTE) {
        bytes.push(parseInt(piece.slice(3, 5), 16));
        continue;
      }
      flush();
      if (hadSpace || text) isFirst = false;
      hadSpace = false;
      if (kind === KIND.CONTROL) continue;
      if (kind === KIND.UNKNOWN) {
        text += unknownSurface;
        continue;
      }
      let said = piece;
      if (isFirst && (normalizer.addPrefix || normalizer.removeExtraSpaces)) {
        said = piece.replace(/^\u2581/u, "");
        hadSpace = said !== piece && !normalizer.removeExtraSpaces;
      }
      text += said.replaceAll(SPACE_MARK, " ");
    }
    flush();
    const written = this.denormalizer ? this.denormalizer.normalize(text) : text;
    return written.replaceAll(SPACE_MARK, " ").replace(/^ /u, "");
  }
}

/** @param {number[]} bytes @returns {string} */
function decodedBytes(bytes) {
  const decoder = new TextDecoder("utf-8", {fatal: true, ignoreBOM: true});
  let text = "";
  for (let i = 0; i < bytes.length; ) {
    let length = 4;
    for (; length > 0; length--) {
      try {
        const character = decoder.decode(new Uint8Array(bytes.slice(i, i + length)));
        if ([...character].length !== 1) continue;
        text += character;
        break;
      } catch {
        continue;
      }
    }
    if (!length) text += "\ufffd";
    i += length || 1;
  }
  return text;
}
