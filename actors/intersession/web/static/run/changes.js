// What an event is and what it changed, and what changed between two places of a run.
import { html, view } from '../base/drawing.js';
import { calls, clock, gave, given, ofKind, parsed, short, textOf, utc } from '../base/words.js';
import { queried } from '../asking/address.js';
import { ask } from '../asking/api.js';
import { loaded } from '../asking/remembered.js';
import { Failed, Loading } from '../parts/answers.js';
import { Hidden } from '../deeds/stored-event.js';

/** @param {any} value */
export const shown = value =>
  value === null || value === undefined ? '–' : typeof value === 'string' ? value : JSON.stringify(value);
const UUID = /[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}/g;
/** @param {string} text */
const shortIds = text => String(text).replace(UUID, id => id.slice(0, 8));
// Whose it is, and what: `sessions/agent:main:main/runState` is `main · run state`,
// a message of its transcript `main · message`.
/** @param {string} path */
const partsOf = path => String(path).split('/').map(part => part.replaceAll('~1', '/').replaceAll('~0', '~'));
/** @param {string} path */
const brief = path => {
  const [kind, id, ...field] = partsOf(path);
  const whose = kind === 'sessions' ? short(id) : kind.replace(/s$/, '');
  if (kind === 'sessions' && field[0] === 'transcript') return `${whose} · message`;
  if (!field.length) return shortIds(id && kind !== 'sessions' ? `${whose} ${id}` : path);
  return `${whose} · ${field.join(' · ').replace(/([a-z])([A-Z])/g, (_, a, b) => `${a} ${b.toLowerCase()}`)}`;
};
// Where a row was last touched goes without saying, where something of it changed.
const TOUCHED = /\/(position|earlier|updatedAt)$/;
/** @param {string} path @param {any} value */
const isTime = (path, value) => typeof value === 'number' && /(At|Ms|since)$/.test(path) && value > 1e12;
// Of a whole row, what it says to people; all of it is in the raw event.
const TELLING = ['status', 'state', 'step', 'turn', 'reply', 'text', 'label'];
/** @param {Record<string, any>} row */
const summed = row =>
  TELLING.filter(name => isThere(row[name]))
    .map(name => (name === 'turn' ? `turn ${row.turn}` : shown(row[name])))
    .join(' · ') || shown(row);
const MOST_SAID = 400; // letters; all of it is in the payload
// A message as its transcript has it: who said it, and the words, or what was called.
/**
 * @param {{ role: string, content: Message["content"], toolName?: string, provenance?: Record<string, any> }} given
 */
const messageSaid = ({ role, content, toolName, provenance }) => {
  const called = calls(content).map(call => `${call.name} ${given(parsed(call.arguments))}`);
  const text = [role === 'toolResult' ? gave(textOf(content)) : textOf(content), ...called].filter(Boolean).join('\n');
  const from = provenance?.sourceSessionKey;
  /** @type {Record<string, string>} */
  const said = { toolResult: `${toolName ?? 'a tool'} gave`, assistant: 'says' };
  const who = said[role] ?? (from ? `${short(from)} says` : 'is told');
  const whole = text || '(no text)';
  return `${who}: ${whole.length > MOST_SAID ? `${whole.slice(0, MOST_SAID)}…` : whole}`;
};
/** @param {string} path @param {any} value */
function said(path, value) {
  if (isTime(path, value)) return utc(value);
  if (value?.role && 'content' in value) return messageSaid(value);
  if (value && typeof value === 'object' && !Array.isArray(value)) return summed(value);
  return shortIds(shown(value));
}
/** @param {any} value */
const isThere = value => value !== null && value !== undefined;
// A transcript ends with what waits: an answer that comes meanwhile stands before that, and is not its last message.
/** @param {Change[]} changes @param {{ data: Record<string, any>, stream: string }} how */
function withOwn(changes, { data, stream }) {
  if (!data?.message?.role || changes.some(change => partsOf(change.path)[2] === 'transcript')) return changes;
  const [, key] = stream.split(/:(.*)/);
  return [...changes, { path: `sessions/${key.replaceAll('/', '~1')}/transcript`, after: data.message }];
}
/** @param {{ changes: Change[], none: string }} given */
export const Changes = ({ changes: all, none }) => {
  const changes = all.filter(change => !TOUCHED.test(change.path));
  if (!changes.length) return html`<p class="muted">${none}</p>`;
  return html`
    <table class="diff">
      <caption class="vh">Fields before and after</caption>
      <tbody>
        ${changes.map(
          change => html`
            <tr>
              <th scope="row">${brief(change.path)}</th>
              <td>
                ${isThere(change.before) ? html`<del>${said(change.path, change.before)}</del> ` : null}
                ${isThere(change.after) ? html`<ins>${said(change.path, change.after)}</ins>` : null}
              </td>
            </tr>
          `,
        )}
      </tbody>
    </table>
  `;
};

