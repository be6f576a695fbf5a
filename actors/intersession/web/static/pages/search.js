// What a search finds, the newest first, and who said the words first.
import { effect, html, signal, view } from '../base/drawing.js';
import { counted, ofKind, short } from '../base/words.js';
import { href, link, queried, route } from '../asking/address.js';
import { ask } from '../asking/api.js';
import { marked, termsOf } from '../parts/found-words.js';
import { Moment, Position, Time } from '../parts/moments.js';
import { Badge, laneOf } from '../parts/speakers.js';
import { Filters, Text, given } from '../lists/filters.js';
import { paged } from '../lists/paging.js';
import { Recipients } from '../lists/recipients.js';
import { Body, Listed, Title } from '../lists/table.js';

// Where words were said first, in its run. An import's transcripts name none: there it is the run that had them next.
/** @param {string} words */
async function originOf(words) {
  const found = await ask('origin', { words });
  const { first } = found;
  if (!first || first.runId) return found;
  const { hits } = await ask('search', { words: found.words, limit: 100 });
  const next = hits.findLast(hit => hit.runId && hit.position >= first.position);
  return next ? { ...found, first: { ...first, runId: next.runId, inRun: next.position } } : found;
}

// Who said it first: the words as they stand, else the longest part of them that anybody said.
/** @type {() => Signal<Awaited<ReturnType<typeof originOf>> | null>} */
const nothingYet = () => signal(null);
/** @type {() => Signal<Answers.OriginAnswer | null>} */
const nothingSeen = () => signal(null);
const First = view((_, self) => {
  const state = self.once(() => {
    const made = { found: nothingYet(), seen: nothingSeen() };
    let known = '';
    self.onEnd(
      effect(() => {
        const words = route.value.query.get('words') ?? '';
        if (words === known) return;
        known = words;
        made.found.value = made.seen.value = null;
        if (words.trim().length > 2)
          originOf(words).then(
            found => {
              if (known === words) made.found.value = found;
            },
            () => {},
          );
      }),
    );
    return made;
  });
  const found = state.found.value;
  if (!found) return null;
  const { first } = found;
  const who = async () => {
    const words = queried('words');
    const seen = await ask('origin', { words, seen: true });
    if (words === queried('words')) state.seen.value = seen;
  };
  return html`
    <p class="note first">
      ${first ? html`<${Said} found=${found} first=${first} />` : 'No message has these words in this order.'}
      ${state.seen.value ? null : html` <button class="btn" type="button" onClick=${who}>Who saw it?</button>`}
    </p>
    ${state.seen.value
      ? html`<${Recipients} found=${state.seen.value} /><div class="sec"><h2>Where they stand</h2></div>`
      : null}
  `;
});

/** @param {{ found: Answers.OriginAnswer, first: Answers.HopAnswer & { inRun?: number } }} given */
const Said = ({ found, first }) => {
  const address = first.runId
    ? href('run', first.runId, { at: first.inRun ?? first.position })
    : href('session', first.sessionKey, { at: first.position });
  return html`
    <b>First said</b> by <${Badge} lane=${laneOf(first.who)} small /> <b>${short(first.who)}</b>
    ${first.to ? ` to ${short(first.to)}` : ''}, <${Time} ms=${first.timeMs} dated />
    ${found.match === 'exact'
      ? ''
      : found.match === 'folded'
        ? ', in other case'
        : `, of it “${found.words}”`}: <a class="link" ...${link(address)}>
      “${first.text.slice(0, 160)}” <span class="mono">#${first.position}</span>
    </a>
    ${found.hops.length
      ? html` <span class="muted">It came to ${counted(found.hops.length, 'more message')}.</span>`
      : ''}
  `;
};

const NAMES = ['words', 'in', 'kind'];
const COLUMNS = [
  ['w-pos', '#'],
  ['w-words', 'Words'],
  ['w-stream', 'Session'],
  ['w-kind', 'Event'],
  ['w-moment', 'Time', 'num'],
];
export const Search = view((_, self) => {
  const state = self.once(() =>
    paged(
      self,
      'search',
      'hits',
      () => (queried('words').trim() ? given(NAMES) : null),
      { fresh: false },
    ),
  );
  const terms = termsOf(queried('words'));
  return html`
    <${Title} name=${`Search: ${queried('words')}`} state=${state} />
    <${Filters} names=${NAMES}>
      <${Text} name="words" label="Words" wide />
      <${Text} name="in" label="In session" />
      <${Text} name="kind" label="Kind of event" />
    <//>
    <${First}/>
    <${Body} state=${state} what="message or event" names=${NAMES} empty=${html`<${None}/>`}>
      ${(/** @type {Answers.HitAnswer[]} */ rows) => html`
        <${Listed} caption="Where the words stand, the newest first" columns=${COLUMNS} look="low">
          ${rows.map(hit => html`<${Row} key=${hit.position} hit=${hit} terms=${terms} />`)}
        <//>
      `}
    <//>
  `;
});
const None = () => html`
  <div class="empty">
    <h2>What do you look for?</h2>
    <p class="muted">Write some words above. All of them stand in what is found.</p>
  </div>
`;
/** @param {{ hit: Answers.HitAnswer, terms: Terms }} given */
const Row = ({ hit, terms }) => {
  const { runId, sessionKey, position: at } = hit;
  const words = marked(hit.snippet, terms);
  return html`
    <tr>
      <td><${Position} at=${at} /></td>
      <td class="all first">
        ${runId
          ? html`<a class="t said" ...${link(href('run', runId, { at }))}>${words}</a>`
          : html`<span class="t said">${words}</span>`}
      </td>
      <td>${sessionKey ? html`<a ...${link(href('session', sessionKey, { at }))}>${short(sessionKey)}</a>` : ''}</td>
      <td class="muted">${ofKind(hit.kind)}</td>
      <td class="num mono"><${Moment} ms=${hit.timeMs} /></td>
    </tr>
  `;
};
