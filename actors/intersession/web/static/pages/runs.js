// The list of runs: newest first, live, filters in the address, an outline of each.
import { html, signal, view } from '../base/drawing.js';
import { clock, day, ended, lasted, took, utc } from '../base/words.js';
import { about } from '../asking/about.js';
import { go, href, link, queried, setQuery } from '../asking/address.js';
import { coloured } from '../parts/hues.js';
import { Tri } from '../parts/icons.js';
import { Outline } from '../parts/outline.js';
import { Badge } from '../parts/speakers.js';
import { Smell } from '../parts/texts.js';
import { isForPage } from '../parts/window.js';
import { Choice, Filters, Only, Text, given } from '../lists/filters.js';
import { listKeys, paged } from '../lists/paging.js';
import { Body, Listed, Title } from '../lists/table.js';

const NAMES = [
  'words',
  'agent',
  'session',
  'with',
  'person',
  'channel',
  'kind',
  'end',
  'since',
  'until',
  'failed',
  'open',
  'smelling',
];
const KINDS = [
  ['exchange', 'exchanges'],
  ['spawn', 'spawns'],
  ['run', 'plain runs'],
];
const COLUMNS = [
  ['w-words', 'First words, who took part'],
  ['w-outline', 'Outline'],
  ['w-end', 'How it ended'],
  ['w-smells', 'Smells'],
  ['w-turns', 'Turns', 'num'],
  ['w-took', 'Took', 'num'],
  ['w-began', 'Began', 'num'],
];
/** @type {Record<string, [string, string]>} */
const ONLY = { m: ['smelling', 'true'], u: ['failed', 'true'], i: ['end', 'turn_limit'], o: ['open', 'true'] };
/** @param {Answers.ListedRun} run */
const address = run => href('run', run.id);

/** @type {() => Signal<string[]>} */
const noneYet = () => signal([]);
export const Runs = view((_, self) => {
  const { state, picked } = self.once(() => {
    const state = paged(self, 'runs', 'runs', () => given(NAMES));
    listKeys(self, state, address);
    const picked = noneYet();
    /** @param {KeyboardEvent} event */
    const heard = event => {
      if (!isForPage(event)) return;
      const only = ONLY[event.key];
      if (only) {
        const [name, value] = only;
        setQuery({ [name]: queried(name) === value ? '' : value });
        return;
      }
      if (event.key !== 'x') return;
      const run = state.rows.peek()?.[state.sel.peek()];
      if (!run) return;
      picked.value = [...picked.peek().filter(id => id !== run.id), run.id].slice(-2);
      if (picked.peek().length === 2) go(href('diff', '', { a: picked.peek()[0], b: picked.peek()[1] }));
    };
    addEventListener('keydown', heard);
    self.onEnd(() => removeEventListener('keydown', heard));
    return { state, picked };
  });
  return html`
    <${Title} name="Runs" state=${state} />
    <${Filters} names=${NAMES}>
      <${Text} name="words" label="Words said" wide />
      <${Text} name="agent" label="Agent" />
      <${Text} name="session" label="With session" />
      <${Text} name="person" label="Person" />
      <${Text} name="since" label="Since, a time or #" />
      <${Choice} name="end" label="How it ended" options=${Object.entries(about.value?.ends ?? {})} />
      <${Choice} name="kind" label="Kind" options=${KINDS} />
      <span class="onlys">
        <${Only} name="failed">failed<//>
        <${Only} name="open">not over<//>
        <${Only} name="smelling"><${Tri}/>smells<//>
      </span>
    <//>
    <${Body} state=${state} what="run" names=${NAMES} empty=${html`<${None} state=${state} />`}>
      ${(/** @type {Answers.ListedRun[]} */ rows) => html`
        <${Listed} caption="Runs, the newest first" columns=${COLUMNS} look="runs">
          ${rows.flatMap((run, place) => [
            isOtherDay(run, rows[place - 1])
              ? html`
                  <tr class="day" key=${day(run.began)}>
                    <th colspan=${COLUMNS.length} scope="rowgroup">${day(run.began)}</th>
                  </tr>
                `
              : null,
            html`
              <${Row}
                key=${run.id}
                run=${run}
                sel=${place === state.sel.value}
                picked=${picked.value.includes(run.id)} />
            `,
          ])}
        <//>
      `}
    <//>
  `;
});
/** @param {Answers.ListedRun} run @param {Answers.ListedRun} [before] */
const isOtherDay = (run, before) => !before || day(run.began) !== day(before.began);
/** @param {{ state: Paged }} given */
const None = ({ state }) =>
  state.answer?.imported ? html`<${NoneImported}/>` : html`<${NoneYet}/>`;
