// What a person was told: each text for them, with who said it, for whom and why, and whether it arrived.
import { html, view } from '../base/drawing.js';
import { capital, short } from '../base/words.js';
import { deliveryName } from '../asking/about.js';
import { href, link } from '../asking/address.js';
import { Moment, Position } from '../parts/moments.js';
import { Filters, Text, given } from '../lists/filters.js';
import { paged } from '../lists/paging.js';
import { Body, Listed, Title } from '../lists/table.js';

const NAMES = ['words', 'from', 'since'];
const COLUMNS = [
  ['w-pos', '#'],
  ['w-stream', 'From, to'],
  ['w-end', 'What became of it'],
  ['w-words', 'Text, and what it answers'],
  ['w-moment', 'Decided', 'num'],
];

export const Person = view(({ id }, self) => {
  const state = self.once(() => paged(self, 'told', 'texts', () => ({ person: id, ...given(NAMES) })));
  return html`
    <${Title} name=${`What ${id} was told`} state=${state} />
    <${Filters} names=${NAMES}>
      <${Text} name="words" label="Words" wide />
      <${Text} name="from" label="From session" />
      <${Text} name="since" label="Since, a time or #" />
    <//>
    <${Body} state=${state} what="text" names=${NAMES} empty="Nothing was sent to their chats yet">
      ${(/** @type {Record<string, any>[]} */ rows) => html`
        <${Listed} caption=${`Texts for ${id}, the newest first`} columns=${COLUMNS}>
          ${rows.map(row => html`<${Row} key=${row.position} row=${row} />`)}
        <//>
      `}
    <//>
    ${state.answer?.imported
      ? html`<p class="note">Some of their words were imported. What went outside then is not known.</p>`
      : null}
  `;
});

/** @type {Record<string, string>} */
const CHATS = { group: ', a group', channel: ', a channel' };
/** @param {{ row: Record<string, any> }} given */
const Row = ({ row }) => html`
  <tr>
    <td><${Position} at=${row.position} /></td>
    <td>
      <a ...${link(href('session', row.sessionKey, { at: row.position }))}>${short(row.sessionKey)}</a>
      <span class="why">${row.route.channel}:${row.route.to}${CHATS[row.chat] ?? ''}</span>
    </td>
    <td class=${row.reached === false ? 'bad' : ''}>
      ${row.state === 'history' ? 'In the history alone' : capital(deliveryName(row.state))}
      ${row.state === 'history' ? html`<span class="why">put there by ${row.by}</span>` : null}
      ${row.error ? html`<span class="why" title=${row.error}>${row.error}</span>` : null}
      ${row.sentChars ? html`<span class="why">${row.sentChars} characters of it arrived</span>` : null}
      ${row.beforeFirstWords ? html`<span class="why">before their first words there</span>` : null}
    </td>
    <td class="all first">
      ${row.runId
        ? html`<a class="t said" ...${link(href('run', row.runId, { at: row.position }))}>${row.text}</a>`
        : html`<span class="t said">${row.text}</span>`}
      <${Led} row=${row} />
    </td>
    <td class="num mono">${row.time ? html`<${Moment} ms=${row.time} />` : ''}</td>
  </tr>
`;
// On whose behalf it was said, and the message that it answers, or that all of it began with.
/** @param {{ row: Record<string, any> }} given */
const Led = ({ row }) => {
  const said = row.why ?? row.answers;
  const who = row.person ? (row.person.name ?? row.person.id) : null;
  if (!said && !who) return null;
  const words = said?.text ? `“${said.text}”` : '';
  return html`
    <span class="why" title=${words}>
      ${who ? `for ${who}` : said.from}${said ? html`, #${said.position} ${words}` : ''}
    </span>
  `;
};