/** @type {View<{ place: Place }>} */
export const Event = view(({ place }, self) => {
  const run = place.run.value;
  const position = place.position.value;
  const step = place.step.value;
  const found = loaded(self, 'event', position, async stop => {
    if (!step) throw new Error('There is no event before the first one.');
    /** @type {[Answers.EventAnswer, any]} */
    const [event, changed] = await Promise.all([
      ask('event', { at: position }, { signal: stop }),
      ask(
        'state',
        { of: run.id, from: Math.max(position - 1, 0), to: position, messages: 1 },
        { signal: stop },
      ).catch(() => ({ changes: [] })),
    ]);
    return { event, changes: withOwn(changed.changes, event) };
  });
  if (!found) return html`<${Loading}/>`;
  if (found.error) return html`<${Failed} error=${found.error} retry=${found.again} />`;
  const { event, changes } = found;
  return html`
    <div>
      <div class="sec">
        <dl class="kv">
          <dt>Event</dt>
          <dd><b>${ofKind(event.kind)}</b> <span class="mono muted">#${event.position}</span></dd>
          <dt>Stream</dt>
          <dd class="mono">${event.stream}, ${event.version}</dd>
          <dt>When</dt>
          <dd>${clock(event.timeMs)} <span class="muted">${utc(event.timeMs)}</span></dd>
          <dt>Who</dt>
          <dd>${event.who ? short(event.who) : '–'}${event.to ? ` → ${short(event.to)}` : ''}</dd>
          ${step?.cause
            ? html`
                <dt>Cause</dt>
                <dd>
                  <button type="button" class="num-link" onClick=${() => step.cause && place.toPosition(step.cause)}>
                    #${step.cause}
                  </button>
                </dd>
              `
            : null}
        </dl>
      </div>
      <div class="sec">
        <h2>What it changed</h2>
        <${Changes} changes=${changes} none="Nothing that is shown of this run." />
      </div>
      <${Hidden} event=${event} />
      <div class="sec"><h2>Payload</h2><pre tabindex="0">${JSON.stringify(event.data, null, 2)}</pre></div>
    </div>
  `;
});

// Two places of one run: what is otherwise here than at the place that was marked, or there than here.
/** @type {View<{ place: Place }>} */
export const Since = view(({ place }, self) => {
  const marked = Number(queried('mark'));
  const position = place.position.value;
  const from = Math.min(marked, position);
  const to = Math.max(marked, position);
  const found = loaded(self, 'since', `${from}/${to}`, stop => {
    /** @type {Promise<any>} */
    const asked = ask('state', { of: place.run.peek().id, from, to }, { signal: stop });
    return /** @type {Promise<Answers.ChangesAnswer>} */ (asked);
  });
  if (!found) return html`<${Loading}/>`;
  if (found.error) return html`<${Failed} error=${found.error} retry=${found.again} />`;
  return html`
    <div>
      <p class="as">
        <span>From ${found.from.text} to ${found.to.text}.</span>
        <span>
          <button type="button" class="num-link" onClick=${() => place.toPosition(marked)}>#${marked}</button>
          ${marked > position ? ' is ahead' : ' is behind'}
        </span>
      </p>
      <div class="sec">
        <h2>What changed between the two places</h2>
        <${Changes}
          changes=${found.changes}
          none="Nothing: both are the same place, or nothing of this run changed." />
      </div>
    </div>
  `;
});
