// Asks the log: one function for a question, one for the stream of what comes. Every text in an answer is data.
import { signal } from '../base/drawing.js';
import { learn } from '../base/words.js';
import { heard } from './server-sent.js';

const HERE = new URL('../../..', import.meta.url); // …/debug/, wherever a proxy has put it
export const BASE = HERE.pathname;
export const out = signal(false); // nobody is in: show the door
export const turnedAway = signal(''); // what somebody is told whom no token lets in
/** @type {Signal<{ what: string, done: number, total: number | null } | null>} */
export const coming = signal(null); // how far a log is that is imported just now
/** @type {Signal<{ state: string, head: number, since: number, why?: string }>} */
export const live = signal({ state: 'waiting', head: 0, since: 0 });
/** What agents say right now and is not recorded yet, by their runs. @type {Signal<Record<string, Saying>>} */
export const saying = signal({});
export const forked = signal(''); // what stands for the forks beside the log: another text, once they are other ones
export const openClaws = new Set(); // messages of an import whose words are OpenClaw's own, by their ids
export const erased = signal(0); // how often words were erased since the page began: what is shown is drawn anew

// What says that there is more to be read: how far the log is, and inside a fork also what stands for the forks.
export const moved = () => (inside.fork ? `${live.value.head} ${forked.value}` : String(live.value.head));

export class Refused extends Error {
  /** @param {number} status @param {string} code @param {string} message */
  constructor(status, code, message) {
    super(message);
    this.status = status;
    this.code = code;
    this.what = ''; // what is imported just now, and how far that is
    this.done = 0;
    /** @type {number | null} */
    this.total = null;
  }
}

export const inside = { fork: '' }; // the fork that is looked at; '' is the log itself

// The cookie goes to every port of this machine. What lets in is that and a second half, which this tab keeps; a tab
// without one has it from another tab of the same origin, where one is open.
const KEPT = `intersession ${BASE}`;
const tabs = new BroadcastChannel(KEPT);
let half = sessionStorage.getItem(KEPT) ?? '';
export const admitted = signal(0); // how often this tab was let in by another one, while it showed the door
const refused = new Set(); // halves that were good once
let admit = () => {};
/** @param {string} word */
function keep(word) {
  half = word;
  sessionStorage.setItem(KEPT, word);
}
export function leave() {
  half = '';
  sessionStorage.removeItem(KEPT);
  out.value = true;
}
function shut() {
  refused.add(half);
  out.value = true;
  tabs.postMessage({ wanted: true });
}
/** @param {string} word */
function take(word) {
  keep(word);
  admit();
  if (!out.peek()) return;
  out.value = false;
  admitted.value += 1;
}
// One that answers later than that is still let in by: the door is shown meanwhile.
const ANSWER_MS = 300;
/** @type {() => Promise<void>} */
export const askTabs = () =>
  new Promise(done => {
    if (half) return done();
    admit = done;
    tabs.postMessage({ wanted: true });
    setTimeout(done, ANSWER_MS);
  });
tabs.onmessage = (/** @type {MessageEvent} */ { data }) => {
  if (data.wanted && half && !out.peek()) tabs.postMessage({ half });
  // Whoever is in keeps theirs, but for the one of a new login: the cookie is that one's from now on.
  if (data.half && !refused.has(data.half) && (data.isNew || !half || out.peek())) take(data.half);
  if (data.position) erasedAt(data.position);
};
/** @param {URL | string} url @param {RequestInit} given @param {boolean} [isLogin] */
async function send(url, given, isLogin = false) {
  for (;;) {
    const mine = half;
    const found = await fetch(url, { ...given, headers: { ...given.headers, 'x-intersession': mine || '1' } });
    if (found.status !== 401) return found;
    if (mine !== half) continue;
    if (!isLogin) shut();
    return found;
  }
}

/** @param {number} ms */
const wait = ms => new Promise(done => setTimeout(done, ms));

// A log that is imported just now is waited for: `coming` says how far it is.
const LOOK_MS = 250;

// Whoever does not answer at all is asked again, until they do or nobody wants to know any more.
const AGAIN_MS = 1500;
/** @param {URL | string} url @param {RequestInit} given */
async function reached(url, given) {
  for (;;) {
    try {
      return await send(url, given);
    } catch (error) {
      if (given.signal?.aborted || /** @type {Error} */ (error).name === 'AbortError') throw error;
      if (live.peek().state !== 'lost') live.value = { ...live.peek(), state: 'lost', since: Date.now() };
    }
    await wait(AGAIN_MS);
  }
}

