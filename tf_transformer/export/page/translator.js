/** Strings in, strings out: vocabularies, model and search together. */

import {Damaged, reader} from "./files.js";
import {TooLarge} from "./litert.js";
import {Model} from "./model.js";
import {startLiteRT} from "./runtime.js";
import {Search} from "./search.js";
import {checkRoom, checkSettings} from "./settings.js";
import {Vocabulary} from "./vocabulary.js";

const PAD = 0, START = 2, END = 3;
const BATCH = 8;

/** @typedef {{source: string, target: string}} Direction */
/** @typedef {{text: string, score: number}} Translation */
/** @typedef {{translations: Translation[], isCut: boolean}} Translated the best first; whether the text was too long */
/** @typedef {{ids: number[], isCut: boolean, language: number | null}} Source */
/** @typedef {{max_source_length: number, max_extra_length: number, max_length: number | null}} Limits of numbers of tokens */
/**
 * @typedef {Partial<import("./search.js").Decoding & Limits> & {n?: number, source?: string | null, target?: string | null}} Options
 * how to search, if not as the export says; how many translations; the languages, of a model with several
 */

/** Translates in this thread. `await Translator.load("exported/")` loads what `export --format web` wrote. */
export class Translator {
  /**
   * @param {any} description `tf_transformer.json`
   * @param {Model} model @param {Vocabulary} source @param {Vocabulary} target
   */
  constructor(description, model, source, target) {
    const {litert, config, web} = description;
    this.description = description;
    this.model = model;
    this.source = source;
    this.target = target;
    /** The number of sentences that are translated together. */
    this.batch = BATCH;
    this.decoding = config.decoding;
    /** @type {Record<string, import("./settings.js").Range>} what the settings that a program may choose may be */
    this.settings = web.settings;
    /** @type {number | null} */
    this.positions = litert.max_positions;
    /** @type {{source: Record<string, number>, target: Record<string, number>}} the tokens of the languages */
    this.languages = litert.language_tokens;
    /** The number of tokens before the text, on both sides. */
    this.before = Object.keys(this.languages.source).length ? 1 : 0;
    /** @type {Promise<unknown>} the model serves only one at a time */
    this.turn = Promise.resolve();
  }

  /**
   * @param {string | URL} folder the address of an export, relative to this page
   * @param {{read?: import("./files.js").Read}} [options] what reads its files
   * @returns {Promise<Translator>}
   */
  static async load(folder, {read = reader(folderAddress(folder))} = {}) {
    const json = new TextDecoder().decode(await read("tf_transformer.json"));
    const description = await check("tf_transformer.json", () => JSON.parse(json));
    const {litert: facts, config, web} = description;
    const [source, target] = facts.tokenizers;
    const names = source === target ? [source] : [source, target];
    const [litert, file, ...tokenizers] = await Promise.all(
      [startLiteRT(read), read("model.tflite.gz"), ...names.map((name) => read(`${name}.gz`))],
    );
    const {input_vocab_size, target_vocab_size} = config.model;
    const [first, last = first] = tokenizers.map((bytes, i) => {
      const size = i ? target_vocab_size : input_vocab_size;
      return check(`${names[i]}.gz`, () => new Vocabulary(bytes, size, web.blanks));
    });
    const model = new Model(litert, file, facts);
    // The parts that most sentences need are loaded now, so that the first translation does not wait for them.
    await check("model.tflite.gz", async () => (await model.steps(await model.encode([[END]]), 1)).delete());
    return new Translator(description, model, first, last);
  }

  /**
   * Translate any number of sentences, each for itself.
   *
   * @param {string[]} sentences
   * @param {Options} [options]
   * @returns {Promise<Translated[]>}
   */
  async translate(sentences, options = {}) {
    /** @type {Translated[]} */
    const all = [];
    for await (const [i, translated] of this.translateEach(sentences, options)) all[i] = translated;
    return all;
  }

  /**
   * Translate sentences, and yield each with its number as soon as it is translated.
   *
   * @param {string[]} sentences
   * @param {Options} [options]
   * @returns {AsyncGenerator<[number, Translated]>}
   */
  async *translateEach(sentences, options = {}) {
    const {n = 1, source, target, ...changed} = options;
    const decoding = this.changed(changed);
    const direction = this.direction(source, target);
    const sources = sentences.map((sentence) => this.encode(sentence, direction, decoding));
    for (const batch of batches(sources, this.batch)) {
      const searches = await this.inTurn(() => this.search(batch.map((i) => sources[i]), decoding, n));
      for (const [row, i] of batch.entries()) {
        const translations = searches[row].best.map(({ids, score}) => ({text: this.text(ids), score}));
        yield [i, {translations, isCut: sources[i].isCut}];
      }
    }
  }

  /** @param {Record<string, any>} settings @returns {any} how to search, with other settings than the export's */
  changed(settings) {
    checkSettings(settings, this.settings);
    const decoding = {...this.decoding, ...settings};
    if (this.before) checkRoom(this.mostSource(decoding));
    return decoding;
  }

  /** @param {any} decoding @returns {number} the most source tokens, with the end and the language */
  mostSource(decoding) {
    return Math.min(decoding.max_source_length, this.positions ?? Infinity);
  }

