/** The settings of the search that a program may choose: `web.settings` of an export has their types and bounds. */

/**
 * @typedef {Object} Range what a setting may be
 * @property {"boolean" | "integer" | "number"} type
 * @property {boolean} or_null
 * @property {Record<string, number>} bounds by their names in `BOUNDS`
 */

/** @type {Record<string, [string, (value: number, bound: number) => boolean]>} by the names of `config.fields` */
const BOUNDS = {
  at_least: ["at least", (value, bound) => value >= bound],
  above: ["above", (value, bound) => value > bound],
  at_most: ["at most", (value, bound) => value <= bound],
  below: ["below", (value, bound) => value < bound],
};
/** @type {Record<string, [string, (value: any) => boolean]>} */
const TYPES = {
  boolean: ["true or false", (value) => typeof value === "boolean"],
  integer: ["an integer", Number.isInteger],
  number: ["a finite number", Number.isFinite],
};
/** The least `max_source_length` if the language is a source token: one token each for language, text and end. */
const LEAST_DIRECTED = 3;

/**
 * Check settings, and throw an error for one that has no effect or is out of its range.
 *
 * @param {Record<string, any>} settings @param {Record<string, Range>} ranges
 */
export function checkSettings(settings, ranges) {
  for (const [name, value] of Object.entries(settings)) {
    const [, side] = name.match(/^(source|target)_language$/u) ?? [];
    if (side) throw new Error(`There is no setting ${name} of the search: give the language as ${side}.`);
    if (!Object.hasOwn(ranges, name)) throw new Error(`There is no setting ${name} of the search.`);
    const {type, or_null, bounds} = ranges[name];
    const [said, isOfType] = TYPES[type];
    const limits = Object.entries(bounds);
    if (value === null ? or_null : isOfType(value) && limits.every(([bound, limit]) => BOUNDS[bound][1](value, limit))) continue;
    const words = limits.map(([bound, limit]) => `${BOUNDS[bound][0]} ${limit}`).join(" and ");
    const received = typeof value === "string" ? JSON.stringify(value) : value;
    throw new Error(`${name} must be ${said}${or_null ? " or null" : ""}${words && `, ${words}`}. Received: ${received}`);
  }
}

/** @param {number} most source tokens, of which one is the language */
export function checkRoom(most) {
  if (most >= LEAST_DIRECTED) return;
  throw new Error(
    `max_source_length must be at least ${LEAST_DIRECTED} for a model with several languages, because the language and ` +
    `the end are tokens too. Received: ${most}`,
  );
}
