// Icons: none is read out, the words beside them say it.
import { html } from '../base/drawing.js';

/** @type {Record<string, string>} */
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
/** @param {{ name: string }} given */
export const Icon = ({ name }) =>
  html`<svg class="icon" viewBox="0 0 16 16" aria-hidden="true"><path d=${ICONS[name]} /></svg>`;
/** @param {{ ok: boolean }} given */
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
