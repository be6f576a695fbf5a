// Begins: lets somebody in, draws the frame, and the page that the address names.
import { html, render, signal, view } from './lib.js';
import { BASE, inside, live, login, out, tell } from './api.js';
import { about, begin, coming, go, here, href, link, problem, proofs, prove, queried, route } from './state.js';
import { Icon, Shield, Window, open, told } from './parts.js';
import { capital, clock, counted } from './words.js';
import { Runs } from './runs.js';
import { Run } from './run.js';
import { Deliveries, Log, Search, Session, Sessions } from './lists.js';
import { Integrity, Settings } from './whole.js';
import { Diff } from './diff.js';
import { Forks } from './forks.js';

const PAGES = {
  runs: Runs,
  run: Run,
  sessions: Sessions,
  session: Session,
  log: Log,
  deliveries: Deliveries,
  integrity: Integrity,
  settings: Settings,
  search: Search,
  diff: Diff,
  forks: Forks,
};
const NAV = [
  ['runs', 'Runs'],
  ['sessions', 'Sessions'],
  ['log', 'Log'],
  ['deliveries', 'Deliveries'],
  ['forks', 'Forks'],
  ['integrity', 'Integrity'],
  ['settings', 'Settings'],
];
const WITHIN = { run: 'runs', diff: 'runs', session: 'sessions' };

// The logs that the page shows: the log itself, a fork of it, or both where they are compared.
function logsShown() {
  const { page, query } = route.value;
  if (page === 'diff' && query.get('other')) return ['', query.get('other')];
  return [query.get('fork') ?? ''];
}
const isBad = found => Boolean(found.problem) || found.ok === false;
const isOpen = found => found.ok === null || found.ok === undefined;
const Proof = ({ look, ok, said, on }) => html`
  <a class=${`proof ${look}`} ...${link(href('integrity'))}>
    <${Shield} ok=${ok} />
    <b>${said}</b>
    <span class="on">${on}</span>
  </a>
`;
function proofOfBad(found) {
  const positions = (found.findings ?? []).map(one => one.position).filter(Boolean);
  const counts = Object.values(found.counts ?? {}).reduce((sum, one) => sum + one, 0);
  const said = positions.length ? `Not verified past #${Math.min(...positions) - 1}` : 'Not verified';
  return html`<${Proof} look="no" said=${said} on=${found.problem ?? counted(counts, 'finding')} />`;
}
const Badge = view(() => {
  const logs = logsShown();
  for (const fork of logs) prove(false, fork);
  const found = logs.map(fork => proofs.value[fork]);
  const bad = found.find(one => one && isBad(one));
  if (bad) return proofOfBad(bad);
  if (found.some(one => !one)) return null;
  if (found.some(isOpen)) return html`<${Proof} look="" said="Not verified yet" />`;
  if (logs.length > 1) return html`<${Proof} look="ok" ok said="Verified, both" on="the log and the fork" />`;
  if (logs[0]) return html`<${Proof} look="ok" ok said="Verified, both" on="prefix and own events" />`;
  const at = route.value.page === 'run' ? here.value : null;
  const behind = at && at <= found[0].verifiedTo;
  const on = `${behind ? `#${at}` : `to #${found[0].verifiedTo}`}, by the chain`;
  return html`<${Proof} look="ok" ok said=${behind ? 'Verified to here' : 'Verified'} on=${on} />`;
});

const Top = view(() => {
  const page = WITHIN[route.value.page] ?? route.value.page;
  const find = event => {
    event.preventDefault();
    const words = new FormData(event.target).get('words').trim();
    if (words) {
      go(href('search', '', { words }));
      document.getElementById('main')?.focus();
    }
  };
  return html`
    <header class="top">
      <a class="brand" ...${link(href('runs'))}>Intersession</a>
      <nav class="nav" aria-label="Pages">
        ${NAV.filter(([name]) => about.value?.isOperator || !['forks', 'integrity', 'settings'].includes(name)).map(
          ([name, said]) =>
            html`<a ...${link(href(name))} aria-current=${page === name ? 'page' : null}>${said}</a>`,
        )}
      </nav>
      <span class="grow"></span>
      <form class="search" role="search" onSubmit=${find}>
        <${Icon} name="search" />
        <input
          id="search"
          name="words"
          type="search"
          aria-label="Search messages and events"
          placeholder="Search messages and events"
          defaultValue=${page === 'search' ? queried('words') : ''} />
        <kbd aria-hidden="true">/</kbd>
      </form>
      <${Badge}/>
      ${about.value && !about.value.readOnly
        ? html`
            <button
              class="btn"
              type="button"
              aria-label="Leave"
              title="Leave"
              onClick=${async () => {
                await tell('logout');
                out.value = true;
              }}>
              <${Icon} name="out" />
            </button>
          `
        : null}
    </header>
  `;
});

