// What can be done by whoever looks, and doing it.
import { tell } from '../asking/api.js';
import { about } from '../asking/about.js';
import { route } from '../asking/address.js';
import { say } from '../parts/window.js';

// What is done is done to the log itself: in a fork, only what concerns the fork is offered.
const IN_A_FORK = new Set(['file', 'reveal', 'forks.remove']);
/** @param {string} name */
export const can = name =>
  Boolean(about.value?.can.includes(name)) && (!route.value.query.get('fork') || IN_A_FORK.has(name));

/** @param {string} method @param {Record<string, any>} params @param {string} said @param {(() => void)} [after] */
export async function done(method, params, said, after) {
  await tell('api/do', { method, params });
  say(said);
  after?.();
}
