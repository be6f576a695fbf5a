// The scheduled jobs: when each runs, how it came out, and having one run now, pause or go on.
import { html, view } from '../base/drawing.js';
import { capital, short } from '../base/words.js';
import { href, link } from '../asking/address.js';
import { Moment } from '../parts/moments.js';
import { paged } from '../lists/paging.js';
import { Body, Listed, Title } from '../lists/table.js';
import { can, done } from '../deeds/rights.js';

const COLUMNS = [
  ['w-stream', 'Job'],
  ['w-words', 'When'],
  ['w-stream', 'Next', 'num'],
  ['w-moment', 'Last', 'num'],
  ['w-end', 'What became of it'],
  ['w-stream', 'Run it'],
];

const FAILED = ['error', 'timeout', 'skipped', 'aborted', 'interrupted'];

/** @type {(schedule: Record<string, any>) => string} */
const when = ({ kind, expr, tz, everyMs, at }) => {
  if (kind === 'cron') return `${expr} ${tz ?? 'UTC'}`;
  return kind === 'every' ? `every ${everyMs / 1000} s` : `at ${at}`;
};

export const Schedules = view((_, self) => {
  const state = self.once(() => paged(self, 'schedules', 'jobs', () => ({})));
  return html`
    <${Title} name="Schedules" state=${state} />
    <${Body} state=${state} what="job" names=${[]} empty="No job is configured: cron.jobs has them">
      ${(/** @type {Record<string, any>[]} */ rows) => html`
        <${Listed} caption="Scheduled jobs" columns=${COLUMNS}>
          ${rows.map(row => html`<${Row} key=${row.id} row=${row} state=${state} />`)}
        <//>
      `}
    <//>
  `;
});
/** @param {{ row: Record<string, any>, state: Paged }} given */
const Row = ({ row, state }) => {
  const { nextRunAtMs, lastRunAtMs, lastStatus, lastError, lastRunId } = row.state;
  const after = () => state.renew();
  return html`
    <tr>
      <th scope="row">
        ${row.id}
        ${row.name ? html`<span class="why">${row.name}</span>` : null}
      </th>
      <td>
        <span class="mono">${when(row.schedule)}</span>
        <span class="why">${row.sessionKey ? short(row.sessionKey) : 'its agent is not here'}</span>
      </td>
      <td class="num mono">${nextRunAtMs ? html`<${Moment} ms=${nextRunAtMs} />` : paused(row)}</td>
      <td class="num mono">${lastRunAtMs ? html`<${Moment} ms=${lastRunAtMs} />` : ''}</td>
      <td class=${FAILED.includes(lastStatus) ? 'bad' : ''}>
        ${lastRunId
          ? html`<a ...${link(href('run', lastRunId))}>${capital(lastStatus)}</a>`
          : capital(lastStatus ?? '')}
        ${lastError ? html`<span class="why" title=${lastError}>${lastError}</span>` : null}
      </td>
      <td>
        ${can('cron.run')
          ? html`
              <button
                class="btn"
                type="button"
                onClick=${() => done('cron.run', { jobId: row.id }, `${row.id} runs`, after)}>
                Run now
              </button>
            `
          : null}
        ${can('cron.update')
          ? html`
              <button
                class="btn"
                type="button"
                onClick=${() =>
                  done(
                    'cron.update',
                    { jobId: row.id, patch: { enabled: row.paused } },
                    row.paused ? `${row.id} goes on` : `${row.id} is paused`,
                    after,
                  )}>
                ${row.paused ? 'Resume' : 'Pause'}
              </button>
            `
          : null}
      </td>
    </tr>
  `;
};
/** @param {Record<string, any>} row */
const paused = row => {
  if (row.paused) return 'paused';
  return row.enabled ? '' : 'disabled';
};