  /** @param {string | null} [source] @param {string | null} [target] @returns {Direction | null} */
  direction(source, target) {
    if (!this.before) {
      if (source ?? target) throw new Error(`The model has no languages to choose from. Received: ${source ?? target}`);
      return null;
    }
    const direction = {source: source ?? this.decoding.source_language, target: target ?? this.decoding.target_language};
    for (const side of /** @type {const} */ (["source", "target"])) {
      if (!Object.hasOwn(this.languages[side], direction[side])) {
        throw new Error(`The model has no ${side} language ${direction[side]}.`);
      }
    }
    return direction;
  }

  /** @param {string} sentence @param {Direction | null} direction @param {any} decoding @returns {Source} */
  encode(sentence, direction, decoding) {
    const most = this.mostSource(decoding) - this.before;
    const ids = this.source.encode(sentence);
    const kept = [...ids.slice(0, most - 1), END];
    const isCut = ids.length > most - 1;
    if (!direction) return {ids: kept, isCut, language: null};
    const language = this.languages.target[direction.target];
    return {ids: [this.languages.source[direction.source], ...kept], isCut, language};
  }

  /** @param {Source} source @param {any} decoding @returns {number} the most tokens of a translation */
  limit({ids}, decoding) {
    const tokens = ids.length - this.before;
    if (tokens === 1) return 0;
    const most = this.positions === null ? Infinity : this.positions - this.before;
    return Math.min(tokens - 1 + decoding.max_extra_length, most, decoding.max_length ?? Infinity);
  }

  /**
   * Search for translations, in turn.
   *
   * @param {Source[]} sources @param {any} decoding @param {number} n
   * @param {number[]} [prefix] the tokens that every translation begins with
   * @returns {Promise<Search[]>} the searches, which are over
   */
  async search(sources, decoding, n, prefix = []) {
    const width = decoding.beam_size;
    if (!(Number.isInteger(n) && n >= 1 && n <= width)) throw new Error(`n must be 1 to ${width}, the size of the beam. Received: ${n}`);
    const searches = sources.map((each) => new Search(decoding, this.limit(each, decoding), n, each.ids.length, prefix));
    if (searches.every((search) => search.isOver)) return searches;
    const steps = await this.begin(sources, width);
    try {
      const ids = new Int32Array(steps.rows).fill(PAD);
      sources.forEach(({language}, i) => ids.fill(language ?? START, i * width, (i + 1) * width));
      while (!searches.every((search) => search.isOver)) {
        await steps.step(ids);
        const rows = Array.from(ids, (_, row) => row);
        for (const [i, search] of searches.entries()) {
          if (search.isOver) continue;
          const parents = search.advance((hypothesis) => {
            const row = i * width + hypothesis;
            return {logits: steps.logits(row), normalizer: steps.normalizer(row), attention: () => steps.attention(row)};
          });
          parents.forEach((parent, k) => void (rows[i * width + k] = i * width + parent));
          search.alive.forEach((hypothesis, k) => void (ids[i * width + k] = hypothesis.ids[hypothesis.ids.length - 1]));
        }
        steps.take(rows);
      }
    } finally {
      steps.delete();
    }
    return searches;
  }

  /** @param {Source[]} sources @param {number} width @returns {Promise<import("./model.js").Steps>} before the text */
  async begin(sources, width) {
    const steps = await this.model.steps(await this.model.encode(sources.map(({ids}) => ids)), width);
    // The start token is read now. The language follows, as the first token of the search.
    return this.before ? steps.orDeleted(() => steps.step(new Int32Array(steps.rows).fill(START))) : steps;
  }

  /** @param {number[]} ids @returns {string} */
  text(ids) {
    return this.target.decode(ids).replaceAll("\n", " ");
  }

  /** @template T @param {() => Promise<T>} work @returns {Promise<T>} */
  inTurn(work) {
    const done = this.turn.then(work);
    this.turn = done.catch(() => {});
    return done;
  }
}

/**
 * Read a file, and say which one it is if it is damaged.
 *
 * @template T @param {string} name @param {() => T} read @returns {T}
 */
function check(name, read) {
  const fail = (/** @type {unknown} */ error) => {
    throw error instanceof TooLarge ? error : new Damaged(name);
  };
  try {
    const found = read();
    return found instanceof Promise ? /** @type {T} */ (found.catch(fail)) : found;
  } catch (error) {
    return fail(error);
  }
}

/**
 * @param {{ids: number[]}[]} sources @param {number} size of a batch
 * @returns {number[][]} their numbers, those of similar lengths together
 */
function batches(sources, size) {
  const order = sources.map((_, i) => i).sort((a, b) => sources[a].ids.length - sources[b].ids.length);
  return Array.from({length: Math.ceil(order.length / size)}, (_, i) => order.slice(i * size, (i + 1) * size));
}

/** @param {string | URL} folder @returns {URL} */
function folderAddress(folder) {
  const address = new URL(folder, globalThis.location?.href);
  return new URL(address.pathname.endsWith("/") ? "" : `${address.pathname}/`, address);
}