// A page asks at once what it shows, beside what `about` says of the log; it is handed out once that is known, since
// colours and rights are drawn from it.
/** @type {() => void} */
export let known;
/** @type {Promise<void>} */
const whenKnown = new Promise(done => {
  known = done;
});

// What nobody waits for is asked once all else is answered.
let waiting = 0;
/** @type {Set<() => void>} */
const idle = new Set();
/** @type {() => Promise<void>} */
export const whenIdle = () => (waiting ? new Promise(done => idle.add(done)) : Promise.resolve());
function answered() {
  waiting -= 1;
  if (waiting) return;
  for (const done of idle) done();
  idle.clear();
}

const NOT_IN_A_FORK = new Set(['about', 'forks', 'compare', 'notes']);
/**
 * @template {keyof Answers.Questions} N
 * @param {N} name
 * @param {Record<string, any>} [given]
 * @param {{ signal?: AbortSignal }} [how]
 * @returns {Promise<Answer<N>>}
 */
export async function ask(name, given = {}, { signal: stop } = {}) {
  const url = new URL(`api/${name}`, HERE);
  /** @type {Record<string, any>} */
  const all = { fork: NOT_IN_A_FORK.has(name) ? '' : inside.fork, ...given };
  for (const [key, value] of Object.entries(all)) {
    if (value === undefined || value === null || value === '' || value === false) continue;
    for (const one of Array.isArray(value) ? value : [value]) url.searchParams.append(key, one);
  }
  waiting += 1;
  try {
    return await asked(name, url, stop);
  } finally {
    answered();
  }
}
// A store that is away is asked again by itself, and the line at the foot says so; what is shown stays.
/** @param {string} why */
function away(why) {
  if (live.peek().state !== 'away') live.value = { ...live.peek(), state: 'away', since: Date.now(), why };
}
function back() {
  if (live.peek().state === 'away') live.value = { ...live.peek(), state: 'live', since: 0 };
}
/** @param {string} name @param {URL} url @param {AbortSignal} [stop] @returns {Promise<any>} */
async function asked(name, url, stop) {
  for (let tries = 0; ; tries++) {
    const answer = await reached(url, { signal: stop, headers: { accept: 'application/json' } });
    if (answer.status === 429 && tries < 4) {
      await wait(250 * (tries + 1));
      continue;
    }
    try {
      const said = await read(answer);
      back();
      if (coming.peek()) coming.value = null;
      if (name !== 'about') await whenKnown;
      if (said.names) learn(said.names);
      for (const id of said.openClaws ?? []) openClaws.add(id);
      return said;
    } catch (caught) {
      const error = /** @type {Refused} */ (caught);
      if (error.code === 'unavailable' && answer.headers.has('retry-after')) {
        away(error.message);
        await wait(AGAIN_MS);
        if (stop?.aborted) throw new DOMException('nobody wants to know any more', 'AbortError');
        continue;
      }
      if (error.code !== 'importing') {
        // What is said of a refusal depends on who looks.
        if (name !== 'about') await whenKnown;
        throw error;
      }
      coming.value = error;
    }
    await wait(LOOK_MS);
    if (stop?.aborted) throw new DOMException('nobody wants to know any more', 'AbortError');
  }
}

/** @param {Response} answer @returns {Promise<any>} */
async function read(answer) {
  /** @type {any} */
  let said = {};
  try {
    said = await answer.json();
  } catch {
    /* no JSON: the status says it */
  }
  if (answer.ok) return said;
  const error = said.error ?? {};
  if (answer.status === 401 && error.type === 'refused') turnedAway.value = error.message;
  const words = error.message ?? `The server answered ${answer.status}.`;
  const refused = new Refused(answer.status, error.code ?? error.type, words);
  throw Object.assign(refused, { what: error.what, done: error.done, total: error.total });
}

