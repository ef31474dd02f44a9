/** LiteRT in WebAssembly: models that are loaded, and run on arrays. */

import {specialised} from "./tflite.js";

/**
 * What LiteRT's script gives, of which only this is used. LiteRT.js has a wrapper around it, which takes no boolean
 * arrays, copies every input in every call, and loads in no worker that has modules.
 *
 * @typedef {Object} Wasm
 * @property {Uint8Array} HEAPU8 its memory, which is another array when it has grown
 * @property {(size: number) => number} _malloc
 * @property {(place: number) => void} _free
 * @property {() => void} setupLogging
 * @property {{create: (device: null) => Object}} LiteRtEnvironment
 * @property {(environment: Object, place: number, size: number) => LoadedModel} loadModel
 * @property {(environment: Object, model: LoadedModel, options: Object) => Promise<CompiledModel>} compileModel
 * @property {{createManaged: (environment: Object, kind: Object, type: TensorType, size: number) => Buffer}} LiteRtTensorBuffer
 * @property {{HOST_MEMORY: Object}} LiteRtTensorBufferType
 * @property {{READ: Object, WRITE: Object}} LiteRtTensorBufferLockMode
 */
/** @typedef {{delete: () => void}} Deletable */
/** @typedef {Deletable & {size: () => number, get: (i: number) => string}} Names */
/** @typedef {Deletable & {bytes: () => number}} TensorType */
/** @typedef {Deletable & {inputNames: () => Names, outputNames: () => Names}} Signature */
/**
 * @typedef {Deletable & {getSignature: (i: number) => Signature,
 *   getInputTensorType: (signature: number, i: number) => TensorType}} LoadedModel
 */
/** @typedef {Deletable & {run: (signature: number, inputs: Buffer[]) => Buffer[] | Promise<Buffer[]>}} CompiledModel */
/**
 * An array in LiteRT's memory.
 *
 * @typedef {Deletable & {lock: (mode: Object) => number, unlock: () => void, packedSize: () => number}} Buffer
 */

/** A model for which there is no memory. */
export class TooLarge extends Error {
  constructor() {
    super("The model needs more memory than the browser gives to a page.");
  }
}

/** LiteRT itself. */
export class LiteRT {
  /** @param {Wasm} wasm @param {string[]} errors to which its messages are added */
  constructor(wasm, errors) {
    this.wasm = wasm;
    this.errors = errors;
    wasm.setupLogging();
    this.environment = wasm.LiteRtEnvironment.create(null);
  }

  /**
   * @param {(options: Object) => Promise<Wasm>} factory of LiteRT's script
   * @param {ArrayBuffer} wasmBinary its WebAssembly
   * @returns {Promise<LiteRT>}
   */
  static async start(factory, wasmBinary) {
    /** @type {string[]} */
    const errors = [];
    const say = (/** @type {string} */ line) => void (/ERROR/.test(line) && errors.push(line));
    return new LiteRT(await factory({wasmBinary, print: say, printErr: say}), errors);
  }

  /**
   * Load one signature of a model, for arrays of given sizes.
   *
   * @param {Uint8Array} file a .tflite
   * @param {string} key the name of the signature
   * @param {Record<string, number[]>} shapes as `specialised` takes them
   * @returns {Promise<Program>}
   */
  async load(file, key, shapes) {
    const bytes = specialised(file, key, shapes);
    const place = this.wasm._malloc(bytes.length);
    if (!place) throw new TooLarge();
    this.wasm.HEAPU8.set(bytes, place);
    /** @type {Deletable[]} what is freed if there is no memory for the rest */
    const made = [];
    const keep = (/** @type {any} */ each) => (made.push(each), each);
    try {
      const model = keep(this.wasm.loadModel(this.environment, place, bytes.length));
      const options = {
        accelerator: "wasm", environment: this.environment, cpuOptions: {numThreads: 1}, gpuOptions: {}, webNNOptions: {},
      };
      const compiled = keep(await this.wasm.compileModel(this.environment, model, options));
      return new Program(this, place, model, compiled, (i) => keep(this.newInput(model, i)));
    } catch (error) {
      for (const each of made.reverse()) each.delete();
      this.wasm._free(place);
      throw error;
    }
  }

