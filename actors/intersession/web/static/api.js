// Asks the log: one function for a question, one for the stream of what comes. Every text in an answer is data.
import { signal } from './lib.js';
import { learn } from './words.js';

const HERE = new URL('../..', import.meta.url); // …/debug/, wherever a proxy has put it
export const BASE = HERE.pathname;
export const out = signal(false); // nobody is in: show the door
export const coming = signal(null); // how far a log is that is imported just now
export const live = signal({ state: 'waiting', head: 0, since: 0 });
export const forked = signal(''); // what stands for the forks beside the log: another text, once they are other ones
export const openClaws = new Set(); // messages of an import whose words are OpenClaw's own, by their ids
export const erased = signal(0); // how often words were erased since the page began: what is shown is drawn anew

// What says that there is more to be read: how far the log is, and inside a fork also what stands for the forks.
export const moved = () => (inside.fork ? `${live.value.head} ${forked.value}` : String(live.value.head));

export class Refused extends Error {
  constructor(status, code, message) {
    super(message);
    this.status = status;
    this.code = code;
  }
}

export const inside = { fork: '' }; // the fork that is looked at; '' is the log itself

const wait = ms => new Promise(done => setTimeout(done, ms));

// A log that is imported just now is waited for: `coming` says how far it is.
const LOOK_MS = 250;

// Whoever does not answer at all is asked again, until they do or nobody wants to know any more.
const AGAIN_MS = 1500;
async function reached(url, given) {
  for (;;) {
    try {
      return await fetch(url, given);
    } catch (error) {
      if (given.signal?.aborted || error.name === 'AbortError') throw error;
      if (live.peek().state !== 'lost') live.value = { ...live.peek(), state: 'lost', since: Date.now() };
    }
    await wait(AGAIN_MS);
  }
}

// A page asks at once what it shows, beside what `about` says of the log; it is handed out once that is known, since
// colours and rights are drawn from it.
export let known;
const whenKnown = new Promise(done => {
  known = done;
});

// What nobody waits for is asked once all else is answered.
let waiting = 0;
const idle = new Set();
export const whenIdle = () => (waiting ? new Promise(done => idle.add(done)) : Promise.resolve());
function answered() {
  waiting -= 1;
  if (waiting) return;
  for (const done of idle) done();
  idle.clear();
}

const NOT_IN_A_FORK = new Set(['about', 'forks', 'compare', 'notes']);
export async function ask(name, given = {}, { signal: stop } = {}) {
  const url = new URL(`api/${name}`, HERE);
  for (const [key, value] of Object.entries({ fork: NOT_IN_A_FORK.has(name) ? '' : inside.fork, ...given })) {
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
function away(why) {
  if (live.peek().state !== 'away') live.value = { ...live.peek(), state: 'away', since: Date.now(), why };
}
function back() {
  if (live.peek().state === 'away') live.value = { ...live.peek(), state: 'live', since: 0 };
}
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
    } catch (error) {
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

async function read(answer) {
  let said = {};
  try {
    said = await answer.json();
  } catch {
    /* no JSON: the status says it */
  }
  if (answer.ok) return said;
  if (answer.status === 401) out.value = true;
  const error = said.error ?? {};
  const words = error.message ?? `The server answered ${answer.status}.`;
  const refused = new Refused(answer.status, error.code ?? error.type, words);
  throw Object.assign(refused, { what: error.what, done: error.done, total: error.total });
}

export const fileOf = given => {
  const url = new URL('api/file', HERE);
  for (const [key, value] of Object.entries({ fork: inside.fork, ...given }))
    if (value) url.searchParams.set(key, value);
  return url.href;
};

export async function tell(path, body) {
  let answer;
  try {
    answer = await fetch(new URL(path, HERE), {
      method: 'POST',
      headers: { 'content-type': 'application/json', 'x-intersession': '1' },
      body: JSON.stringify(body ?? {}),
    });
  } catch {
    throw new Refused(0, 'unreachable', 'The server does not answer: look whether it was done before you do it again.');
  }
  return read(answer);
}

export const login = async token => {
  await tell('login', { token });
  out.value = false;
};

// Refused for good, by a server that was started anew: whether one is still in is what a question says.
async function followAgain(after) {
  const mine = source;
  await wait(AGAIN_MS);
  try {
    await ask('about');
  } catch {
    /* `read` shows the door, or it is asked again below */
  }
  if (source === mine && !out.peek()) follow(after);
}

// A browser has few connections for one server, and a stream takes one: a tab that nobody sees gives its own back, or
// with some tabs open no other one could be read. Once it is seen again, it goes on where it was.
let source = null;
let behind = null;
function rest() {
  source?.close();
  source = null;
}
document.addEventListener('visibilitychange', () => {
  if (document.hidden) rest();
  else if (behind !== null && !source && !out.peek()) follow(live.peek().head || behind);
});

// Whoever shows words that are erased drops all that they have: the address says what to show, and it is asked anew.
// A tab that nobody sees is told by one that somebody does.
const tabs = new BroadcastChannel(`intersession ${BASE}`);
let lastErased = 0;
function erasedAt(position) {
  if (position <= lastErased) return;
  lastErased = position;
  erased.value += 1;
}
tabs.onmessage = ({ data }) => erasedAt(data.position);

export function follow(after) {
  rest();
  behind = after;
  if (document.hidden) return;
  source = new EventSource(new URL(`api/live?after=${after}`, HERE));
  source.onopen = () => {
    live.value = { ...live.peek(), state: 'live' };
  };
  source.onerror = () => {
    live.value = {
      ...live.peek(),
      state: 'lost',
      since: live.peek().state === 'lost' ? live.peek().since : Date.now(),
    };
    if (source.readyState === EventSource.CLOSED) followAgain(live.peek().head || after);
  };
  source.addEventListener('erased', event => {
    const { position } = JSON.parse(event.data);
    erasedAt(position);
    tabs.postMessage({ position });
  });
  let begun = false;
  source.addEventListener('forks', event => {
    const said = JSON.parse(event.data);
    // What was erased in a fork while nobody listened, nobody tells: one that has changed meanwhile is drawn anew.
    const missed = !begun && forked.peek() && forked.peek() !== said.state;
    begun = true;
    forked.value = said.state;
    if (inside.fork && (missed || said.erased.some(fork => fork.startsWith(inside.fork)))) erased.value += 1;
  });
  source.addEventListener('store', event => {
    if (JSON.parse(event.data).available) back();
    else {
      away('');
      ask('about').catch(() => {}); // until it is answered
    }
  });
  source.addEventListener('head', event => {
    live.value = { state: 'live', head: Number(event.lastEventId), since: 0 };
  });
}
