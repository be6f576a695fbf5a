// The frame of every page: the bar above, with pages, search and proof, and the line at the foot.
import { html, signal, view } from '../base/drawing.js';
import { clock } from '../base/words.js';
import { about } from '../asking/about.js';
import { go, href, link, queried, route } from '../asking/address.js';
import { leave, live, tell } from '../asking/api.js';
import { Icon } from '../parts/icons.js';
import { KEYS } from './keys.js';
import { ProofBadge } from './proof-badge.js';

const NAV = [
  ['runs', 'Runs'],
  ['sessions', 'Sessions'],
  ['log', 'Log'],
  ['deliveries', 'Deliveries'],
  ['schedules', 'Schedules'],
  ['forks', 'Forks'],
  ['hosts', 'Hosts'],
  ['integrity', 'Integrity'],
  ['settings', 'Settings'],
];
/** @type {Record<string, string>} */
const WITHIN = { run: 'runs', diff: 'runs', session: 'sessions', person: 'deliveries' };

const OPERATORS = new Set(['forks', 'hosts', 'integrity', 'schedules', 'settings']);

export const Top = view((_, self) => {
  // On a narrow screen the pages stand behind one button that says which one this is.
  const unfolded = self.once(() => signal(false));
  const page = WITHIN[route.value.page] ?? route.value.page;
  const pages = NAV.filter(([name]) => about.value?.isOperator || !OPERATORS.has(name));
  const fold = () => {
    unfolded.value = false;
  };
  const toggle = () => {
    unfolded.value = !unfolded.value;
  };
  /** @param {Happening} event */
  const heard = event => {
    if (event.key !== 'Escape' || !unfolded.value) return;
    fold();
    document.getElementById('menu')?.focus();
  };
  /** @param {Happening} event */
  const find = event => {
    event.preventDefault();
    const words = String(new FormData(event.target).get('words') ?? '').trim();
    if (words) {
      go(href('search', '', { words }));
      document.getElementById('main')?.focus();
    }
  };
  return html`
    <header class="top" onKeyDown=${heard}>
      <a class="brand" ...${link(href('runs'))}>Intersession</a>
      <button
        id="menu"
        class="btn menu"
        type="button"
        aria-expanded=${String(unfolded.value)}
        aria-controls="pages"
        onClick=${toggle}>
        <${Icon} name="menu" /><span class="vh">Pages: </span>${NAV.find(([name]) => name === page)?.[1] ?? 'Search'}
      </button>
      <nav id="pages" class=${`nav ${unfolded.value ? 'open' : ''}`} aria-label="Pages" onClick=${fold}>
        ${pages.map(
          ([name, said]) => html`<a ...${link(href(name))} aria-current=${page === name ? 'page' : null}>${said}</a>`,
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
      <${ProofBadge}/>
      ${about.value && !about.value?.readOnly ? html`<${Leave}/>` : null}
    </header>
  `;
});
const Leave = () => {
  const leaving = async () => {
    await tell('logout');
    leave();
  };
  return html`
    <button class="btn leave" type="button" aria-label="Leave" title="Leave" onClick=${leaving}>
      <${Icon} name="out" />
    </button>
  `;
};

export const Status = view(() => {
  const { state, head, since, why } = live.value;
  const log = about.value;
  return html`
    <footer class="status">
      <span>${KEYS[route.value.page] ?? KEYS.all}</span>
      <span class="grow"></span>
      <span>
        <span class=${`dot ${state === 'live' ? 'on' : state}`}></span>
        ${state === 'lost'
          ? `no answer since ${clock(since)}, trying again`
          : state === 'away'
            ? html`<span title=${why}>the log can't be read since ${clock(since)}, trying again</span>`
            : `live${head ? `, #${head}` : ''}`}
      </span>
      ${log ? html`<span>log ${log.logId.slice(0, 8)}${log.readOnly ? ', read only' : ''}</span>` : null}
    </footer>
  `;
});
