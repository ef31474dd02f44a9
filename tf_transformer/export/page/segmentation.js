/** A normalised text in pieces: the four algorithms of SentencePiece. */

import {BPE, CHAR, KIND, SPACE_MARK, UNIGRAM, WORD} from "./sentencepiece.js";

const {fround} = Math;
const UNKNOWN_PENALTY = 10;
/** The score of a piece that a user defined, for each byte after its first. All others have negative ones. */
const OF_BYTE = fround(0.1);

/** @typedef {import("./sentencepiece.js").Cut} Cut */

/** Cuts texts into the pieces of a model. */
export class Segmentation {
  /** @param {import("./sentencepiece.js").Model} model */
  constructor(model) {
    this.model = model;
    const {pieces} = model;
    this.unknown = pieces.findIndex((piece) => piece.kind === KIND.UNKNOWN);
    /** @type {Map<string, number>} */
    this.inText = new Map();
    /** @type {Map<string, number>} */
    this.reserved = new Map();
    pieces.forEach(({text, kind}, id) => {
      const isInText = kind === KIND.NORMAL || kind === KIND.USER_DEFINED || kind === KIND.UNUSED;
      (isInText ? this.inText : this.reserved).set(text, id);
    });
    this.userDefined = pieces.filter((piece) => piece.kind === KIND.USER_DEFINED).map((piece) => piece.text);
    this.userDefined.sort((a, b) => b.length - a.length);
    const scores = pieces.filter((piece) => piece.kind === KIND.NORMAL).map((piece) => piece.score);
    this.least = scores.reduce((a, b) => Math.min(a, b), Infinity);
    /** The beginnings of pieces, by their number of code units: the longest piece that may begin with them. */
    this.longest = new Map();
    for (const text of this.inText.keys()) {
      const first = text.codePointAt(0);
      this.longest.set(first, Math.max(this.longest.get(first) ?? 0, text.length));
    }
  }

  /** @param {string} text normalised @returns {Cut[]} */
  cut(text) {
    switch (this.model.algorithm) {
      case UNIGRAM: return this.byUnigram(text);
      case BPE: return this.byMerges(text);
      case WORD: return this.words(text).map((word) => this.known(word));
      case CHAR: return this.characters(text).map(({text: character}) => this.known(character));
      default: throw new Error(`an unknown algorithm of SentencePiece: ${this.model.algorithm}`);
    }
  }

  /** @param {string} text @returns {Cut} */
  known(text) {
    return {text, id: this.reserved.get(text) ?? this.inText.get(text) ?? this.unknown};
  }

  /** @param {string} text @returns {string[]} */
  words(text) {
    return text.match(/\u2581[^\u2581]*|^[^\u2581]+/gu) ?? [];
  }

  /** @param {string} text @returns {{text: string, isFixed: boolean}[]} characters and pieces that are never cut */
  characters(text) {
    const found = [];
    for (let place = 0; place < text.length; ) {
      const fixed = this.userDefined.find((piece) => text.startsWith(piece, place));
      const part = fixed ?? String.fromCodePoint(text.codePointAt(place) ?? 0);
      found.push({text: part, isFixed: fixed !== undefined});
      place += part.length;
    }
    return found;
  }

  /** Find the pieces with the highest sum of scores (Viterbi). @param {string} text @returns {Cut[]} */
  byUnigram(text) {
    const {pieces} = this.model;
    const ofUnknown = fround(this.least - UNKNOWN_PENALTY);
    const scores = new Float32Array(text.length + 1);
    const starts = new Int32Array(text.length + 1).fill(-1);
    const ids = new Int32Array(text.length + 1);
    const offer = (/** @type {number} */ start, /** @type {number} */ end, /** @type {number} */ id, /** @type {number} */ score) => {
      if (starts[end] >= 0 && score <= scores[end]) return;
      [scores[end], starts[end], ids[end]] = [score, start, id];
    };
    for (let start = 0; start < text.length; ) {
      const before = scores[start];
      const first = text.codePointAt(start) ?? 0;
      const width = first > 0xffff ? 2 : 1;
      const last = Math.min(text.length, start + (this.longest.get(first) ?? 0));
      let isKnown = false;
      for (let end = start + width; end <= last; end++) {
        const id = this.inText.get(text.slice(start, end));
        if (id === undefined || pieces[id].kind === KIND.UNUSED) continue;
        const isFixed = pieces[id].kind === KIND.USER_DEFINED;
        const score = isFixed ? fround(OF_BYTE * (this.bytes(text.slice(start, end)) - 1)) : pieces[id].score;
        offer(start, end, id, fround(score + before));
        isKnown ||= end === start + width;
      }
      if (!isKnown) offer(start, start + width, this.unknown, fround(ofUnknown + before));
      start += width;
    }
    const found = [];
    for (let end = text.length; end > 0; end = starts[end]) found.push({text: text.slice(starts[end], end), id: ids[end]});
    return found.reverse();
  }

