/**
 * Beam search for the translation of one sentence: `tf_transformer.litert.search`, by the same names.
 *
 * A search is told what every step predicts, and knows no model. So several searches can share the steps of a batch.
 * A beam of 1 is greedy search. Sums are rounded to 32 bits, as those of the other searches are.
 */

const PAD = 0, UNKNOWN = 1, START = 2, END = 3;
const {fround} = Math;

/**
 * How to search: `config.decoding` of an export.
 *
 * @typedef {Object} Decoding
 * @property {number} beam_size
 * @property {number} length_penalty
 * @property {number} length_penalty_offset
 * @property {number} coverage_penalty
 * @property {boolean} early_stopping
 * @property {boolean} likely_stopping
 * @property {number} min_length
 * @property {number} no_repeat_ngram
 * @property {boolean} ban_unknown
 */
/**
 * What a step predicts for one hypothesis.
 *
 * @typedef {Object} Predicted
 * @property {Float32Array} logits of all tokens
 * @property {number} normalizer what to subtract from a logit to get a log-probability
 * @property {() => Float32Array} attention how much it attended to each source token
 */
/**
 * @typedef {Object} Hypothesis
 * @property {number[]} ids
 * @property {number} logProbability the sum over the tokens
 * @property {Float32Array} coverage the attention that source tokens have received
 */
/** @typedef {{ids: number[], score: number, logProbability: number}} Found a translation, with the value it is ranked by */
/** @typedef {{parent: number, token: number, logProbability: number}} Candidate a hypothesis with a token more */
/**
 * @typedef {Candidate & {place: number, score: number | null}} Considered a candidate, which unfinished hypothesis it
 * becomes, or -1, and the score of one that is finished
 */

/** @param {number} length @param {Decoding} decoding @returns {number} ((k + length) / (k + 1))^alpha */
export function lengthPenalty(length, decoding) {
  const offset = fround(decoding.length_penalty_offset);
  return fround(fround(fround(offset + length) / fround(offset + 1)) ** fround(decoding.length_penalty));
}

/** The search for the translations of a sentence. */
export class Search {
  /**
   * @param {Decoding} decoding
   * @param {number} limit the most tokens of a translation; with 0, the empty one is found
   * @param {number} count the number of translations to find
   * @param {number} sourceLength the number of source tokens
   * @param {number[]} [prefix] the tokens that every translation begins with
   */
  constructor(decoding, limit, count, sourceLength, prefix = []) {
    this.decoding = decoding;
    this.limit = limit;
    this.count = count;
    this.prefix = prefix;
    /** @type {Considered[][]} what was considered at each step, the most probable first */
    this.considered = [];
    const first = {ids: [], logProbability: 0, coverage: new Float32Array(sourceLength)};
    /** @type {Hypothesis[]} the unfinished ones, the best first, at most as many as the beam */
    this.alive = limit > 0 ? [first] : [];
    /** @type {Found[]} the best that are finished, the best first, at most as many as the beam */
    this.final = limit > 0 ? [] : [{ids: [], score: 0, logProbability: 0}];
  }

  /** @returns {boolean} whether the translations are found */
  get isOver() {
    return !this.alive.length;
  }

  /** @returns {Found[]} the translations, the best first */
  get best() {
    return this.final.slice(0, this.count);
  }

  /**
   * Go on by a token.
   *
   * @param {(hypothesis: number) => Predicted} predict what the step predicts for an unfinished hypothesis
   * @returns {number[]} for each hypothesis that is now unfinished, the number of the one that it continues
   */
  advance(predict) {
    const {decoding, limit} = this;
    const width = decoding.beam_size;
    const choices = width > 1 ? 2 * width : 1;
    const length = this.alive[0].ids.length + 1;
    const predicted = this.alive.map((_, i) => predict(i));
    if (decoding.coverage_penalty) this.cover(predicted);
    const candidates = predicted.flatMap((each, parent) => this.bestTokens(each, parent, choices));
    const best = candidates.sort((a, b) => descending(a.logProbability, b.logProbability)).slice(0, choices);
    const isFinal = (/** @type {Candidate} */ {token}) => token === END || length >= limit;
    // One that ends must be among the best of the beam, just like one that continues.
    const ended = best.map((each, rank) => (rank < width && isFinal(each) ? this.ended(each, length) : null));
    this.final = [...this.final, ...ended.flatMap((each) => each ?? [])];
    this.final = this.final.sort((a, b) => descending(a.score, b.score)).slice(0, width);
    const unfinished = best.filter((each) => !isFinal(each)).slice(0, width);
    const isOver = !unfinished.length || this.isDecided(length, unfinished[0].logProbability);
    const kept = isOver ? [] : unfinished;
    this.considered.push(
      best.map((each, rank) => ({...each, place: kept.indexOf(each), score: ended[rank]?.score ?? null})),
    );
    this.alive = kept.map(({parent, token, logProbability}) => {
      const {ids, coverage} = this.alive[parent];
      return {ids: [...ids, token], logProbability, coverage};
    });
    return kept.map(({parent}) => parent);
  }

