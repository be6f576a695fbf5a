// The forks of a log as a tree: where each was cut, what is otherwise in it, how it came out;
// each can be opened, compared, deleted.
import { effect, html, signal, view } from '../base/drawing.js';
import { capital, counted } from '../base/words.js';
import { about, editName, endName } from '../asking/about.js';
import { href, link, queried, route, setQuery } from '../asking/address.js';
import { ask, forked, tell } from '../asking/api.js';
import { Failed, Loading } from '../parts/answers.js';
import { Icon } from '../parts/icons.js';
import { Moment, Position } from '../parts/moments.js';
import { copy, open, say } from '../parts/window.js';
import { Listed } from '../lists/table.js';
import { can } from '../deeds/rights.js';

/** @param {string} text */
const shell = text => `'${String(text).replaceAll("'", "'\\''")}'`;
// An agent of the host that answers for itself is nothing otherwise.
/** @param {Answers.ForkEdit[]} edits */
const notable = edits => edits.filter(({ kind, key, value }) => kind !== 'agent' || key !== value);
/** @type {Record<string, string>} */
const STATES = { closed: '', open: 'goes on', running: 'goes on', diverged: '' };
/** @param {Answers.OutcomeAnswer} one */
const outcome = one =>
  [
    STATES[one.state] ?? one.state,
    one.turns === null || one.turns === undefined ? '' : counted(one.turns, 'turn'),
    one.end ? endName(one.end) : '',
    one.close ? endName(one.close) : '',
  ]
    .filter(Boolean)
    .join(', ')
    .replaceAll('_', ' ');
// Where a fork left its recording: what differs there, as it was and as it is.
/** @param {Record<string, any>} left */
const partsOf = left =>
  left.differs
    .map(
      (/** @type {Differs} */ one) =>
        `${one.part}\n  then: ${one.then ?? 'nothing'}\n  now: ${one.now ?? 'nothing'}`,
    )
    .join('\n');
