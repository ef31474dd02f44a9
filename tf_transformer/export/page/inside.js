/** How a sentence is translated, for who wants to look inside: what is attended to, and what there was to choose from. */

import {largest} from "./search.js";

const START = 2;
/** How many of the most probable tokens of a step are shown. */
const NEXT = 8;

/** @typedef {import("./translator.js").Translator} Translator */
/** @typedef {import("./translator.js").Options} Options */
/** @typedef {import("./translator.js").Source} Source */
/** @typedef {{source: string[], target: string[], weights: number[][]}} Attention pieces, and [target][source] */
/** @typedef {{id: number, token: string, probability: number}} Choice */
/**
 * @typedef {Object} Node a candidate of a step of the search, by the names of `decoding.search_tree`
 * @property {string} token
 * @property {number} parent which candidate of the step before it continues
 * @property {number} log_probability of the hypothesis up to this token
 * @property {"kept" | "finished" | "dropped"} status
 * @property {number | null} score if it is finished
 * @property {boolean} is_best whether it is part of the translation
 */
/**
 * @typedef {Object} Steps of a search
 * @property {string} translation
 * @property {number[]} ids its tokens
 * @property {string[]} tokens their pieces
 * @property {Choice[][]} next for each of them, the most probable tokens in its place
 * @property {Node[][]} tree
 */

/**
 * Translate a sentence, and say what the tokens of the translation attended to.
 *
 * @param {Translator} translator @param {string} sentence @param {Options} [options]
 * @returns {Promise<Attention>}
 */
export function attention(translator, sentence, options = {}) {
  const {source, decoding} = asked(translator, sentence, options);
  return translator.inTurn(async () => {
    const [search] = await translator.search([source], decoding, 1);
    const {ids} = search.best[0];
    const weights = await read(translator, source, ids, (steps) => {
      return Array.from(steps.attention(0).subarray(0, source.ids.length));
    });
    return {source: piecesOf(translator.source, source.ids), target: piecesOf(translator.target, ids), weights};
  });
}

/**
 * Translate a sentence, and say what the model and the search had to choose from at each step.
 *
 * @param {Translator} translator @param {string} sentence
 * @param {Options & {prefix?: number[]}} [options] `prefix` are the tokens that the translation begins with
 * @returns {Promise<Steps>}
 */
export function searchSteps(translator, sentence, {prefix = [], ...options} = {}) {
  const {source, decoding} = asked(translator, sentence, options);
  const {pieces} = translator.target;
  const isToken = (/** @type {number} */ id) => Number.isInteger(id) && id >= 0 && id < pieces.length;
  if (!prefix.every(isToken)) throw new Error(`prefix must have numbers of tokens. Received: ${prefix}`);
  return translator.inTurn(async () => {
    const [search] = await translator.search([source], decoding, 1, prefix);
    const {ids} = search.best[0];
    const next = await read(translator, source, ids, (steps) => {
      const logits = steps.logits(0), normalizer = steps.normalizer(0);
      return largest(logits, NEXT).map((id) => ({id, token: pieces[id], probability: Math.exp(logits[id] - normalizer)}));
    });
    const tree = treeOf(search.considered, ids, pieces);
    return {translation: translator.text(ids), ids, tokens: piecesOf(translator.target, ids), next, tree};
  });
}

/** @param {Translator} translator @param {string} sentence @param {Options} options @returns {{source: Source, decoding: any}} */
function asked(translator, sentence, {source, target, ...settings}) {
  const decoding = translator.changed(settings);
  return {source: translator.encode(sentence, translator.direction(source, target), decoding), decoding};
}

/**
 * Read a translation token by token, and return what is seen before each of them.
 *
 * @template T @param {Translator} translator @param {Source} source @param {number[]} ids
 * @param {(steps: import("./model.js").Steps) => T} look
 * @returns {Promise<T[]>}
 */
async function read(translator, source, ids, look) {
  const steps = await translator.begin([source], 1);
  try {
    const seen = [];
    for (let i = 0; i < ids.length; i++) {
      await steps.step(Int32Array.of(i ? ids[i - 1] : source.language ?? START));
      seen.push(look(steps));
    }
    return seen;
  } finally {
    steps.delete();
  }
}

/** @param {import("./vocabulary.js").Vocabulary} vocabulary @param {number[]} ids @returns {string[]} */
function piecesOf(vocabulary, ids) {
  return ids.map((id) => vocabulary.pieces[id]);
}

/**
 * @param {import("./search.js").Considered[][]} considered @param {number[]} best the tokens of the translation
 * @param {string[]} pieces
 * @returns {Node[][]}
 */
function treeOf(considered, best, pieces) {
  // By its place: which candidate of the step before an unfinished hypothesis is, and whether it is the translation.
  let alive = [{rank: 0, isBest: true}];
  return considered.map((candidates, position) => {
    const nodes = candidates.map(({token, parent, place, score, logProbability}) => ({
      token: pieces[token], parent: alive[parent].rank, log_probability: logProbability, score,
      status: /** @type {Node["status"]} */ (place >= 0 ? "kept" : score === null ? "dropped" : "finished"),
      is_best: alive[parent].isBest && token === best[position],
    }));
    alive = candidates.flatMap(({place}, rank) => (place < 0 ? [] : [{rank, isBest: nodes[rank].is_best}]));
    return nodes;
  });
}
