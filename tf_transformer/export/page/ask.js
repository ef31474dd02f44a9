/** What the page asks its translator, which is in a worker. A server's page has a module of the same name. */

import {Damaged} from "./files.js";
import {build} from "./runtime.js";

export const WAITING = "It is being computed \u2026";
/** Milliseconds that the page waits for its service worker. */
const PATIENCE = 10_000;

/** @typedef {{resolve: (answer: any) => void, reject: (error: Error) => void, part: (answer: any) => void}} Waiting */

/** @type {Map<number, Waiting>} */
const waiting = new Map();
let asked = 0;
/** @type {Error | null} why the worker answers no more */
let broken = null;
/** @type {any} what is known of the model */
let model = null;
/** @type {(worker: Worker) => void} */
let started = () => {};
/** @type {(error: unknown) => void} */
let failed = () => {};
/** @type {Promise<Worker>} */
const worker = new Promise((resolve, reject) => void ([started, failed] = [resolve, reject]));
worker.catch(() => {}); // the page says it when it asks

/** Say what is known of the model, and load it. @returns {Promise<any>} */
export function askModel() {
  return begin().catch((error) => {
    failed(error);
    throw error;
  });
}

/** @returns {Promise<any>} */
async function begin() {
  const name = build();
  await serviceWorker();
  const response = await fetch("tf_transformer.json").catch(() => null);
  if (!response?.ok) throw new Error("The page cannot load its model: is it still there?");
  const {config, litert, web} = await response.json().catch(() => {
    throw new Damaged("tf_transformer.json");
  });
  const needed = ["model.tflite", `runtime/${name}.wasm`, ...new Set(litert.tokenizers)].map((file) => `${file}.gz`);
  start(needed.reduce((sum, file) => sum + web.sizes[file], 0));
  ask("load", "", {}, new AbortController().signal).catch((error) => void showProblem(error.message));
  const {source_language: source, target_language: target} = config.decoding;
  const languages = Object.keys(litert.language_tokens.source);
  model = {
    name: web.name, source: source ?? config.data.source, target: target ?? config.data.target, languages,
    has_steps: config.decoding.beam_size > 1, has_terms: false,
  };
  return model;
}

/**
 * @param {string} path what is asked @param {string} text @param {Record<string, any>} more
 * @param {AbortSignal} signal
 * @param {(answer: any) => void} [part] takes the answer as far as it is known
 * @returns {Promise<any>}
 */
export function ask(path, text, more, signal, part = () => {}) {
  return new Promise((resolve, reject) => {
    if (broken) return reject(broken);
    const id = ++asked;
    /** @type {any[]} those of the parts that have come */
    const sentences = [];
    const joined = (/** @type {any} */ answer) => {
      sentences.push(...(answer.sentences ?? []));
      return answer.sentences ? {...answer, sentences} : answer;
    };
    waiting.set(id, {
      resolve: (answer) => resolve(joined(answer)),
      reject,
      part: (answer) => signal.aborted || part(joined(answer)),
    });
    signal.addEventListener("abort", () => {
      worker.then((thread) => thread.postMessage({stop: id}), () => {});
      reject(signal.reason);
    });
    worker.then((thread) => thread.postMessage({id, path, text, more}), reject);
  });
}

/** @param {Error} error @returns {string} */
export function problemOf(error) {
  return error.message;
}

/** @param {string} message */
function showProblem(message) {
  const place = document.getElementById("problem");
  if (place) place.textContent = message;
}

/** Start the worker, and show how much it has loaded. @param {number} total bytes */
function start(total) {
  const thread = new Worker(new URL("worker.js", import.meta.url), {type: "module"});
  const bar = Object.assign(document.createElement("progress"), {max: total, value: 0, id: "loading"});
  bar.setAttribute("aria-label", "Loading the translator");
  document.getElementById("model")?.after(bar);
  started(thread);
  thread.addEventListener("message", ({data}) => {
    if (data.received) bar.value = Math.min(bar.value + data.received, total);
    const of = waiting.get(data.id);
    if (!of) return;
    if (data.part) return of.part(data.part);
    waiting.delete(data.id);
    bar.remove();
    if (data.error) of.reject(new Error(data.error));
    else of.resolve({model, ...data.answer});
  });
  thread.addEventListener("error", (event) => {
    event.preventDefault();
    const why = event.message ?? "the browser or a rule of the web server does not let it start";
    broken = new Error(`The translator has stopped: ${why}. Load the page again.`);
    for (const {reject} of waiting.values()) reject(broken);
    waiting.clear();
    bar.remove();
  });
}

/** Let the page work without a network once it is loaded, where the browser has service workers. */
async function serviceWorker() {
  if (!("serviceWorker" in navigator)) {
    return console.info("The page will not work without a network: service workers need https:// or localhost.");
  }
  const late = new Promise((_, reject) => {
    setTimeout(() => reject(new Error("its service worker does not start")), PATIENCE);
  });
  await Promise.race([inCharge(), late]).catch((error) => {
    console.info("The page will not work without a network:", error);
  });
}

/** Start the service worker, and wait the first time until it is in charge, to keep the model when it comes. */
async function inCharge() {
  const address = new URL("service-worker.js", import.meta.url);
  const {installing, waiting} = await navigator.serviceWorker.register(address, {updateViaCache: "none"});
  navigator.serviceWorker.controller?.postMessage("look around"); // not before: to register would undo that it leaves
  if (waiting) return renew(waiting);
  if (navigator.serviceWorker.controller || !installing) return;
  await new Promise((resolve, reject) => {
    installing.addEventListener("statechange", () => {
      if (installing.state === "activated") resolve(null);
      if (installing.state === "redundant") reject(new Error("the browser cannot keep its files"));
    });
  });
}

/** Show a newer version of the page, which came while this one was shown before. @param {ServiceWorker} waiting */
async function renew(waiting) {
  const changed = new Promise((resolve) => navigator.serviceWorker.addEventListener("controllerchange", resolve));
  waiting.postMessage("take over");
  await changed;
  location.reload();
  await new Promise(() => {}); // nothing is loaded for this one
}
