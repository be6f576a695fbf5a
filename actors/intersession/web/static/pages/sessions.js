// The list of sessions, the most recently active first, as of now or of a place.
import { html, view } from '../base/drawing.js';
import { short } from '../base/words.js';
import { go, href, link, queried } from '../asking/address.js';
import { Moment } from '../parts/moments.js';
import { Badge, laneOf } from '../parts/speakers.js';
import { Filters, Text, given } from '../lists/filters.js';
import { listKeys, paged } from '../lists/paging.js';
import { Body, Listed, Title } from '../lists/table.js';

const NAMES = ['search', 'agent', 'at', 'kinds'];
const COLUMNS = [
  ['w-key', 'Session'],
  ['w-words', 'Last said'],
  ['w-small', 'Channel'],
  ['w-state', 'State'],
  ['w-took', 'Tokens', 'num'],
  ['w-moment', 'Updated', 'num'],
];
/** @param {Record<string, any>} row */
const address = row => href('session', row.canonical, { at: queried('at') });

export const Sessions = view((_, self) => {
  const state = self.once(() => {
    const made = paged(self, 'sessions', 'sessions', () => given(NAMES));
    listKeys(self, made, address);
    return made;
  });
  const asOf = state.rows.value ? `, as of #${state.answer.asOf}` : '';
  return html`
    <${Title} name="Sessions" state=${state} more=${asOf} />
    <${Filters} names=${NAMES}>
      <${Text} name="search" label="Key, label or name" wide />
      <${Text} name="agent" label="Agent" />
      <${Text} name="at" label="As of, a time or #" />
    <//>
    <${Body} state=${state} what="session" names=${NAMES} empty="No sessions in this log yet">
      ${(/** @type {Record<string, any>[]} */ rows) => html`
        <${Listed} caption="Sessions, the most recently active first" columns=${COLUMNS}>
          ${rows.map(
            (row, place) => html`<${Row} key=${row.canonical} row=${row} sel=${place === state.sel.value} />`,
          )}
        <//>
      `}
    <//>
  `;
});
/** @param {{ row: Record<string, any>, sel: boolean }} given */
const Row = ({ row, sel }) => {
  /** @param {Happening} event */
  const open = event => {
    if (!event.target.closest('a')) go(address(row));
  };
  return html`
    <tr class=${sel ? 'sel' : ''} onClick=${open}>
      <td class="all">
        <span class="who">
          <${Badge} lane=${laneOf(row.canonical, row.label)} />
          <a class="t" ...${link(address(row))}>${row.label ?? row.displayName ?? short(row.canonical)}</a>
        </span>
        <span class="why mono">${row.canonical}</span>
      </td>
      <td class="all"><span class="why">${lastSaid(row)}</span></td>
      <td>${row.channel === 'unknown' ? '' : row.channel}</td>
      <td>
        ${row.runState}
        ${row.abortedLastRun ? html`<span class="why bad">last run aborted</span>` : null}
      </td>
      <td class="num" data-unit="tokens">
        ${row.totalTokens?.toLocaleString('en-GB') ?? ''}
        ${row.filled >= 80 ? html`<span class="why bad">${fullness(row.filled)}</span>` : null}
      </td>
      <td class="num mono"><${Moment} ms=${row.updatedAt} /></td>
    </tr>
  `;
};
/** @param {number} filled */
const fullness = filled => (filled > 100 ? 'window full: the oldest is left out' : `window ${filled} % full`);
/** @param {Record<string, any>} row */
const lastSaid = row => {
  const last = row.messages?.at(-1);
  if (!last) return '';
  if (typeof last.content === 'string') return last.content;
  return (last.content ?? []).map((/** @type {Block} */ block) => block.text ?? block.name ?? '').join(' ');
};