const Status = view(() => {
  const { state, head, since } = live.value;
  const log = about.value;
  return html`
    <footer class="status">
      <span>${KEYS[route.value.page] ?? KEYS.all}</span>
      <span class="grow"></span>
      <span>
        <span class=${`dot ${state === 'live' ? 'on' : state}`}></span>
        ${state === 'lost' ? `no answer since ${clock(since)}, trying again` : `live${head ? `, #${head}` : ''}`}
      </span>
      ${log ? html`<span>log ${log.logId.slice(0, 8)}${log.readOnly ? ', read only' : ''}</span>` : null}
    </footer>
  `;
});
const key = (...names) => names.map(name => html`<kbd>${name}</kbd>`);
const bar = (...parts) =>
  html`<span class="keybar">${parts.map(([names, said]) => html`<span>${key(...names)}${said}</span>`)}</span>`;
const KEYS = {
  run: bar(
    [['←', '→'], 'event'],
    [['p', 'n'], 'turn'],
    [['[', ']'], 'same session'],
    [['c', 'e'], 'cause, effect'],
    [['g'], 'go to'],
    [['b'], 'break on'],
    [['R', 'r'], 'run back, on'],
    [['?'], 'all keys'],
  ),
  runs: bar(
    [['j', 'k'], 'down, up'],
    [['Enter'], 'open'],
    [['x'], 'pick two'],
    [['/'], 'search'],
    [[], 'Outline: upper row asks, lower row is asked, ● person, ◆ channel, ■ loop ended, ✓ over, × failed'],
  ),
  all: bar([['/'], 'search'], [['?'], 'all keys']),
};

const Door = view((_, self) => {
  const state = self.once(() => ({ problem: signal(''), busy: signal(false) }));
  const enter = async event => {
    event.preventDefault();
    state.busy.value = true;
    try {
      await login(new FormData(event.target).get('token').trim());
      await begin();
    } catch (error) {
      state.problem.value = error.status === 401 ? 'That is not the token.' : error.message;
    }
    state.busy.value = false;
  };
  return html`
    <main class="door">
      <h1>Intersession</h1>
      <p class="muted">
        Who said what to whom, what each agent saw, and why it ended so. It takes the gateway's token: the operator

        has it, as gateway.auth.token or INTERSESSION_GATEWAY_TOKEN.
      </p>
      <form onSubmit=${enter}>
        <label>
          Token<input
            class="field"
            name="token"
            type="password"
            autocomplete="current-password"
            required
            autofocus />
        </label>
        <p class="bad" role="alert">${state.problem.value}</p>
        <button class="btn pri" type="submit" disabled=${state.busy.value}>Come in</button>
      </form>
      <p class="muted small">
        Programs send it with each

        request: <code>Authorization: Bearer …</code>; <a
          class="link"
          href=${`${BASE.replace(/debug\/$/, '')}openapi.json`}>
          openapi.json
        </a> says

        what they can ask.
      </p>
    </main>
  `;
});

const Opening = view(() => {
  const found = coming.value;
  if (!found) return html`<p class="loading" role="status">Opening the log…</p>`;
  const far = found.total
    ? `${found.done.toLocaleString('en-GB')} of ${counted(found.total, 'event')}`
    : 'Reading it';
  return html`
    <main class="door">
      <h1>Importing</h1>
      <p class="mono">${found.what}</p>
      <progress
        aria-label="How far the import is"
        max=${found.total || 1}
        value=${found.total ? found.done : null} />
      <p class="muted" role="status">${far}. It goes to a temporary log; what is imported is only read.</p>
    </main>
  `;
});

