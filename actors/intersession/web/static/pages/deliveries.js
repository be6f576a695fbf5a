// Texts that went outside, or should have: what became of each, and another try.
import { html, view } from '../base/drawing.js';
import { capital, short } from '../base/words.js';
import { about, deliveryName } from '../asking/about.js';
import { href, link } from '../asking/address.js';
import { Moment, Position } from '../parts/moments.js';
import { Filters, Only, Text, given } from '../lists/filters.js';
import { paged } from '../lists/paging.js';
import { Body, Listed, Title } from '../lists/table.js';
import { RetryButton, isLost } from '../deeds/retrying.js';

const NAMES = ['words', 'to', 'person', 'failed', 'pending', 'session', 'channel', 'since'];
const COLUMNS = [
  ['w-pos', '#'],
  ['w-stream', 'From, to'],
  ['w-end', 'What became of it'],
  ['w-words', 'Text'],
  ['w-turns', 'Tries', 'num'],
  ['w-moment', 'Decided', 'num'],
];

export const Deliveries = view((_, self) => {
  const state = self.once(() => paged(self, 'deliveries', 'deliveries', () => given(NAMES)));
  return html`
    <${Title} name="Deliveries and failures" state=${state} />
    <${Filters} names=${NAMES}>
      <${Text} name="words" label="Words" wide />
      <${Text} name="to" label="To" />
      <${Text} name="person" label="Person" />
      <${Text} name="session" label="Session" />
      <${Text} name="channel" label="Channel" />
      <${Text} name="since" label="Since, a time or #" />
      <${Only} name="failed">did not arrive<//>
      <${Only} name="pending">still to come<//>
    <//>
    <${Body} state=${state} what="text" names=${NAMES} empty="No text went outside yet">
      ${(/** @type {Record<string, any>[]} */ rows) => html`
        <${Listed} caption="Texts that went outside, or should have, the newest first" columns=${COLUMNS}>
          ${rows.map(row => html`<${Row} key=${row.id} row=${row} state=${state} />`)}
        <//>
      `}
    <//>
  `;
});
/** @param {{ row: Record<string, any> }} given */
const Chat = ({ row }) => {
  const place = `${row.channel}${row.to ? `:${row.to}` : ''}`;
  const isLinked = about.value?.isOperator && row.to;
  return isLinked ? html`<a class="link" ...${link(href('person', place))}>${place}</a>` : place;
};
/** @param {{ row: Record<string, any>, state: Paged }} given */
const Row = ({ row, state }) => html`
  <tr>
    <td><${Position} at=${row.position} /></td>
    <td>
      ${short(row.sessionKey)}
      <span class="why"><${Chat} row=${row} /></span>
    </td>
    <td class=${isLost(row) ? 'bad' : ''}>
      ${capital(deliveryName(row.state))}
      ${row.error ? html`<span class="why" title=${row.error}>${row.error}</span>` : null}
      ${row.waitsFor ? html`<span class="why">behind an earlier text to the same chat</span>` : null}
      <${RetryButton} row=${row} after=${() => state.renew()} />
    </td>
    <td class="all first">
      ${row.runId
        ? html`<a class="t said" ...${link(href('run', row.runId, { at: row.position }))}>${row.text}</a>`
        : html`<span class="t said">${row.text}</span>`}
    </td>
    <td class="num" data-unit=${row.attempts === 1 ? 'try' : 'tries'}>${row.attempts}</td>
    <td class="num mono">${row.decidedAt ? html`<${Moment} ms=${row.decidedAt} />` : ''}</td>
  </tr>
`;
