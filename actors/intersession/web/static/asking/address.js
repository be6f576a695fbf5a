// Where the page is: in its address. Pages read `route`, and change it by `go`.
import { signal } from '../base/drawing.js';
import { BASE, inside } from './api.js';

// A link may have lost its end on the way, and with it half a letter: then it is taken as it stands.
/** @param {string} part */
const decoded = part => {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
};
const inAddress = () => {
  const path = location.pathname;
  const rest = path.startsWith(BASE) ? path.slice(BASE.length) : '';
  const [page, ...more] = rest.split('/').map(decoded);
  const query = new URLSearchParams(location.search);
  inside.fork = query.get('fork') ?? '';
  return { page: page || 'runs', id: more.join('/'), query };
};
export const route = signal(inAddress());
addEventListener('popstate', () => {
  route.value = inAddress();
});

// Whoever is in a fork stays in it, until they leave it.
const OUTSIDE = new Set(['forks', 'diff']);
/** @param {string} text */
const readable = text => text.replaceAll('%3A', ':').replaceAll('%40', '@');
/** @param {string} page @param {string} [id] @param {Record<string, any>} [query] */
export const href = (page, id = '', query = {}) => {
  const given = new URLSearchParams();
  for (const [key, value] of Object.entries({ fork: OUTSIDE.has(page) ? '' : inside.fork, ...query })) {
    for (const one of Array.isArray(value) ? value : [value])
      if (one !== undefined && one !== null && one !== '' && one !== false) given.append(key, one);
  }
  const asked = readable(given.toString());
  const named = readable(String(id).split('/').map(encodeURIComponent).join('/'));
  return `${BASE}${page}${named ? `/${named}` : ''}${asked ? `?${asked}` : ''}`;
};
// What is scrolled: the page below its bar; where the screen is narrow, all of it.
export const scrolling = () => [document.scrollingElement, document.getElementById('main')];
/** @param {string} url @param {{ replace?: boolean }} [given] */
export function go(url, { replace = false } = {}) {
  history[replace ? 'replaceState' : 'pushState'](null, '', url);
  route.value = inAddress();
  if (!replace) for (const box of scrolling()) box?.scrollTo(0, 0);
}
// A link of ours changes the page without loading it; with a modifier it is the browser's.
/** @param {string} url */
export const link = url => ({
  href: url,
  onClick: (/** @type {Happening} */ event) => {
    if (event.metaKey || event.ctrlKey || event.shiftKey || event.button) return;
    event.preventDefault();
    go(url);
  },
});
/** @param {string} name */
export const queried = name => route.value.query.get(name) ?? '';
/** @param {Record<string, any>} changes @param {{ replace?: boolean }} [given] */
export function setQuery(changes, { replace = true } = {}) {
  const { page, id, query } = inAddress();
  const next = Object.fromEntries([...new Set(query.keys())].map(key => [key, query.getAll(key)]));
  go(href(page, id, { ...next, ...changes }), { replace });
}

/** @type {Signal<number | null>} */
export const here = signal(null); // the place that is looked at, a position; null where there is none