  /** @param {string} text @returns {number} */
  bytes(text) {
    return new TextEncoder().encode(text).length;
  }

  /** Join neighbours, those with the highest score first (BPE). @param {string} text @returns {Cut[]} */
  byMerges(text) {
    const symbols = this.characters(text).map(({text, isFixed}, i, all) => (
      {text, isFixed, before: i - 1, after: i + 1 < all.length ? i + 1 : -1}
    ));
    const queue = new Queue();
    /** @type {Map<string, [string, string]>} */
    const halves = new Map();
    const offer = (/** @type {number} */ left, /** @type {number} */ right) => {
      if (left < 0 || right < 0 || symbols[left].isFixed || symbols[right].isFixed) return;
      const joined = symbols[left].text + symbols[right].text;
      const id = this.inText.get(joined);
      if (id === undefined) return;
      const {score, kind} = this.model.pieces[id];
      queue.push({left, right, score, length: joined.length});
      if (kind === KIND.UNUSED) halves.set(joined, [symbols[left].text, symbols[right].text]);
    };
    for (let i = 1; i < symbols.length; i++) offer(i - 1, i);
    for (let best = queue.pop(); best; best = queue.pop()) {
      const [left, right] = [symbols[best.left], symbols[best.right]];
      if (!left.text || !right.text || left.text.length + right.text.length !== best.length) continue;
      left.text += right.text;
      right.text = "";
      left.after = right.after;
      if (right.after >= 0) symbols[right.after].before = best.left;
      offer(left.before, best.left);
      offer(best.left, left.after);
    }
    /** @type {Cut[]} */
    const found = [];
    const write = (/** @type {string} */ piece) => {
      const cut = this.known(piece);
      const parts = this.model.pieces[cut.id].kind === KIND.UNUSED ? halves.get(piece) : undefined;
      if (parts) parts.forEach(write);
      else found.push(cut);
    };
    for (let i = symbols.length ? 0 : -1; i >= 0; i = symbols[i].after) write(symbols[i].text);
    return found;
  }
}

/** @typedef {{left: number, right: number, score: number, length: number}} Pair */

/** Pairs of neighbours, the one with the highest score first, of equal ones the leftmost: a binary heap. */
class Queue {
  constructor() {
    /** @type {Pair[]} */
    this.pairs = [];
  }

  /** @param {Pair} pair */
  push(pair) {
    let place = this.pairs.push(pair) - 1;
    for (let above; place && comesFirst(pair, this.pairs[above = (place - 1) >> 1]); place = above) {
      this.pairs[place] = this.pairs[above];
    }
    this.pairs[place] = pair;
  }

  /** @returns {Pair | undefined} */
  pop() {
    const [first] = this.pairs;
    const last = this.pairs.pop();
    if (!last || !this.pairs.length) return first;
    let place = 0;
    for (;;) {
      let below = 2 * place + 1;
      if (below + 1 < this.pairs.length && comesFirst(this.pairs[below + 1], this.pairs[below])) below++;
      if (below >= this.pairs.length || !comesFirst(this.pairs[below], last)) break;
      this.pairs[place] = this.pairs[below];
      place = below;
    }
    this.pairs[place] = last;
    return first;
  }
}

/** @param {Pair} a @param {Pair} b @returns {boolean} */
function comesFirst(a, b) {
  return a.score > b.score || (a.score === b.score && a.left < b.left);
}
