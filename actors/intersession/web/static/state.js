// Where the page is, in its address, and what is known of the log: pages read these signals, and change them by `go`.
import { batch, computed, signal } from './lib.js';
import { BASE, ask, follow, inside, known, whenIdle } from './api.js';

export const about = signal(null);
export const problem = signal(null);

// A link may have lost its end on the way, and with it half a letter: then it is taken as it stands.
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
const readable = text => text.replaceAll('%3A', ':').replaceAll('%40', '@');
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
export function go(url, { replace = false } = {}) {
  history[replace ? 'replaceState' : 'pushState'](null, '', url);
  route.value = inAddress();
  if (!replace) for (const box of scrolling()) box?.scrollTo(0, 0);
}
// A link of ours changes the page without loading it; with a modifier it is the browser's.
export const link = url => ({
  href: url,
  onClick: event => {
    if (event.metaKey || event.ctrlKey || event.shiftKey || event.button) return;
    event.preventDefault();
    go(url);
  },
});
export const queried = name => route.value.query.get(name) ?? '';
export function setQuery(changes, { replace = true } = {}) {
  const { page, id, query } = inAddress();
  const next = Object.fromEntries([...new Set(query.keys())].map(key => [key, query.getAll(key)]));
  go(href(page, id, { ...next, ...changes }), { replace });
}

export async function begin() {
  const found = await ask('about');
  batch(() => {
    about.value = found;
    problem.value = null;
  });
  known();
  follow(found.head ?? 0);
  prove();
}
// What a log's verification said, for the log itself ('') and each fork that is looked at.
export const proofs = signal({});
const asking = new Set();
export function unproven() {
  asking.clear();
  proofs.value = {};
  prove();
}
export async function prove(now = false, fork = inside.fork) {
  if (!about.peek()?.isOperator || (asking.has(fork) && !now)) return;
  asking.add(fork);
  let found;
  try {
    if (!now) await whenIdle();
    found = await ask('integrity', { verify: now || undefined, fork });
  } catch (error) {
    found = { problem: error.message };
  }
  proofs.value = { ...proofs.peek(), [fork]: found };
}
export const proof = computed(() => proofs.value[route.value.query.get('fork') ?? ''] ?? null);
export const speakers = computed(() => about.value?.speakers ?? []);
export const here = signal(null); // the place that is looked at, a position; null where there is none
