/** Keeps the files of the page, so that it works without a network. `contents.js` names them and their version. */

/** @typedef {{respondWith: (response: Promise<Response>) => void, request: Request} & ExtendableEvent} FetchEvent */
/** @typedef {Event & {waitUntil: (work: Promise<any>) => void}} ExtendableEvent */

importScripts("contents.js");

const worker = /** @type {any} */ (self);
const {version, page} = /** @type {{version: string, page: string[]}} */ (worker.CONTENTS);
const place = String(worker.registration.scope);
const cacheName = `${place} ${version}`;

self.addEventListener("install", (event) => {
  // Not what the browser has kept of an older version.
  const now = page.map((file) => new Request(file, {cache: "no-cache"}));
  /** @type {ExtendableEvent} */ (event).waitUntil(caches.open(cacheName).then((cache) => cache.addAll(now)));
});

self.addEventListener("activate", (event) => {
  /** @type {ExtendableEvent} */ (event).waitUntil(forgetOthers().then(() => worker.clients.claim()));
});

// The page asks for it before it loads anything; until then, the one that is open keeps the files of its own version.
self.addEventListener("message", ({data}) => void (data === "take over" && worker.skipWaiting()));

self.addEventListener("fetch", (event) => {
  const asked = /** @type {FetchEvent} */ (event);
  if (asked.request.method === "GET" && asked.request.url.startsWith(place)) asked.respondWith(kept(asked));
});

/** Remove what an older version of this page has kept. */
async function forgetOthers() {
  const old = (await caches.keys()).filter((each) => each.startsWith(`${place} `) && each !== cacheName);
  await Promise.all(old.map((each) => caches.delete(each)));
}

/** @param {FetchEvent} event @returns {Promise<Response>} */
async function kept(event) {
  const cache = await caches.open(cacheName);
  // Web servers send some addresses of the page on to another, and a page cannot be opened by an answer that was sent on.
  const address = event.request.mode === "navigate" ? event.request.url.replace(/index\.html(?=$|[?#])/u, "") : event.request.url;
  const known = await cache.match(address, {ignoreSearch: true});
  if (known) return known;
  const response = await fetch(event.request);
  // What breaks off, or has no room, is not kept.
  if (response.ok) {
    const copy = response.clone();
    // Who finds the file damaged forgets it only when it is kept, because the lock goes round in turn.
    const keep = navigator.locks.request(event.request.url, () => cache.put(event.request, copy));
    event.waitUntil(keep.catch(() => {}));
  }
  return response;
}