/** @param {Record<string, string | number>} given @param {'file' | 'attachment'} [name] */
export const addressOf = (given, name = 'file') => {
  const url = new URL(`api/${name}`, HERE);
  for (const [key, value] of Object.entries({ fork: inside.fork, ...given }))
    if (value) url.searchParams.set(key, value);
  return url.href;
};
/** @param {string} url @param {AbortSignal} [stop] */
export async function bytesAt(url, stop) {
  for (let tries = 0; ; tries++) {
    const answer = await reached(url, { signal: stop });
    if (answer.status === 429 && tries < 4) {
      await wait(250 * (tries + 1));
      continue;
    }
    if (!answer.ok) await read(answer);
    return answer;
  }
}
/** @param {string} url @param {string} [name] */
export async function download(url, name) {
  const answer = await bytesAt(url);
  const link = document.createElement('a');
  link.href = URL.createObjectURL(await answer.blob());
  link.download = name ?? /filename="(.*)"/.exec(answer.headers.get('content-disposition') ?? '')?.[1] ?? '';
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), KEEP_MS);
}
const KEEP_MS = 60_000; // so long may a browser take to begin to keep it

/** @param {string} path @param {object} [body] @returns {Promise<any>} */
export async function tell(path, body) {
  let answer;
  const given = {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(body ?? {}),
  };
  try {
    answer = await send(new URL(path, HERE), given, path === 'login');
  } catch {
    throw new Refused(0, 'unreachable', 'The server does not answer: look whether it was done before you do it again.');
  }
  return read(answer);
}

/** @param {string} token */
export const login = async token => {
  const { page } = await tell('login', { token });
  keep(page);
  tabs.postMessage({ half: page, isNew: true });
  out.value = false;
};

// Whoever shows words that are erased drops all that they have: the address says what to show, and it is asked anew.
// A tab that nobody sees is told by one that somebody does.
let lastErased = 0;
/** @param {number} position */
function erasedAt(position) {
  if (position <= lastErased) return;
  lastErased = position;
  erased.value += 1;
}

// A browser has few connections for one server, and a stream takes one: a tab that nobody sees gives its own back, or
// with some tabs open no other one could be read. Once it is seen again, it goes on where it was.
/** @type {AbortController | null} */
let stream = null;
/** @type {number | null} */
let behind = null;
function rest() {
  stream?.abort();
  stream = null;
}
document.addEventListener('visibilitychange', () => {
  if (document.hidden) rest();
  else if (behind !== null && !stream && !out.peek()) follow(live.peek().head || behind);
});

/** @param {number} after */
export function follow(after) {
  rest();
  behind = after;
  if (document.hidden) return;
  stream = new AbortController();
  listen(after, stream.signal);
}
/** @param {number} after @param {AbortSignal} stop */
async function listen(after, stop) {
  while (!stop.aborted && !out.peek()) {
    try {
      const url = new URL(`api/live?after=${live.peek().head || after}`, HERE);
      const answer = await send(url, { signal: stop, headers: { accept: 'text/event-stream' } });
      if (answer.ok && answer.body) await hear(answer.body);
      else await ask('about', {}, { signal: stop }); // shows the door, or is asked until it is answered
    } catch {
      /* it is begun again below */
    }
    if (stop.aborted || out.peek()) return;
    if (live.peek().state !== 'lost') live.value = { ...live.peek(), state: 'lost', since: Date.now() };
    await wait(AGAIN_MS);
  }
}
/** @param {ReadableStream<Uint8Array>} body */
async function hear(body) {
  live.value = { ...live.peek(), state: 'live' };
  let begun = false;
  for await (const { kind, id, data } of heard(body)) {
    if (kind === 'head') {
      live.value = { state: 'live', head: Number(id), since: 0 };
      if (Object.keys(saying.peek()).length) saying.value = {}; // an answer that goes on says so with its next words
    }
    if (kind === 'delta') saying.value = { ...saying.peek(), [data.runId]: data };
    if (kind === 'erased') {
      erasedAt(data.position);
      tabs.postMessage({ position: data.position });
    }
    if (kind === 'forks') {
      // What was erased in a fork while nobody listened, nobody tells: one that has changed meanwhile is drawn anew.
      const missed = !begun && forked.peek() && forked.peek() !== data.state;
      begun = true;
      forked.value = data.state;
      const isErased = (/** @type {string} */ fork) => fork.startsWith(inside.fork);
      if (inside.fork && (missed || data.erased.some(isErased))) erased.value += 1;
    }
    if (kind === 'store') {
      if (data.available) back();
      else {
        away('');
        ask('about').catch(() => {}); // until it is answered
      }
    }
  }
}
