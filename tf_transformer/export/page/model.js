/** The encoder and the steps of the decoder, in arrays of a few sizes: LiteRT in the browser resizes none. */

/** @typedef {import("./litert.js").Program} Program */
/**
 * @typedef {Object} Facts what `export --format litert` says of its model
 * @property {number} layers
 * @property {number} heads
 * @property {number} depth of keys
 * @property {number} value_depth of values
 * @property {number} vocabulary
 * @property {number | null} max_positions the most tokens of a sentence, where positions are learned
 */

const END = 3;
const LEAST_SOURCE = 16, LEAST_CACHE = 32;
const MEMORY_OF_PROGRAMS = 300e6;

/** Loads the parts of a model for the sizes that are needed, and keeps some. */
export class Model {
  /**
   * @param {import("./litert.js").LiteRT} litert
   * @param {Uint8Array} file a .tflite that `export --format litert` writes
   * @param {Facts} facts
   */
  constructor(litert, file, facts) {
    this.litert = litert;
    this.file = file;
    this.facts = facts;
    this.layers = Array.from({length: facts.layers}, (_, i) => i);
    /** @type {Map<string, Program>} those used last are at the end */
    this.programs = new Map();
    /** A program holds the weights about twice, as they are and as they are computed with. The two in use must stay. */
    this.mostPrograms = Math.min(Math.max(Math.floor(MEMORY_OF_PROGRAMS / (2 * file.length)), 2), 16);
  }

  /**
   * Encode sentences.
   *
   * @param {number[][]} sentences their ids, with the end token
   * @returns {Promise<Encoded>}
   */
  async encode(sentences) {
    const batch = powerFrom(1, sentences.length);
    // No sentence is longer than the positions that the model has learned, and no array may be.
    const needed = powerFrom(LEAST_SOURCE, Math.max(...sentences.map((ids) => ids.length)));
    const length = Math.min(needed, this.facts.max_positions ?? needed);
    const program = await this.program("encode", {ids: [batch, length], ...this.memoryShapes(batch, length)});
    const ids = new Int32Array(batch * length);
    for (let row = 0; row < batch; row++) ids.set(sentences[row] ?? [END], row * length);
    this.litert.write(program.inputs.ids, ids);
    return {batch, length, arrays: await program.run()};
  }

  /**
   * Return the steps of the decoder, before the first one. Only the newest may be used: it holds the cache.
   *
   * @param {Encoded} encoded @param {number} width the number of rows for each sentence
   * @returns {Promise<Steps>}
   */
  async steps(encoded, width) {
    const steps = new Steps(this, encoded, width);
    return steps.orDeleted(() => steps.grow(LEAST_CACHE));
  }

  /** @param {number} batch @param {number} length @returns {Record<string, number[]>} */
  memoryShapes(batch, length) {
    const {heads, depth, value_depth} = this.facts;
    return {
      mask: [batch, length],
      ...this.ofLayers("memory_key_", [batch, heads, length, depth]),
      ...this.ofLayers("memory_value_", [batch, heads, length, value_depth]),
    };
  }

  /** @template T @param {string} name @param {T} value @returns {Record<string, T>} */
  ofLayers(name, value) {
    return Object.fromEntries(this.layers.map((i) => [`${name}${i}`, value]));
  }

  /** @param {string} key @param {Record<string, number[]>} shapes @returns {Promise<Program>} */
  async program(key, shapes) {
    const name = JSON.stringify([key, shapes]);
    const known = this.programs.get(name);
    this.programs.delete(name);
    if (!known && this.programs.size >= this.mostPrograms) {
      const [[oldest, program]] = this.programs;
      program.delete();
      this.programs.delete(oldest);
    }
    const program = known ?? (await this.litert.load(this.file, key, shapes));
    this.programs.set(name, program);
    return program;
  }
}

/**
 * What the decoder reads of some sentences, the last of which may be empty ones that fill the arrays.
 *
 * @typedef {{batch: number, length: number, arrays: Record<string, import("./litert.js").Buffer>}} Encoded
 */

/** The steps of a decoder, with rows for each of some sentences: the hypotheses of one sentence after the other. */
export class Steps {
  /** @param {Model} model @param {Encoded} encoded @param {number} width */
  constructor(model, encoded, width) {
    this.model = model;
    this.encoded = encoded;
    this.rows = encoded.batch * width;
    this.width = width;
    this.position = 0;
    this.capacity = 0;
    /** @type {Program | null} */
    this.program = null;
    /** @type {Record<string, import("./litert.js").Buffer>} what the last step gave */
    this.outputs = {};
  }