// What is said of the log behind the cut is left to its number.
/** @param {string} text */
const wordsOf = text =>
  text
    .replace(/(, at #\d+)?, and [\d,]+ events? of the log later$/, '')
    .replace(/^after #\d+, /, '')
    .replace(/[0-9a-f]{8}-[0-9a-f-]{27}/, id => id.slice(0, 8));
const COLUMNS = [
  ['w-fork', 'Fork of run'],
  ['w-cut', 'Cut'],
  ['w-words', 'What is otherwise'],
  ['w-outcome', 'How it came out'],
  ['w-deeds', 'Do'],
];

// A fork of a fork stands below the one that it was made of.
/** @typedef {Answers.ForkAnswer & { depth: number }} Hung */
/** @type {(forks: Answers.ForkAnswer[], parent?: string, depth?: number) => Hung[]} */
const tree = (forks, parent, depth = 0) =>
  forks
    .filter(one => (depth ? one.parent === parent : !forks.some(other => other.id === one.parent)))
    .flatMap(one => [{ ...one, depth }, ...tree(forks, one.id, depth + 1)]);

/**
 * @returns {{
 *   found: Signal<Answers.ForksAnswer | null>,
 *   error: Signal<Error | null>,
 *   load: (run: string | null) => unknown,
 * }}
 */
const nothingYet = () => ({ found: signal(null), error: signal(null), load: () => null });
export const Forks = view((_, self) => {
  const state = self.once(() => {
    const made = nothingYet();
    made.load = run =>
      ask('forks', { run }).then(
        found => {
          made.found.value = found;
          made.error.value = null;
        },
        error => {
          made.error.value = error;
        },
      );
    /** @type {{ run: string | null } | null} */
    let known = null;
    self.onEnd(
      effect(() => {
        const run = route.value.query.get('run');
        const isListed = made.found.peek()?.state === forked.value || !forked.value;
        if (run === known?.run && isListed) return;
        known = { run };
        made.load(run);
      }),
    );
    return made;
  });
  const found = state.found.value;
  const again = () => state.load(queried('run'));
  if (state.error.value) return html`<${Failed} title="Forks" error=${state.error.value} retry=${again} />`;
  if (!found) return html`<${Loading}/>`;
  /** @param {Answers.ForkAnswer} fork */
  const remove = fork => {
    open.value = {
      title: 'Delete this fork',
      button: 'Delete it',
      done: async () => {
        await tell('api/do', { method: 'forks.remove', params: { fork: fork.id } });
        say('The fork is deleted');
        again();
      },
      body: html`
        <p>Fork ${fork.id.slice(0, 8)} and its file are deleted. The log that it was made of stays as it is.</p>
      `,
    };
  };
  return html`
    <div class="head">
      <div class="grow ttl">
        <h1>Forks</h1>
        <span class="muted">
          ${found.forks.length}
          ${found.from
            ? `, this log is itself one of ${found.from.logId.slice(0, 8)} at #${found.from.position}`
            : ''}
        </span>
      </div>
      ${queried('run')
        ? html`
            <button type="button" class="chip on" onClick=${() => setQuery({ run: '' })}>
              of run ${queried('run').slice(0, 8)} ×
            </button>
          `
        : null}
    </div>
    ${found.forks.length
      ? html`
          <${Listed} caption="Forks, the newest first, forks of forks below them" columns=${COLUMNS}>
            ${tree(found.forks).map(fork => html`<${Row} key=${fork.id} fork=${fork} remove=${remove} />`)}
          <//>
        `
      : html`
          <div class="empty">
            <h2>No forks of ${queried('run') ? 'this run' : 'this log'} yet</h2>
            <p class="muted">
              A fork is a log of its own that begins as this one did, up to a place. The recorded run is not
              touched, and nothing of a fork reaches anybody. Open a run, go to a place, then <b>Fork here</b>; or:
            </p>
            <pre>
              intersession fork RUN --at RUN@turn:2${about.value?.store
                ? ` --store ${shell(about.value?.store)}`
                : ''}
            </pre>
          </div>
        `}
  `;
});

/** @param {{ fork: Answers.ForkAnswer & { depth: number }, remove: (fork: Answers.ForkAnswer) => void }} given */
const Row = ({ fork, remove }) => html`
  <tr>
    <td class=${`all deep-${Math.min(fork.depth, 4)}`}>
      ${fork.problem
        ? html`<span class="mono">${fork.id.slice(0, 8)}</span>`
        : html`
            <a class="t" title=${fork.title} ...${link(href('run', fork.outcome?.run, { fork: fork.id }))}>
              ${fork.depth ? '└ ' : ''}
              ${fork.title || html`<span class="mono">${fork.id.slice(0, 8)}</span>`}
            </a>
            <span class="why">
              <span class="mono">${fork.id.slice(0, 8)}</span> of <span class="mono">${fork.run?.slice(0, 8)}</span>,
              by ${fork.by}, <${Moment} ms=${fork.timeMs} />
            </span>
          `}
    </td>
    ${fork.problem ? html`<td colspan="3" class="bad">${fork.problem}</td>` : html`<${What} fork=${fork} />`}
    <td>
      <span class="acts">
        ${fork.problem
          ? null
          : html`
              <a class="btn" ...${link(href('diff', '', { a: fork.run, b: fork.outcome?.run, other: fork.id }))}>
                Compare
              </a>
            `}
        <button
          type="button"
          class="btn"
          title="Copy the command that opens it alone"
          onClick=${() => copy(`intersession debug ${shell(fork.file)}`, 'Command')}>
          CLI
        </button>
        ${can('forks.remove')
          ? html`
              <button
                type="button"
                class="btn"
                aria-label=${`Delete fork ${fork.id.slice(0, 8)}`}
                title="Delete"
                onClick=${() => remove(fork)}>
                <${Icon} name="bin" />
              </button>
            `
          : null}
      </span>
    </td>
  </tr>
`;
/** @param {{ fork: MadeFork, edits?: Answers.ForkEdit[] }} given */
const What = ({ fork, edits = notable(fork.edits) }) => html`
  <td class="all" title=${fork.place.text}>
    <span class="two">${capital(wordsOf(fork.place.text))}</span>
    <span class="why">cut after <${Position} at=${fork.place.position} /></span>
  </td>
  <td class="all">
    ${edits.length
      ? edits.map(edit => html`<span class="edit" title=${editName(edit)}>${editName(edit)}</span>`)
      : 'nothing'}
  </td>
  <td class="all">
    ${capital(outcome(fork.outcome))}
    ${fork.outcome.left
      ? html`<span class="why" title=${partsOf(fork.outcome.left)}>${capital(fork.outcome.left.text)}</span>`
      : null}
  </td>
`;
