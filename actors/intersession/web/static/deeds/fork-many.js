// The same fork made again and again: how often it came out how, a row for what is alike.
import { html, signal, view } from '../base/drawing.js';
import { capital, counted, took } from '../base/words.js';
import { endName } from '../asking/about.js';
import { href, link } from '../asking/address.js';
import { tell } from '../asking/api.js';
import { open, say } from '../parts/window.js';

/** @param {ForkMade} made */
const alike = made => JSON.stringify([made.state, made.outcome?.end, made.outcome?.turns, made.outcome?.announced]);
/** @param {ForkMade[]} all @param {string} name */
const mean = (all, name) => Math.round(all.reduce((sum, one) => sum + (one.outcome?.[name] ?? 0), 0) / all.length);

// Rows of a table of outcomes, the most frequent first; tokens and time are the mean of those that are alike.
/** @param {ForkMade[]} made */
export function outcomes(made) {
  /** @type {Map<string, ForkMade[]>} */
  const groups = new Map();
  for (const one of made) groups.set(alike(one), [...(groups.get(alike(one)) ?? []), one]);
  return [...groups.values()]
    .sort((one, two) => two.length - one.length)
    .map(all => ({
      count: all.length,
      ended: endOf(all[0]),
      turns: all[0].outcome?.turns ?? 0,
      tokens: mean(all, 'tokens'),
      took: mean(all, 'durationMs'),
      announced: all[0].outcome?.announced ?? '',
      forks: all,
    }));
}
/** @param {ForkMade} one */
const endOf = one => {
  if (one.state === 'diverged') return `Left the recording ${one.divergence?.place?.text ?? ''}`;
  if (one.missing?.length) return `Waits for ${one.missing.join(', ')}`;
  return one.outcome?.end ? capital(endName(one.outcome.end)) : capital(one.state ?? 'made');
};

/** @param {Record<string, any>} params @param {number} times */
export async function forkedOften(params, times) {
  /** @type {Signal<ForkMade[]>} */
  const made = signal([]);
  /** @type {Signal<Error | null>} */
  const failed = signal(null);
  const stopped = signal(false);
  const shown = {
    title: times === 1 ? 'The same fork, once more' : `The same fork, ${times} times`,
    body: html`<${Outcomes} made=${made} failed=${failed} stopped=${stopped} times=${times} run=${params.run} />`,
  };
  open.value = shown;
  while (made.peek().length < times && open.peek() === shown) {
    try {
      const { result } = await tell('api/do', { method: 'forks.make', params });
      made.value = [...made.peek(), result];
    } catch (error) {
      failed.value = /** @type {Error} */ (error);
      break;
    }
  }
  stopped.value = true;
  say(`${counted(made.peek().length, 'fork')} made`);
}

/**
 * @type {View<{
 *   made: Signal<ForkMade[]>,
 *   failed: Signal<Error | null>,
 *   stopped: Signal<boolean>,
 *   times: number,
 *   run: string,
 * }>}
 */
const Outcomes = view(({ made, failed, stopped, times, run }) => {
  const done = made.value.length;
  return html`
    <p role="status">
      ${stopped.value ? `${counted(done, 'fork')} made.` : `${done} of ${times} made. Closing this stops it.`}
    </p>
    ${stopped.value ? null : html`<progress aria-label="Forks made" max=${times} value=${done} />`}
    ${failed.value ? html`<p class="alert" role="alert">${failed.value.message}</p>` : null}
    ${done ? html`<${Table} rows=${outcomes(made.value)} run=${run} />` : null}
  `;
});
/** @param {{ rows: ReturnType<typeof outcomes>, run: string }} given */
const Table = ({ rows, run }) => html`
  <div class="sideways" tabindex="0" role="region" aria-label="How they came out">
    <table class="outcomes">
      <caption class="vh">How often the forks came out how</caption>
      <thead>
        <tr>
          <th scope="col" class="num">Times</th>
          <th scope="col">How it ended</th>
          <th scope="col" class="num">Turns</th>
          <th scope="col" class="num">Tokens</th>
          <th scope="col" class="num">Took</th>
          <th scope="col">Would announce</th>
          <th scope="col">Compare</th>
        </tr>
      </thead>
      <tbody>${rows.map(row => html`<${Row} row=${row} run=${run} />`)}</tbody>
    </table>
  </div>
`;
/** @param {{ row: ReturnType<typeof outcomes>[number], run: string }} given */
const Row = ({ row, run }) => {
  const first = row.forks[0];
  return html`
    <tr>
      <td class="num">${row.count}</td>
      <td>${row.ended}</td>
      <td class="num">${row.turns}</td>
      <td class="num">${row.tokens.toLocaleString('en-GB')}</td>
      <td class="num">${took(row.took)}</td>
      <td class="said">${row.announced}</td>
      <td><a class="link mono" ...${toCompare(run, first)}>${first.fork.slice(0, 8)}</a></td>
    </tr>
  `;
};
/** @param {string} run @param {ForkMade} made */
function toCompare(run, made) {
  const to = link(href('diff', '', { a: run, b: made.run, other: made.fork }));
  /** @param {Happening} event */
  const onClick = event => {
    to.onClick(event);
    if (event.defaultPrevented) open.value = null;
  };
  return { ...to, onClick };
}
