// What is asked for the place that is looked at, and kept as long as it may be looked at again.
import { signal } from '../base/drawing.js';

/**
 * @template T
 * @typedef {T & { key: string | number, error?: undefined, again?: undefined }} Found
 */
/** @typedef {{ key: string | number, error: Error, again: () => void }} NotFound */
/**
 * @typedef {object} Kept
 * @property {unknown} key
 * @property {Signal<any>} value
 * @property {Map<unknown, any>} cache
 * @property {number} [timer]
 * @property {AbortController} [stop]
 */
/** @type {WeakMap<object, Record<string, Kept>>} */
const loads = new WeakMap();

// loaded(self, name, key, load): what `load` gives for the key that is shown now;
// what was shown stays until the next is there.
/**
 * @template T
 * @param {Self} self
 * @param {string} name
 * @param {string | number} key
 * @param {(stop: AbortSignal) => Promise<T>} load
 * @returns {Found<T> | NotFound | null}
 */
export function loaded(self, name, key, load) {
  const all = loads.get(self) ?? {};
  loads.set(self, all);
  const kept = (all[name] ??= { key: null, value: signal(null), cache: new Map() });
  if (kept.key !== key) {
    kept.key = key;
    clearTimeout(kept.timer);
    kept.stop?.abort();
    if (kept.cache.has(key))
      queueMicrotask(() => {
        kept.value.value = kept.cache.get(key);
      });
    else
      kept.timer = setTimeout(async () => {
        kept.stop = new AbortController();
        /** @type {any} */
        let found;
        try {
          found = { key, ...(await load(kept.stop.signal)) };
          kept.cache.set(key, found);
          if (kept.cache.size > 60) kept.cache.delete(kept.cache.keys().next().value);
        } catch (error) {
          if (/** @type {Error} */ (error).name === 'AbortError') return;
          const again = () => {
            kept.key = null;
            loaded(self, name, key, load);
          };
          found = { key, error, again };
        }
        if (kept.key === key && !self.gone) kept.value.value = found;
      }, 50);
  }
  return kept.value.value;
}
