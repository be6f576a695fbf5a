// The list of runs: newest first, live, filters in the address, an outline of each.
import { html, signal, view } from './lib.js';
import { Badge, Failed, Loading, Outline, Smell, Tri } from './parts.js';
import { Choice, Chosen, More, Only, Text, chosen, given, listKeys, paged } from './paging.js';
import { go, href, link, queried, setQuery } from './state.js';
import { ENDS, clock, day, ended, failed, took, utc } from './words.js';

const NAMES = [
  'words',
  'agent',
  'session',
  'other',
  'person',
  'channel',
  'kind',
  'end',
  'since',
  'until',
  'failed',
  'unfinished',
  'smell',
];
const ONLY = { m: ['smell', 'true'], u: ['failed', 'true'], i: ['end', 'turn_limit'], o: ['unfinished', 'true'] };
const address = run => href('run', run.id);

export const Runs = view((_, self) => {
  const state = self.once(() => {
    const made = paged(self, 'runs', 'runs', () => given(NAMES));
    listKeys(self, made, address);
    return made;
  });
  const picked = (self.picked ??= signal([]));
  if (!self.heard) {
    self.heard = event => {
      if (event.target.closest?.('input,textarea,select,dialog') || event.metaKey || event.ctrlKey || event.altKey)
        return;
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
    addEventListener('keydown', self.heard);
    self.onEnd(() => removeEventListener('keydown', self.heard));
  }
  const rows = state.rows.value;
  const shown = chosen(NAMES);
  return html`
    <div class="head">
      <div class="grow ttl">
        <h1>Runs</h1>
        ${rows ? html`<span class="muted">${rows.length}${state.cursor.value ? ' newest' : ''}</span>` : null}
      </div>
    </div>
    <div class="filters" role="group" aria-label="Filters">
      <${Text} name="words" label="Words said" wide />
      <${Text} name="agent" label="Agent" />
      <${Text} name="session" label="With session" />
      <${Text} name="person" label="Person" />
      <${Text} name="since" label="Since, a time or #" />
      <${Choice} name="end" label="How it ended" options=${ENDS} />
      <${Choice}
        name="kind"
        label="Kind"
        options=${[
          ['exchange', 'exchanges'],
          ['spawn', 'spawns'],
          ['run', 'plain runs'],
        ]} />
      <${Only} name="failed">failed<//>
      <${Only} name="unfinished">not over<//>
      <${Only} name="smell"><${Tri}/>smells<//>
    </div>
    ${state.error.value
      ? html`<${Failed} error=${state.error.value} retry=${() => state.load()} />`
      : !rows
        ? html`<${Loading}/>`
        : rows.length
          ? html`<${Table} rows=${rows} sel=${state.sel.value} picked=${picked.value} /><${More} state=${state} />`
          : shown.length
            ? html`
                <div class="empty">
                  <h2>No run matches</h2>
                  <p class="muted">Take one of these away:</p>
                  <${Chosen} names=${NAMES} />
                </div>
              `
            : html`
                <div class="empty">
                  <h2>No runs in this log yet</h2>
                  <p class="muted">
                    A run begins when somebody writes to an agent. This page follows the log and shows it at once.
                  </p>
                  <pre>intersession send "And on Sunday?" --agent research</pre>
                  <p class="muted small">Or see how it looks: <code>intersession demo</code></p>
                </div>
              `}
  `;
});

const Table = ({ rows, sel, picked }) => {
  let today = '';
  return html`
    <table class="list">
      <caption class="vh">Runs, the newest first</caption>
      <colgroup>
        <col class="w-words" />
        <col class="w-outline" />
        <col class="w-end" />
        <col class="w-smells" />
        <col class="w-turns" />
        <col class="w-took" />
        <col class="w-began" />
      </colgroup>
      <thead>
        <tr>
          <th scope="col">First words, who took part</th>
          <th scope="col">Outline</th>
          <th scope="col">How it ended</th>
          <th scope="col">Smells</th>
          <th scope="col" class="num">Turns</th>
          <th scope="col" class="num">Took</th>
          <th scope="col" class="num">Began</th>
        </tr>
      </thead>
      <tbody>
        ${rows.map((run, place) => {
          const date = day(run.began);
          const fresh = date !== today;
          today = date;
          return html`
            ${fresh ? html`<tr class="day" key=${date}><th colspan="7" scope="rowgroup">${date}</th></tr>` : null}
            <${Row} key=${run.id} run=${run} sel=${place === sel} picked=${picked.includes(run.id)} />
          `;
        })}
      </tbody>
    </table>
  `;
};
const Row = ({ run, sel, picked }) => {
  const [first, rest] = ended(run);
  const bad = failed(run);
  const open = event => {
    if (!event.target.closest('a') && !getSelection().toString()) go(address(run));
  };
  return html`
    <tr class=${sel ? 'sel' : ''} aria-selected=${sel ? 'true' : null} onClick=${open}>
      <td>
        <a class="t" ...${link(address(run))}>${run.title || '(no words)'}</a>
        <span class="parts">
          ${picked ? html`<span class="chip on">picked</span>` : null}
          ${run.lanes.map(lane => html`<span class="who"><${Badge} lane=${lane} small /> ${lane.name}</span>`)}
        </span>
      </td>
      <td><${Outline} run=${run} /></td>
      <td>
        <span class=${bad ? 'bad' : ''}>
          ${run.state === 'open' ? html`<span class="dot on"></span>` : null}
          ${first}
        </span>
        <span class="why" title=${rest}>${rest}</span>
      </td>
      <td>
        <span class="chips">
          ${[...new Map((run.smells ?? []).map(smell => [smell.code, smell])).values()].map(
            smell => html`<${Smell} smell=${smell} />`,
          )}
        </span>
      </td>
      <td class="num">${run.turns ?? ''}</td>
      <td class="num">${took(run.tookMs)}</td>
      <td class="num mono">
        <time title=${utc(run.began)} datetime=${new Date(run.began).toISOString()}>${clock(run.began)}</time>
      </td>
    </tr>
  `;
};
