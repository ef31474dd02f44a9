/** The translator in a thread of its own, so that the page stays alive. It answers what `ask.js` asks. */

import {Damaged, reader} from "./files.js";
import {attention, searchSteps} from "./inside.js";
import {Translator} from "./translator.js";
import {AT_FRONT} from "./vocabulary.js";

/** @typedef {{id: number, path: string, text: string, more: Record<string, any>}} Asked */

/** @type {Promise<Translator> | null} */
let loaded = null;
/** @type {Set<number>} requests that somebody waits for */
const waitedFor = new Set();

self.addEventListener("message", async ({data}) => {
  if (data.stop) return void waitedFor.delete(data.stop);
  waitedFor.add(data.id);
  try {
    self.postMessage({id: data.id, answer: await answer(data)});
  } catch (error) {
    self.postMessage({id: data.id, error: error instanceof Error ? error.message : String(error)});
  }
  waitedFor.delete(data.id);
});

/** @returns {Promise<Translator>} */
function load() {
  const folder = new URL("./", self.location.href);
  const read = reader(folder, (bytes) => self.postMessage({received: bytes}));
  loaded ??= Translator.load(folder, {read}).catch(async (error) => {
    loaded = null;
    if (error instanceof Damaged) await forget(new URL(error.file, folder)).catch(() => {});
    throw error;
  });
  return loaded;
}

/** Forget a file that came damaged, where the service worker has kept it or is about to. @param {URL} file */
async function forget(file) {
  await navigator.locks.request(file.href, async () => {
    for (const name of await caches.keys()) await (await caches.open(name)).delete(file);
  });
}

/** @param {Asked} asked @returns {Promise<any>} */
async function answer({id, path, text, more}) {
  const translator = await load();
  const options = {source: more.source_language, target: more.target_language};
  if (path === "translate") return translate(translator, id, text, options);
  if (path === "steps") return searchSteps(translator, text, {...options, prefix: more.prefix});
  if (path !== "attention") return null;
  const {source, target, weights} = await attention(translator, text, options);
  return {source_tokens: source, target_tokens: target, kinds: {cross: [[weights]]}};
}

/**
 * Translate a text sentence by sentence, and post what is ready: each sentence once, in a part or with the answer.
 *
 * @param {Translator} translator @param {number} id @param {string} text
 * @param {import("./translator.js").Options} options
 */
async function translate(translator, id, text, options) {
  const language = options.source ?? translator.decoding.source_language;
  const pieces = sentencesOf(text, language, translator.source.hasCodes);
  const wanted = pieces.filter(({isText}) => isText);
  for (let done = 0; done < wanted.length && waitedFor.has(id); ) {
    // The first one alone, because it is waited for, and then as many as are computed together.
    const now = wanted.slice(done, done + (done ? translator.batch : 1));
    const found = await translator.translate(now.map((piece) => piece.source), {...options, n: translator.decoding.beam_size});
    done += now.length;
    const sentences = now.map((piece, i) => {
      const best = found[i].translations;
      piece.translation = best[0].text;
      const n_best = best.map(({text: translation, score}) => ({translation, score}));
      return {text: piece.source, n_best, is_truncated: found[i].isCut};
    });
    const translation = pieces.map((piece) => (piece.isText ? piece.translation ?? "\u2026" : piece.text)).join("");
    if (done === wanted.length) return {translation, sentences};
    self.postMessage({id, part: {translation, sentences, count: wanted.length}});
    // Messages, such as one to stop, come between tasks, and the promises of LiteRT do not end one.
    await new Promise((goOn) => setTimeout(goOn));
  }
  return {translation: text, sentences: []};
}

/**
 * Part of a text: a sentence, or what is between two. The source is what the model reads of a sentence.
 * @typedef {{text: string, isText: boolean, source: string, translation?: string}} Part
 */

/**
 * @param {string} text @param {string | null} language
 * @param {boolean} hasCodes whether a code such as `>>de<<` at the front of a line is that of all sentences up to the next
 * @returns {Part[]}
 */
function sentencesOf(text, language, hasCodes) {
  let front = "";
  return text.split(/(\n)/u).flatMap((line) => {
    const begun = line.trimStart();
    const code = hasCodes && begun.match(AT_FRONT);
    if (code) {
      front = `${code[0]} `;
      line = line.slice(0, line.length - begun.length) + begun.slice(code[0].length).trimStart();
    }
    const parts = line.trim() ? inLine(line, language) : [{text: line, isText: false}];
    return parts.map((part) => ({...part, source: front + part.text}));
  });
}

/** @param {string} line @param {string | null} language @returns {{text: string, isText: boolean}[]} */
function inLine(line, language) {
  if (!("Segmenter" in Intl)) return [{text: line, isText: true}];
  const parts = Array.from(segmenter(language).segment(line), ({segment}) => segment);
  return parts.flatMap((part) => {
    const said = part.trim();
    const before = part.slice(0, part.length - part.trimStart().length);
    const after = said ? part.slice(before.length + said.length) : "";
    return [{text: before, isText: false}, {text: said, isText: true}, {text: after, isText: false}].filter((each) => each.text);
  });
}

/** @param {string | null} [language] @returns {Intl.Segmenter} of sentences; the languages of models have odd names */
function segmenter(language) {
  try {
    return new Intl.Segmenter(language ?? undefined, {granularity: "sentence"});
  } catch {
    return new Intl.Segmenter(undefined, {granularity: "sentence"});
  }
}