const NoneImported = () => html`
  <div class="empty">
    <h2>Nobody asked anybody else in what was imported</h2>
    <p class="muted">
      It has no exchange and no spawn, and other runs are not in a record of OpenClaw. What was said is with
      the <a class="link" ...${link(href('sessions'))}>sessions</a>.
    </p>
  </div>
`;
const NoneYet = () => html`
  <div class="empty">
    <h2>No runs in this log yet</h2>
    <p class="muted">
      A run begins when somebody writes to an agent. This page follows the log and shows it at once.
    </p>
    <pre>intersession send "And on Sunday?" --agent research</pre>
    <p class="muted small">Or see how it looks: <code>intersession demo</code></p>
  </div>
`;

const MOST_NAMED = 8; // of who took part; of one more, or of fewer, all
/** @param {{ run: Answers.ListedRun, sel: boolean, picked: boolean }} given */
const Row = ({ run: found, sel, picked }) => {
  const run = { ...found, lanes: coloured(found.lanes) };
  const left = run.lanes.length > MOST_NAMED + 1 ? run.lanes.length - MOST_NAMED : 0;
  const [first, rest] = ended(run);
  const smells = [...new Map((run.smells ?? []).map(smell => [smell.code, smell])).values()];
  /** @param {Happening} event */
  const open = event => {
    if (!event.target.closest('a') && !String(getSelection())) go(address(run));
  };
  return html`
    <tr class=${sel ? 'sel' : ''} aria-selected=${sel ? 'true' : null} onClick=${open}>
      <td class="all">
        <a class="t" ...${link(address(run))}>${run.title || '(no words)'}</a>
        <span class="parts" title=${run.lanes.map(lane => lane.name).join(', ')}>
          ${picked ? html`<span class="chip on">picked</span>` : null}
          ${run.lanes
            .slice(0, left ? MOST_NAMED : undefined)
            .map(lane => html`<span class="who"><${Badge} lane=${lane} small /> ${lane.name}</span>`)}
          ${left ? html`<span>and ${left} more</span>` : null}
        </span>
      </td>
      <td><${Outline} run=${run} /></td>
      <td class="how">
        <span class=${run.failed ? 'bad' : ''}>
          ${run.state === 'open' ? html`<span class="dot on"></span>` : null}
          ${first}
        </span>
        ${rest ? html`<span class="why" title=${rest}>${rest}</span>` : null}
        ${run.waits?.sinceMs
          ? html`<span class="why" title=${run.waits.text}>since ${clock(run.waits.sinceMs)}</span>`
          : null}
      </td>
      <td>
        ${smells.length
          ? html`<span class="chips">${smells.map(smell => html`<${Smell} smell=${smell} />`)}</span>`
          : null}
      </td>
      <td class="num" data-unit=${run.turns === 1 ? 'turn' : 'turns'}>${run.turns ?? ''}</td>
      <td class="num" title=${lasted(run)}>
        ${took(run.tookMs)}
        ${run.state === 'open' && !run.heldSince ? html`<span class="why">so far</span>` : null}
        ${run.heldMs ? html`<span class="why">held ${took(run.heldMs)}</span>` : null}
      </td>
      <td class="num mono">
        <time title=${utc(run.began)} datetime=${new Date(run.began).toISOString()}>${clock(run.began)}</time>
      </td>
    </tr>
  `;
};