  /**
   * Return the most probable continuations of a hypothesis, the best first.
   *
   * @param {Predicted} predicted @param {number} parent the hypothesis @param {number} count how many to return
   * @returns {Candidate[]}
   */
  bestTokens({logits, normalizer}, parent, count) {
    const {ids, logProbability} = this.alive[parent];
    const allowed = this.allowed(logits, ids);
    return largest(allowed, count).filter((token) => allowed[token] > -Infinity).map((token) => (
      {parent, token, logProbability: fround(logProbability + fround(allowed[token] - normalizer))}
    ));
  }

  /** @param {Float32Array} logits @param {number[]} ids @returns {Float32Array} -Infinity for what may not follow */
  allowed(logits, ids) {
    const {ban_unknown, min_length, no_repeat_ngram: n} = this.decoding;
    if (ids.length < this.prefix.length) {
      const token = this.prefix[ids.length];
      return new Float32Array(logits.length).fill(-Infinity).fill(logits[token], token, token + 1);
    }
    const banned = [PAD, START, ...(ban_unknown ? [UNKNOWN] : [])];
    // The end is allowed where no other token is.
    if (ids.length < min_length && logits.length > banned.length + 1) banned.push(END);
    const allowed = logits.slice();
    for (const token of banned) allowed[token] = -Infinity;
    if (!n || ids.length < n) return allowed;
    const ofEnd = allowed[END];
    const last = ids.length - n + 1;
    for (let i = 0; i <= ids.length - n; i++) {
      if (ids.slice(last).every((id, k) => ids[i + k] === id)) allowed[ids[i + n - 1]] = -Infinity;
    }
    if (allowed.every((logit) => logit === -Infinity)) allowed[END] = ofEnd;
    return allowed;
  }

  /** Add what the hypotheses attended to. @param {Predicted[]} predicted */
  cover(predicted) {
    this.alive = this.alive.map((hypothesis, i) => {
      const attention = predicted[i].attention();
      return {...hypothesis, coverage: hypothesis.coverage.map((received, place) => received + attention[place])};
    });
  }

  /** @param {Candidate} candidate @param {number} length @returns {Found} a finished one with its score */
  ended({parent, token, logProbability}, length) {
    let score = fround(logProbability / lengthPenalty(length, this.decoding));
    const {ids, coverage} = this.alive[parent];
    if (this.decoding.coverage_penalty) {
      const reward = coverage.reduce((sum, received) => sum + Math.log(Math.min(Math.max(received, 1e-9), 1)), 0);
      score = fround(score + fround(fround(this.decoding.coverage_penalty) * fround(reward)));
    }
    return {ids: [...ids, token], score, logProbability};
  }

  /**
   * @param {number} length @param {number} best the log-probability of the best unfinished hypothesis
   * @returns {boolean} whether no unfinished hypothesis needs to be continued
   */
  isDecided(length, best) {
    const {decoding, final, limit, count} = this;
    const worst = final[decoding.beam_size - 1];
    if (decoding.early_stopping) return worst !== undefined;
    if (decoding.likely_stopping) return worst !== undefined && worst.score >= fround(best / lengthPenalty(length, decoding));
    const longest = decoding.length_penalty >= 0 ? limit : length + 1;
    const last = final[count - 1];
    return last !== undefined && last.score >= fround(best / lengthPenalty(longest, decoding));
  }
}

/** @param {number} a @param {number} b @returns {number} for sorting, the greatest first */
function descending(a, b) {
  return a > b ? -1 : a < b ? 1 : 0;
}

/**
 * Return the places of the largest numbers, the largest first, of equal ones the first.
 *
 * @param {Float32Array} numbers @param {number} count
 * @returns {number[]}
 */
export function largest(numbers, count) {
  /** @type {number[]} */
  const places = [];
  let least = -Infinity;
  for (let place = 0; place < numbers.length; place++) {
    const number = numbers[place];
    if (places.length === count && !(number > least)) continue;
    let i = places.length === count ? count - 1 : places.length;
    for (; i > 0 && number > numbers[places[i - 1]]; i--) places[i] = places[i - 1];
    places[i] = place;
    if (places.length === count) least = numbers[places[count - 1]];
  }
  return places;
}
