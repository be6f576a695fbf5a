// Begins: lets somebody in, draws the frame, and the page that the address names.
import './frame/focus.js';
import { effect, html, render, seen, signal, view } from './base/drawing.js';
import { capital } from './base/words.js';
import { about, begin, problem, unproven } from './asking/about.js';
import { go, href, link, route } from './asking/address.js';
import { BASE, admitted, askTabs, coming, erased, inside, live, login, out } from './asking/api.js';
import { Told, Window, open, say } from './parts/window.js';
import { Door, Opening } from './frame/door.js';
import { Status, Top } from './frame/frame.js';
import { Deliveries } from './pages/deliveries.js';
import { Diff } from './pages/diff.js';
import { Forks } from './pages/forks.js';
import { Hosts } from './pages/hosts.js';
import { Integrity } from './pages/integrity.js';
import { Log } from './pages/log.js';
import { Person } from './pages/person.js';
import { Run } from './pages/run.js';
import { Runs } from './pages/runs.js';
import { Schedules } from './pages/schedules.js';
import { Search } from './pages/search.js';
import { Session } from './pages/session.js';
import { Sessions } from './pages/sessions.js';
import { Settings } from './pages/settings.js';

/** @type {Record<string, View<{ id: string }>>} */
const PAGES = {
  runs: Runs,
  run: Run,
  sessions: Sessions,
  session: Session,
  log: Log,
  deliveries: Deliveries,
  person: Person,
  hosts: Hosts,
  integrity: Integrity,
  schedules: Schedules,
  settings: Settings,
  search: Search,
  diff: Diff,
  forks: Forks,
};

const entered = signal(false); // a word of the address was tried: only then is anything asked
const App = view(() => {
  if (!entered.value) return html`<${Opening}/>`;
  if (out.value) return html`<${Door}/>`;
  if (problem.value)
    return html`
      <main class="door">
        <h1>Intersession</h1>
        <p class="alert" role="alert">${problem.value}</p>
        <button class="btn" type="button" onClick=${start}>Try again</button>
      </main>
    `;
  if (coming.value && !about.value) return html`<${Opening}/>`;
  const { page, id } = route.value;
  const Page = PAGES[page];
  const below = ['lost', 'away'].includes(live.value.state);
  document.title = `${seen(capital(page))} · Intersession`;
  return html`
    ${about.value ? null : html`<${Opening}/>`}
    <div class=${`app ${about.value ? '' : 'waits'}`}>
      <a
        class="skip"
        href="#main"
        onClick=${event => {
          event.preventDefault();
          document.getElementById('main')?.focus();
        }}>
        To the content
      </a>
      <${Top}/>
      <main class="main" id="main" tabindex="-1">
        ${below
          ? html`
              <p class="note lost" role="status">
                Shown to #${live.value.head || about.value?.head}, the log may be further. Nothing is lost: it goes

                on when ${live.value.state === 'away' ? 'the log can be read' : 'the server answers'}.
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
          ? html`<${Page} key=${`${page}/${id}/${inside.fork}/${erased.value}`} id=${id} />`
          : html`
              <div class="empty">
                <h1>There is no page ${page}</h1>
                <a class="link" ...${link(href('runs'))}>All runs</a>
              </div>
            `}
      </main>
      <${Status}/>
      <${Window}/>
      <${Told}/>
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
      /* used already: this tab, or another one, may be in */
    }
  }
  await askTabs();
  if (!location.pathname.startsWith(BASE) || location.pathname === BASE) go(href('runs'), { replace: true });
  entered.value = true;
  try {
    await begin();
  } catch (error) {
    if (!out.value) problem.value = /** @type {Error} */ (error).message;
  }
}

addEventListener('popstate', () => {
  open.value = null;
});
effect(() => {
  if (admitted.value) start();
});
// What a window has begun with may be words that are erased.
effect(() => {
  if (!erased.value) return;
  open.value = null;
  unproven();
  say('Words were erased from the log: this page was read anew');
  const main = document.getElementById('main');
  if (main?.contains(document.activeElement)) queueMicrotask(() => main.focus());
});

// A link of the head is looked up anew when the address changes: only an absolute one stays true.
for (const one of document.querySelectorAll('link[rel=icon]'))
  /** @type {HTMLLinkElement} */ (one).href = new URL('icon.svg', import.meta.url).href;
render(html`<${App}/>`, /** @type {HTMLElement} */ (document.getElementById('app')));
start();