  /** @param {LoadedModel} model @param {number} i @returns {Buffer} an array of zeros for an input */
  newInput(model, i) {
    const {wasm, environment} = this;
    const type = model.getInputTensorType(0, i);
    try {
      const kind = wasm.LiteRtTensorBufferType.HOST_MEMORY;
      const buffer = wasm.LiteRtTensorBuffer.createManaged(environment, kind, type, type.bytes());
      this.bytes(buffer, wasm.LiteRtTensorBufferLockMode.WRITE).fill(0);
      return buffer;
    } finally {
      type.delete();
    }
  }

  /** @param {Buffer} buffer @param {ArrayBufferView} array */
  write(buffer, array) {
    this.bytes(buffer, this.wasm.LiteRtTensorBufferLockMode.WRITE).set(
      new Uint8Array(array.buffer, array.byteOffset, array.byteLength),
    );
  }

  /** @param {Buffer} to @param {Buffer} from */
  copy(to, from) {
    const {READ, WRITE} = this.wasm.LiteRtTensorBufferLockMode;
    this.bytes(to, WRITE).set(this.bytes(from, READ));
  }

  /** @param {Buffer} buffer @returns {Float32Array} the array itself, until anything else is allocated */
  floats(buffer) {
    const bytes = this.bytes(buffer, this.wasm.LiteRtTensorBufferLockMode.READ);
    return new Float32Array(bytes.buffer, bytes.byteOffset, bytes.length / 4);
  }

  /** @param {Buffer} buffer @param {Object} mode @returns {Uint8Array} */
  bytes(buffer, mode) {
    const place = buffer.lock(mode);
    buffer.unlock();
    return this.wasm.HEAPU8.subarray(place, place + buffer.packedSize());
  }
}

/** A signature of a model, loaded for arrays of given sizes. */
export class Program {
  /**
   * @param {LiteRT} litert @param {number} place of the file @param {LoadedModel} model @param {CompiledModel} compiled
   * @param {(i: number) => Buffer} newInput gives an array of zeros for an input
   */
  constructor(litert, place, model, compiled, newInput) {
    this.litert = litert;
    this.place = place;
    this.model = model;
    this.compiled = compiled;
    const signature = model.getSignature(0);
    try {
      this.inputNames = listed(signature.inputNames());
      this.outputNames = listed(signature.outputNames());
    } finally {
      signature.delete();
    }
    /** @type {Record<string, Buffer>} */
    this.inputs = Object.fromEntries(this.inputNames.map((name, i) => [name, newInput(i)]));
  }

  /** @returns {Promise<Record<string, Buffer>>} the outputs, which must be deleted */
  async run() {
    const {errors} = this.litert;
    errors.length = 0;
    const outputs = await this.compiled.run(0, this.inputNames.map((name) => this.inputs[name]));
    if (errors.length) {
      // It throws nothing, and leaves the outputs as they were.
      for (const buffer of outputs) buffer.delete();
      throw new Error(`LiteRT cannot run the model: ${errors.join("; ")}`);
    }
    return Object.fromEntries(outputs.map((buffer, i) => [this.outputNames[i], buffer]));
  }

  /** Free its memory. */
  delete() {
    for (const buffer of Object.values(this.inputs)) buffer.delete();
    this.compiled.delete();
    this.model.delete();
    this.litert.wasm._free(this.place);
  }
}

/** @param {Names} names @returns {string[]} */
function listed(names) {
  const list = Array.from({length: names.size()}, (_, i) => names.get(i));
  names.delete();
  return list;
}
