// node memory.mjs EXPORT: whichever call fails for want of memory, the numbers of things that are not freed afterwards:
// while a translator works, and while LiteRT loads a part of a model.
import {readFileSync} from "node:fs";
import {createRequire} from "node:module";
import {pathToFileURL} from "node:url";

// LiteRT's script takes Node for a place where scripts are no modules.
Object.assign(globalThis, {require: createRequire(import.meta.url), __dirname: "."});
const folder = pathToFileURL(`${process.argv[2]}/`);
const {Translator} = await import(new URL("translator.js", folder));
const {attention, searchSteps} = await import(new URL("inside.js", folder));
const {LiteRT, Program} = await import(new URL("litert.js", folder));
const {Model} = await import(new URL("model.js", folder));
const {unpacked} = await import(new URL("files.js", folder));
const read = async (name) => unpacked(name, new Uint8Array(readFileSync(new URL(name, folder))));
const translator = await Translator.load(folder, {read});

/** What is made and not freed yet. */
const live = new Set();
let left = Infinity;

/** Count a call that may fail, and fail when it is the last that succeeds no more. */
function need() {
  if (left-- <= 0) throw new Error("no memory");
}

/** Run work with its first call failing, then its second, and so on; return what is not freed after each. */
async function failing(work) {
  const kept = [];
  for (let calls = 0, isOver = false; !isOver; calls++) {
    left = calls;
    isOver = await work().then(() => true, (error) => {
      if (error.message !== "no memory") throw error;
      return false;
    });
    left = Infinity;
    if (!isOver) kept.push(live.size);
    live.clear();
  }
  return kept;
}

const {run} = Program.prototype;
Program.prototype.run = async function () {
  need();
  const outputs = await run.call(this);
  for (const buffer of Object.values(outputs)) {
    live.add(buffer);
    const free = buffer.delete.bind(buffer);
    buffer.delete = () => (live.delete(buffer), free());
  }
  return outputs;
};
const {program} = Model.prototype;
Model.prototype.program = function (...given) {
  need();
  return program.apply(this, given);
};
const languages = translator.before ? {source: "deu_Latn", target: "eng_Latn"} : {};
const options = {...languages, max_length: 4};
const working = {
  translate: await failing(() => translator.translate(["The dog sleeps.", "A man."], options)),
  attention: await failing(() => attention(translator, "The dog sleeps.", options)),
  steps: await failing(() => searchSteps(translator, "The dog sleeps.", options)),
};

/** A LiteRT that makes nothing. */
function thing(more = {}) {
  need();
  const made = {delete: () => live.delete(made), ...more};
  live.add(made);
  return made;
}
const names = (...all) => thing({size: () => all.length, get: (i) => all[i]});
const wasm = {
  HEAPU8: new Uint8Array(2 ** 24),
  _malloc: (size) => (live.add("memory"), size && 8),
  _free: () => live.delete("memory"),
  setupLogging: () => {},
  LiteRtEnvironment: {create: () => ({})},
  loadModel: () => thing({
    getSignature: () => thing({inputNames: () => names("ids", "mask"), outputNames: () => names("logits")}),
    getInputTensorType: () => thing({bytes: () => 4}),
  }),
  compileModel: async () => thing(),
  LiteRtTensorBuffer: {createManaged: () => thing({lock: () => 0, unlock: () => {}, packedSize: () => 4})},
  LiteRtTensorBufferType: {},
  LiteRtTensorBufferLockMode: {},
};
const {file, facts} = translator.model;
const shapes = {ids: [1, 16], mask: [1, 16]};
for (const i of Array(facts.layers).keys()) {
  shapes[`memory_key_${i}`] = [1, facts.heads, 16, facts.depth];
  shapes[`memory_value_${i}`] = [1, facts.heads, 16, facts.value_depth];
}
const loading = await failing(() => new LiteRT(wasm, []).load(file, "encode", shapes));
process.stdout.write(JSON.stringify({working, loading}));
