// What every page draws with: badges, icons, outlines, chips, places, and what stands where there is nothing.
import { html } from './lib.js';
import { hueOf } from './hues.js';
import { about, href, link } from './state.js';
import { clock, counted, day, failed, isSub, moment, short, smellName, utc } from './words.js';

const ICONS = {
  search: 'M7 12A5 5 0 1 0 7 2a5 5 0 0 0 0 10Zm4-1 3 3',
  shield: 'M8 1.5 13.5 3.5v4c0 3.5-2.3 5.8-5.5 7-3.2-1.2-5.5-3.5-5.5-7v-4Z',
  tick: 'm5.5 8 2 2 3.5-4',
  first: 'M3 3v10M13 3 6 8l7 5Z',
  last: 'M13 3v10M3 3l7 5-7 5Z',
  back: 'M10 3 5 8l5 5',
  on: 'm6 3 5 5-5 5',
  bin: 'M3 4h10M6 4V2h4v2M4.5 4l.5 10h6l.5-10M7 7v4M9 7v4',
  branch: 'M2 8h4M6 8c4 0 3-5 8-5M6 8c4 0 3 5 8 5',
  fork: 'M4 2v12M4 10c0-4 8-2 8-7M10 5l2-2 2 2',
  copy: 'M5 5V2h9v9h-3M2 5h9v9H2Z',
  hold: 'M5 3v10M11 3v10',
  down: 'M8 2v9M4 8l4 4 4-4M3 14h10',
  note: 'M3 2h10v8l-4 4H3Z M9 14v-4h4',
  menu: 'M2 4h12M2 8h12M2 12h12',
  out: 'M6 2H3v12h3M10 5l3 3-3 3M13 8H6',
};
export const Icon = ({ name }) =>
  html`<svg class="icon" viewBox="0 0 16 16" aria-hidden="true"><path d=${ICONS[name]} /></svg>`;
export const Shield = ({ ok }) => html`
  <svg class="icon" viewBox="0 0 16 16" aria-hidden="true">
    <path d=${ICONS.shield} />
    <path d=${ok ? ICONS.tick : 'M8 5v4M8 11.5v.1'} />
  </svg>
`;
export const Tri = () => html`
  <svg class="tri" viewBox="0 0 12 12" aria-hidden="true">
    <path d="M6 1 11.5 11H.5Z" />
    <path class="bang" d="M6 4.6v3M6 9.3v.1" />
  </svg>
`;

// A speaker is a shape, a letter and a colour: person, session, sub-agent, channel.
const SHAPES = {
  session: html`<rect class="s" width="20" height="20" rx="5" />`,
  sub: html`<path class="s" d="M5 0h15v15l-5 5H0V5Z" />`,
  person: html`<circle class="s" cx="10" cy="10" r="10" />`,
  operator: html`<circle class="s" cx="10" cy="10" r="10" />`,
  channel: html`<path class="s" d="M5 1h10l5 9-5 9H5L0 10Z" />`,
};
// A sub-agent's letter is that of its own name, which stands behind its agent's.
const ownName = lane => String(lane.name).replace(lane.kind === 'sub' ? /^[^/]*[/]/ : /^the /, '');
export const letterOf = lane =>
  lane.kind === 'channel' ? '#' : ([...ownName(lane)][0] ?? '?').toUpperCase();
export const Badge = ({ lane, small, future }) => html`
  <svg
    class=${`badge ${small ? 'sm' : ''} ${hueOf(lane)} ${future ? 'future' : ''}`}
    viewBox="0 0 20 20"
    aria-hidden="true">
    ${SHAPES[lane.kind] ?? SHAPES.session}
    <text x="10" y="14.5">${letterOf(lane)}</text>
  </svg>
`;
// A sub-agent is called by its label, where who asks has it.
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
export const Who = ({ lane }) => html`<span class="who"><${Badge} lane=${lane} small /> ${lane.name}</span>`;
export const KINDS = {
  session: 'session',
  sub: 'sub-agent',
  person: 'person',
  channel: 'channel',
  operator: 'operator',
};

export const Time = ({ ms, dated }) => html`
  <time datetime=${new Date(ms).toISOString()} title=${utc(ms)}>${dated ? `${day(ms)}, ` : ''}${clock(ms)}</time>
`;
// In a list: the time alone, where it was today.
export const Moment = ({ ms }) =>
  html`<time datetime=${new Date(ms).toISOString()} title=${utc(ms)}>${moment(ms)}</time>`;