  /** Make room for more positions. @param {number} capacity */
  async grow(capacity) {
    const {model, encoded, rows} = this;
    const {heads, depth, value_depth, vocabulary} = model.facts;
    const before = this.program && this.caches().map(({buffer}) => Float32Array.from(model.litert.floats(buffer)));
    const shapes = {
      ids: [rows], position: [], count: [], forbidden: [vocabulary],
      ...model.memoryShapes(encoded.batch, encoded.length),
      ...model.ofLayers("key_", [rows, heads, capacity, depth]),
      ...model.ofLayers("value_", [rows, heads, capacity, value_depth]),
      ...model.ofLayers("new_key_", [rows, heads, 1, depth]),
      ...model.ofLayers("new_value_", [rows, heads, 1, value_depth]),
      logits: [rows, vocabulary], normalizers: [rows], attention: [encoded.batch, this.width, encoded.length],
    };
    this.program = await model.program("decode", shapes);
    for (const [name, buffer] of Object.entries(encoded.arrays)) {
      model.litert.copy(this.program.inputs[name], buffer);
    }
    model.litert.write(this.program.inputs.count, Int32Array.of(1));
    for (const [i, {buffer, depth: width}] of this.caches().entries()) {
      const cache = model.litert.floats(buffer).fill(0);
      for (let head = 0; before && head < rows * heads; head++) {
        const from = head * this.capacity * width;
        cache.set(before[i].subarray(from, from + this.position * width), head * capacity * width);
      }
    }
    this.capacity = capacity;
  }

  /**
   * Read a token in every row, and predict the next one.
   *
   * @param {Int32Array} ids
   */
  async step(ids) {
    if (this.position === this.capacity) await this.grow(2 * this.capacity);
    const {litert} = this.model;
    const {inputs} = this.current;
    litert.write(inputs.ids, ids);
    litert.write(inputs.position, Int32Array.of(this.position));
    this.clear();
    this.outputs = await this.current.run();
    for (const {buffer, name, depth} of this.caches()) {
      const cache = litert.floats(buffer);
      const step = litert.floats(this.outputs[`new_${name}`]);
      const all = new Float32Array(cache.buffer);
      const [to, from] = [cache.byteOffset / 4 + this.position * depth, step.byteOffset / 4];
      for (let head = 0; head < step.length / depth; head++) {
        all.copyWithin(to + head * this.capacity * depth, from + head * depth, from + (head + 1) * depth);
      }
    }
    this.position++;
  }

  /** @param {number} row @returns {Float32Array} the logits of a row in the last step, until the next */
  logits(row) {
    const {vocabulary} = this.model.facts;
    return this.model.litert.floats(this.outputs.logits).subarray(row * vocabulary, (row + 1) * vocabulary);
  }

  /** @param {number} row @returns {number} what to subtract from a logit to get a log-probability */
  normalizer(row) {
    return this.model.litert.floats(this.outputs.normalizers)[row];
  }

  /** @param {number} row @returns {Float32Array} how much a row attended to the source tokens in the last step */
  attention(row) {
    const {length} = this.encoded;
    return this.model.litert.floats(this.outputs.attention).slice(row * length, (row + 1) * length);
  }

  /** Continue with other rows. @param {number[]} rows for each row, the number of the one that it continues */
  take(rows) {
    const changed = rows.flatMap((from, to) => (from === to ? [] : [{from, to}]));
    if (!changed.length) return;
    const {heads} = this.model.facts;
    for (const {buffer, depth} of this.caches()) {
      const cache = this.model.litert.floats(buffer);
      const size = heads * this.capacity * depth;
      const parts = changed.map(({from}) => cache.slice(from * size, (from + 1) * size));
      changed.forEach(({to}, i) => cache.set(parts[i], to * size));
    }
  }

  /** Do what may fail, and free these steps if it does. @param {() => Promise<void>} work @returns {Promise<Steps>} */
  async orDeleted(work) {
    try {
      await work();
    } catch (error) {
      this.delete();
      throw error;
    }
    return this;
  }

  /** Free what the last step gave. */
  clear() {
    for (const buffer of Object.values(this.outputs)) buffer.delete();
    this.outputs = {};
  }

  /** Free what these steps hold. */
  delete() {
    this.clear();
    for (const buffer of Object.values(this.encoded.arrays)) buffer.delete();
  }

  /** @returns {Program} */
  get current() {
    if (!this.program) throw new Error("the steps were not begun");
    return this.program;
  }

  /** @returns {{name: string, buffer: import("./litert.js").Buffer, depth: number}[]} */
  caches() {
    const {layers, facts: {depth, value_depth}} = this.model;
    return layers.flatMap((i) => [{name: `key_${i}`, depth}, {name: `value_${i}`, depth: value_depth}])
      .map((cache) => ({...cache, buffer: this.current.inputs[cache.name]}));
  }
}

/** @param {number} least @param {number} size @returns {number} the least doubling of `least` that holds `size` */
export function powerFrom(least, size) {
  while (least < size) least *= 2;
  return least;
}
