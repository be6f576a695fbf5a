// The right side of a run: tabs of what is to be seen of its place.
import { html, signal, view } from '../base/drawing.js';
import { queried, setQuery } from '../asking/address.js';
import { ask } from '../asking/api.js';
import { loaded } from '../asking/remembered.js';
import { Failed, Loading } from '../parts/answers.js';
import { Tabs } from '../parts/tabs.js';
import { Raw } from '../deeds/stored-event.js';
import { Event, Since } from './changes.js';
import { Lens } from './prompts.js';
import { Transcripts } from './transcripts.js';
import { Why } from './why.js';

const TABS = [
  ['transcripts', 'Transcripts'],
  ['lens', 'Prompts'],
  ['event', 'Event'],
  ['why', 'Why'],
  ['raw', 'Raw'],
];
/** @type {View<{ place: Place }>} */
const RawTab = view(({ place }, self) => {
  const position = place.position.value;
  const found = loaded(self, 'raw', position, stop => ask('event', { at: position }, { signal: stop }));
  if (!found) return html`<${Loading}/>`;
  return found.error
    ? html`<${Failed} error=${found.error} retry=${found.again} />`
    : html`<${Raw} event=${Object.fromEntries(Object.entries(found).filter(([name]) => name !== 'key'))} />`;
});

/** @type {Record<string, View<{ place: Place }>>} */
const SHOWN = { transcripts: Transcripts, lens: Lens, event: Event, why: Why, raw: RawTab, since: Since };
// On the largest screens the transcripts have a column of their own, and the other tabs stand beside them.
const LARGE = matchMedia('(min-width: 2600px)');
/** @param {boolean} large */
const tabsNow = large => [
  ...(large ? TABS.slice(1) : TABS),
  ...(queried('mark') ? [['since', 'Since mark']] : []),
];
/** @type {View<{ place: Place }>} */
export const Panel = view(({ place }, self) => {
  const large = self.once(() => {
    const made = signal(LARGE.matches);
    const measure = () => {
      made.value = LARGE.matches;
    };
    LARGE.addEventListener('change', measure);
    self.onEnd(() => LARGE.removeEventListener('change', measure));
    return made;
  });
  const asked = queried('tab') || (queried('lens') ? 'lens' : '');
  const tabs = tabsNow(large.value);
  const tab = tabs.some(([name]) => name === asked) ? asked : large.value ? 'event' : 'transcripts';
  const Shown = SHOWN[tab];
  /** @param {string} name */
  const choose = name => setQuery({ tab: name === 'transcripts' ? '' : name, lens: '' });
  return html`
    ${large.value
      ? html`
          <section class="panel" aria-label="Transcripts at this place">
            <div class="tp"><${Transcripts} place=${place} /></div>
          </section>
        `
      : null}
    <aside class="panel" aria-label="At this place">
      <${Tabs} label="What to see of this place" id="tab-panel" tabs=${tabs} tab=${tab} choose=${choose} />
      <div class="tp" id="tab-panel" role="tabpanel" aria-labelledby=${`tab-${tab}`} tabindex="0">
        <${Shown} place=${place} />
      </div>
    </aside>
  `;
});
