/** Keeps the files of the page, so that it works without a network. `contents.js` names them and their version. */

/** @typedef {{respondWith: (response: Promise<Response>) => void, request: Request} & ExtendableEvent} FetchEvent */
/** @typedef {Event & {waitUntil: (work: Promise<any>) => void}} ExtendableEvent */

importScripts("contents.js");

const worker = /** @type {any} */ (self);
const {version, page} = /** @type {{version: string, page: string[]}} */ (worker.CONTENTS);
const place = String(worker.registration.scope);
const cacheName = `${place} ${version}`;

self.addEventListener("install", (event) => {
  /** @type {ExtendableEvent} */ (event).waitUntil(caches.open(cacheName).then((cache) => cache.addAll(page)));
});

self.addEventListener("activate", (event) => {
  /** @type {ExtendableEvent} */ (event).waitUntil(forgetOthers().then(() => worker.clients.claim()));
});

self.addEventListener("fetch", (event) => {
  const {request, respondWith} = /** @type {FetchEvent} */ (event);
  if (request.method === "GET" && request.url.startsWith(place)) respondWith.call(event, kept(request));
});

/** Remove what an older version of this page has kept. */
async function forgetOthers() {
  const old = (await caches.keys()).filter((each) => each.startsWith(`${place} `) && each !== cacheName);
  await Promise.all(old.map((each) => caches.delete(each)));
}

/** @param {Request} request @returns {Promise<Response>} */
async function kept(request) {
  const cache = await caches.open(cacheName);
  const known = await cache.match(request, {ignoreSearch: true});
  if (known) return known;
  const response = await fetch(request);
  if (response.ok) await cache.put(request, response.clone());
  return response;
}