const App = view(() => {
  if (out.value) return html`<${Door}/>`;
  if (problem.value)
    return html`
      <main class="door">
        <h1>Intersession</h1>
        <p class="alert" role="alert">${problem.value}</p>
        <button class="btn" type="button" onClick=${start}>Try again</button>
      </main>
    `;
  if (!about.value) return html`<${Opening}/>`;
  const { page, id } = route.value;
  const Page = PAGES[page];
  const below = live.value.state === 'lost';
  document.title = `${capital(page)} · Intersession`;
  return html`
    <div class="app">
      <a
        class="skip"
        href="#main"
        onClick=${event => {
          event.preventDefault();
          document.getElementById('main').focus();
        }}>
        To the content
      </a>
      <${Top}/>
      <main class="main" id="main" tabindex="-1">
        ${below
          ? html`
              <p class="note lost" role="status">
                Shown to #${live.value.head || about.value.head}, the log may be further. Nothing is lost: it goes

                on when the server answers.
              </p>
            `
          : null}
        ${inside.fork && route.value.query.get('fork')
          ? html`
              <p class="note infork" role="note">
                <b>Fork ${inside.fork.slice(0, 8)}</b> What you see is of a log of its own; nothing of it has

                reached

                anybody. <a class="link" ...${link(href('forks'))}>All forks</a> <a
                  class="link"
                  ...${link(href(page === 'run' ? 'runs' : page, '', { fork: '' }))}>
                  Leave it
                </a>
              </p>
            `
          : null}
        ${Page
          ? html`<${Page} key=${`${page}/${id}/${inside.fork}`} id=${id} />`
          : html`
              <div class="empty">
                <h1>There is no page ${page}</h1>
                <a class="link" ...${link(href('runs'))}>All runs</a>
              </div>
            `}
      </main>
      <${Status}/>
      <${Window}/>
      <p class="vh" role="status" aria-live="polite">${told.value}</p>
    </div>
  `;
});

async function start() {
  problem.value = null;
  const word = new URLSearchParams(location.hash.slice(1)).get('token');
  if (word) {
    history.replaceState(null, '', location.pathname + location.search);
    try {
      await login(word);
    } catch {
      /* used already: the cookie may be here */
    }
  }
  if (!location.pathname.startsWith(BASE) || location.pathname === BASE) go(href('runs'), { replace: true });
  try {
    await begin();
  } catch (error) {
    if (!out.value) problem.value = error.message;
  }
}

const HELP = [
  ['← →', 'an event back, on'],
  ['p n', 'a turn back, on'],
  ['[ ]', 'the run before, behind, of the same session'],
  ['c e', 'to the cause, to the first effect'],
  ['g', 'go to a place'],
  ['/', 'search'],
  ['b then R r', 'break on words, kind:NAME or session:NAME; run back or on to it'],
  ['t l v w x', 'transcripts, next prompt, event, why, raw'],
  ['Home End', 'to the start, to the end'],
  ['j k Enter x', 'in lists: down, up, open, pick two to compare'],
  ['d', 'compare this run with another'],
  ['f F', 'fork here; what if'],
  ['N m', 'pin a note; mark this place, to see from another one what changed since'],
  ['y s', 'copy the link; send as a file'],
  ['m u i o', 'in the list of runs: only those with smells, failed, cut by a limit, not over'],
  ['.', 'in a comparison: the next difference'],
  ['?', 'this'],
];
addEventListener('popstate', () => {
  open.value = null;
});
addEventListener('keydown', event => {
  if (
    event.target.closest?.('input:not([type=range]),textarea,select,dialog') ||
    event.metaKey ||
    event.ctrlKey ||
    event.altKey
  )
    return;
  if (event.key === '/') {
    event.preventDefault();
    document.getElementById('search')?.focus();
  }
  if (event.key === '?')
    open.value = {
      title: 'Keys',
      body: html`
        <div class="keys">
          ${HELP.map(([keys, said]) => html`<span>${key(...keys.split(' '))}</span><span>${said}</span>`)}
        </div>
      `,
    };
});

// A link of the head is looked up anew when the address changes: only an absolute one stays true.
for (const one of document.querySelectorAll('link[rel=icon]'))
  one.href = new URL('static/icon.svg', new URL(BASE, location.href)).href;
render(html`<${App}/>`, document.getElementById('app'));
start();
