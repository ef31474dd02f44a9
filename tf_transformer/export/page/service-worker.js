/**
 * Keeps the files of the page, so that it works without a network. `contents.js` names them and their version: all else
 * at this address is left to whoever serves it.
 */

/** @typedef {{respondWith: (response: Promise<Response>) => void, request: Request} & ExtendableEvent} FetchEvent */
/** @typedef {Event & {waitUntil: (work: Promise<any>) => void}} ExtendableEvent */

importScripts("contents.js");

const worker = /** @type {any} */ (self);
const {version, page, loaded} = /** @type {{version: string, page: string[], loaded: string[]}} */ (worker.CONTENTS);
const place = String(worker.registration.scope);
const cacheName = `${place} ${version}`;
const files = new Set([...page, ...loaded].map((file) => new URL(file, place).href));
let hasLeft = false;

self.addEventListener("install", (event) => {
  // Not what the browser has kept of an older version.
  const now = page.map((file) => new Request(file, {cache: "no-cache"}));
  /** @type {ExtendableEvent} */ (event).waitUntil(caches.open(cacheName).then((cache) => cache.addAll(now)));
});

self.addEventListener("activate", (event) => {
  /** @type {ExtendableEvent} */ (event).waitUntil(forget(cacheName).then(() => worker.clients.claim()));
});

// The page asks for it before it loads anything; until then, the one that is open keeps the files of its own version.
self.addEventListener("message", (event) => {
  const said = /** @type {MessageEvent & ExtendableEvent} */ (event);
  if (said.data === "take over") worker.skipWaiting();
  if (said.data === "look around") said.waitUntil(leave(said.source).catch(() => {})); // there may be no network
});

self.addEventListener("fetch", (event) => {
  const asked = /** @type {FetchEvent} */ (event);
  const address = addressOf(asked.request);
  if (asked.request.method === "GET" && files.has(address) && !hasLeft) asked.respondWith(kept(asked, address));
});

/** @param {Request} request @returns {string} the address of the file that is asked for, without a query */
function addressOf({url, mode}) {
  const address = url.replace(/[?#].*$/su, "");
  // Web servers send some addresses of the page on to another, and a page cannot be opened by an answer that was sent on.
  return mode === "navigate" ? address.replace(/index\.html$/u, "") : address;
}

/** Remove what versions of this page have kept. @param {string} [but] the name of a cache that stays */
async function forget(but) {
  const old = (await caches.keys()).filter((each) => each.startsWith(`${place} `) && each !== but);
  await Promise.all(old.map((each) => caches.delete(each)));
}

/**
 * Give the address back to what is there now, if that is no such page any more: a browser keeps a service worker whose
 * script is gone, and would show for good what was kept.
 *
 * @param {any} client the page that asks
 */
async function leave(client) {
  const {ok, status, redirected, headers} = await fetch(worker.location.href, {cache: "no-store"});
  const isScript = headers.get("Content-Type")?.includes("javascript"); // some servers send a page for all that they lack
  if (redirected || (ok ? isScript : ![404, 410].includes(status))) return;
  hasLeft = true;
  await worker.registration.unregister();
  await forget();
  await client.navigate(client.url);
}

/** @param {FetchEvent} event @param {string} address of the file @returns {Promise<Response>} */
async function kept(event, address) {
  const cache = await caches.open(cacheName);
  const known = await cache.match(address);
  if (known) return known;
  const response = await fetch(event.request);
  // What breaks off, or has no room, is not kept.
  if (response.ok) {
    const copy = response.clone();
    // Who finds the file damaged forgets it only when it is kept, because the lock goes round in turn.
    const keep = navigator.locks.request(address, () => cache.put(address, copy));
    event.waitUntil(keep.catch(() => {}));
  }
  return response;
}