export const Smell = ({ smell }) =>
  html`<span class="chip smell" title=${smell.text}><${Tri}/>${smellName(smell.code)}</span>`;

// The outline of a run: upper row asks, lower row is asked. The same marks stand on its slider.
export const tickShape = (letter, x, y) => {
  switch (letter) {
    case 'p':
      return html`<circle cx=${x} cy=${y} r="4" />`;
    case 'u':
      return html`<rect x=${x - 2.5} y=${y - 14} width="5" height="11" rx="1" />`;
    case 'd':
      return html`<rect x=${x - 2.5} y=${y + 3} width="5" height="11" rx="1" />`;
    case 'c':
      return html`<path d=${`M${x} ${y + 2}l4.5 4.5-4.5 4.5-4.5-4.5Z`} />`;
    default:
      return null;
  }
};
const LIVE = 6; // what the dot of an open run needs behind the line's end
export const Outline = ({ run }) => {
  const ticks = run.outline ?? [];
  const wide = Math.max(ticks.length * 12 + 8, 24);
  const isOpen = run.state === 'open';
  const fit = Math.min(wide, 184);
  const step = (fit - 12) / Math.max(ticks.length, 1);
  const many = letter => ticks.filter(one => one[0] === letter).length;
  const said = `${counted(ticks.length, 'step')}: ${many('u')} by who asks, ${many('d')} by who is asked`;
  return html`
    <svg class="ol" width=${isOpen ? fit + LIVE : fit} height="34" role="img" aria-label=${said}>
      <line class="base" x1="4" x2=${fit - 4} y1="17" y2="17" />
      ${ticks.map(([letter, lane], place) => {
        const x = 8 + place * step;
        const of = run.lanes[lane];
        if (letter === '/') return html`<path class="brk" d=${`M${x - 4} 21l3-8m2 8 3-8`} />`;
        if (letter === 'x') return html`<path class="x" d=${`M${x - 3.5} 13.5l7 7m0-7-7 7`} />`;
        if (letter === 'e')
          return place < ticks.length - 1
            ? html`<rect class="sq" x=${x - 3.5} y="13.5" width="7" height="7" />`
            : failed(run)
              ? html`<path class="x" d=${`M${x - 3.5} 13.5l7 7m0-7-7 7`} />`
              : html`<path class="ok" d=${`M${x - 4} 17l3 3.5 5.5-7`} />`;
        return html`<g class=${`tick ${of ? hueOf(of) : 'c-grey'}`}>${tickShape(letter, x, 17)}</g>`;
      })}
      ${isOpen ? html`<circle class="live" cx=${fit} cy="17" r="4" />` : null}
    </svg>
  `;
};

// What a session does while it waits for a tool.
export const Hatch = () => html`
  <defs>
    <pattern id="hatch" width="5" height="5" patternUnits="userSpaceOnUse" patternTransform="rotate(45)">
      <rect class="hatching" width="2" height="5" />
    </pattern>
  </defs>
`;

export const Seg = ({ label, value, options, onChange }) => html`
  <span class="seg" role="group" aria-label=${label}>
    ${options.map(
      ([key, name]) => html`
        <button type="button" aria-pressed=${value === key} onClick=${() => onChange(key)}>${name}</button>
      `,
    )}
  </span>
`;
// The words of an event in a list. What a tool was given, and what it gave, is data, and looks like it.
const DATA = /^[\w.-]*\(?[{[]["{[\]}]/;
export const Brief = ({ text = '' }) => (DATA.test(text) ? html`<span class="mono data">${text}</span>` : text);
// Words in which what stands between two grave accents is code.
export const Said = ({ text }) =>
  String(text)
    .split('`')
    .map((part, number) => (number % 2 ? html`<code>${part}</code>` : part));
// `title` is the heading of a page that has nothing else.
export const Failed = ({ error, retry, title }) => html`
  <div class="empty" role="alert">
    ${title ? html`<h1>${title}</h1>` : null}
    <div class="alert"><b>This could not be read.</b> <${Said} text=${error.message} /></div>
    ${error.status === 403 && !about.value?.isOperator
      ? html`<p class="muted">This credential sees a part of the log only.</p>`
      : null}
    <p class="acts">
      ${retry ? html`<button class="btn" type="button" onClick=${retry}>Try again</button>` : null}
      <a class="link" ...${link(href('runs'))}>All runs</a>
    </p>
  </div>
`;
export const Loading = () => html`<p class="loading" role="status">Reading the log…</p>`;
export const Position = ({ at }) => html`<a class="num-link" ...${link(href('log', '', { at }))}>#${at}</a>`;
