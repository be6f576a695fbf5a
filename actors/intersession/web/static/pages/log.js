// The log, event by event, newest first; beside it all of the one that is chosen.
import { createRef, html, signal, view } from '../base/drawing.js';
import { ofKind, short } from '../base/words.js';
import { queried, setQuery } from '../asking/address.js';
import { ask } from '../asking/api.js';
import { Failed } from '../parts/answers.js';
import { Moment } from '../parts/moments.js';
import { Brief } from '../parts/texts.js';
import { Filters, Only, Text, given } from '../lists/filters.js';
import { paged } from '../lists/paging.js';
import { Body, Listed, Title } from '../lists/table.js';
import { Raw } from '../deeds/stored-event.js';

const NAMES = ['stream', 'kind', 'session', 'since', 'until', 'at'];
// Each look leaves a receipt: where nobody asks for them, they are left out, or there would soon be little else.
const asksForReceipts = () =>
  queried('receipts') === 'true' || queried('stream').startsWith('access') || queried('kind') === 'access_recorded';
const COLUMNS = [
  ['w-pos', '#'],
  ['w-moment', 'Time'],
  ['w-kind', 'Event'],
  ['w-stream', 'Stream'],
  ['w-words', 'Words'],
];

/** @typedef {Answers.EventAnswer & { error?: undefined }} Found */
/**
 * @returns {{
 *   shown: Signal<Found | { error: Error, position?: undefined } | null>,
 *   box: { current: HTMLElement | null },
 *   at: string,
 *   picked: boolean,
 * }}
 */
const nobody = () => ({ shown: signal(null), box: createRef(), at: '', picked: false });
export const Log = view((_, self) => {
  const chosen = self.once(() => ({
    ...nobody(),
    state: paged(self, 'events', 'events', () => ({
      ...given(['stream', 'kind', 'session', 'since']),
      until: queried('until') || queried('at'),
      receipts: asksForReceipts() ? null : 'false',
    })),
  }));
  const { state, shown, box } = chosen;
  // The event that is chosen stands in the address: `event`, or the place that the list begins at.
  const at = queried('event') || queried('at');
  if (chosen.at !== at) {
    chosen.at = at;
    if (!at) shown.value = null;
    else
      ask('event', { at }).then(
        found => {
          if (chosen.at === at) shown.value = found;
        },
        error => {
          if (chosen.at === at) shown.value = { error };
        },
      );
  }
  /** @param {Answers.EventListed} row */
  const pick = row => {
    chosen.picked = true;
    setQuery({ event: row.position });
  };
  // On a narrow screen it stands above the list: whoever has chosen it is taken there, once it is drawn.
  if (chosen.picked && shown.value) {
    chosen.picked = false;
    requestAnimationFrame(() => box.current?.scrollIntoView({ block: 'nearest' }));
  }
  const close = () => setQuery({ event: '', at: '' });
  const event = shown.value;
  return html`
    <${Title} name="Log" state=${state} more=${asksForReceipts() ? '' : ', without receipts of who looked'} />
    <${Filters} names=${NAMES}>
      <${Text} name="stream" label="Stream begins with" wide />
      <${Text} name="kind" label="Kind of event" />
      <${Text} name="session" label="Session" />
      <${Text} name="since" label="Since, a time or #" />
      <${Text} name="until" label="Until, a time or #" />
      <${Only} name="receipts">with receipts of who looked<//>
    <//>
    <div class=${event ? 'work events' : ''}>
      <div>
        <${Body} state=${state} what="event" names=${NAMES} empty="This log is empty">
          ${(/** @type {Answers.EventListed[]} */ rows) => html`
            <${Listed} caption="Events, the newest first" columns=${COLUMNS} look="dense">
              ${rows.map(
                row => html`
                  <${Row} key=${row.position} row=${row} sel=${event?.position === row.position} pick=${pick} />
                `,
              )}
            <//>
          `}
        <//>
      </div>
      ${event
        ? html`
            <aside class="panel" aria-label="Event" ref=${box}>
              <p class="as"><span>All of it</span><button type="button" class="chip" onClick=${close}>Close</button></p>
              <div class="tp" tabindex="0">
                ${event.error ? html`<${Failed} error=${event.error} />` : html`<${Raw} event=${event} />`}
              </div>
            </aside>
          `
        : null}
    </div>
  `;
});
/** @param {{ row: Answers.EventListed, sel: boolean, pick: (row: Answers.EventListed) => void }} given */
const Row = ({ row, sel, pick }) => {
  /** @param {Happening} event */
  const open = event => {
    if (!event.target.closest('button') && !String(getSelection())) pick(row);
  };
  return html`
    <tr class=${sel ? 'sel' : ''} aria-current=${sel ? 'true' : null} onClick=${open}>
      <td><button type="button" class="num-link" onClick=${() => pick(row)}>#${row.position}</button></td>
      <td class="mono"><${Moment} ms=${row.timeMs} /></td>
      <td>${ofKind(row.kind)}</td>
      <td class="mono muted" title=${row.stream}>${streamName(row.stream)}</td>
      <td class="all" title=${row.text}>${between(row)}<${Brief} text=${row.text} /></td>
    </tr>
  `;
};
/** @param {string} stream */
const streamName = stream => {
  const [kind, ...rest] = stream.split(':');
  const name = rest.join(':');
  return kind === 'session' ? short(name) : name ? `${kind}:${name.slice(0, 8)}` : kind;
};
/** @param {Answers.EventListed} row */
const between = row =>
  row.who
    ? html`
        <span class="muted">${short(row.who)}${row.to ? ` → ${short(row.to)}` : ''}${row.text ? ': ' : ''}</span>
      `
    : null;
