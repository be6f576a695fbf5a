// Whoever takes part: a badge, a name, and which kind they are.
import { html } from '../base/drawing.js';
import { isSub, short } from '../base/words.js';
import { hueOf } from './hues.js';

// A speaker is a shape, a letter and a colour: person, session, sub-agent, channel.
/** @type {Record<string, object>} */
const SHAPES = {
  session: html`<rect class="s" width="20" height="20" rx="5" />`,
  sub: html`<path class="s" d="M5 0h15v15l-5 5H0V5Z" />`,
  person: html`<circle class="s" cx="10" cy="10" r="10" />`,
  operator: html`<circle class="s" cx="10" cy="10" r="10" />`,
  channel: html`<path class="s" d="M5 1h10l5 9-5 9H5L0 10Z" />`,
};
// A sub-agent's letter is that of its own name, which stands behind its agent's.
/** @param {Lane} lane */
const ownName = lane => String(lane.name).replace(lane.kind === 'sub' ? /^[^/]*[/]/ : /^the /, '');
/** @param {Lane} lane */
export const letterOf = lane =>
  lane.kind === 'channel' ? '#' : ([...ownName(lane)][0] ?? '?').toUpperCase();
/** @param {{ lane: Lane, small?: boolean, future?: boolean }} given */
export const Badge = ({ lane, small, future }) => html`
  <svg
    class=${`badge ${small ? 'sm' : ''} ${hueOf(lane)} ${future ? 'future' : ''}`}
    viewBox="0 0 20 20"
    aria-hidden="true">
    ${SHAPES[lane.kind] ?? SHAPES.session}
    <text x="10" y="14.5">${letterOf(lane)}</text>
  </svg>
`;
// A sub-agent is called by its label, where the caller knows it.
/** @param {string} key @param {string | null} [label] */
export const laneOf = (key, label) => ({
  id: key,
  name: label && isSub(key) ? label : short(key),
  kind:
    key === 'operator' || String(key).startsWith('credential:')
      ? 'operator'
      : String(key).startsWith('agent:')
        ? isSub(key)
          ? 'sub'
          : 'session'
        : 'channel',
});
/** @param {{ lane: Lane }} given */
export const Who = ({ lane }) => html`<span class="who"><${Badge} lane=${lane} small /> ${lane.name}</span>`;
/** @type {Record<string, string>} */
export const KINDS = {
  session: 'session',
  sub: 'sub-agent',
  person: 'person',
  channel: 'channel',
  operator: 'operator',
};
