// Two runs, or two places of one, side by side: the first difference first, then part by part, then what came of both.
import { effect, html, signal, view } from './lib.js';
import { ask } from './api.js';
import { Failed, Loading, Who, laneOf } from './parts.js';
import { href, link, queried, route, setQuery } from './state.js';
import { counted, short, took } from './words.js';

const KINDS = { same: ['=', 'the same'], changed: ['≠', 'other words'], only_a: ['A', 'only in A'], only_b: ['B', 'only in B'] };
const TOTALS = [['turns', 'Turns'], ['loopEnd', 'The loop ended'], ['end', 'All ended'], ['tokens', 'Tokens'], ['durationMs', 'Took'], ['deliveries', 'Texts outside']];
const told = (name, value) => (value === null || value === undefined ? '–' : name === 'durationMs' ? took(value) : typeof value === 'object' ? Object.entries(value).map(([key, item]) => `${key}: ${item}`).join(', ') || '–' : String(value).replaceAll('_', ' '));
const turnName = turn => turn.replace(':', ' ').replaceAll('/', ', ').replaceAll('_', ' ');

export const Diff = view((_, self) => {
  const state = self.once(() => {
    const made = { found: signal(null), error: signal(null) };
    self.onEnd(effect(() => {
      const a = route.value.query.get('a'), b = route.value.query.get('b');
      if (!a || !b) { made.found.value = null; return; }
      ask('diff', { a, b }).then(found => { made.found.value = found; made.error.value = null; }, error => { made.error.value = error; });
    }));
    return made;
  });
  const found = state.found.value, all = queried('all') === 'true';
  const fields = html`<div class="filters" role="group" aria-label="What is compared">${['a', 'b'].map(name => html`<label>${name.toUpperCase()} <input type="search" class="wide" aria-label=${`Run ${name.toUpperCase()}, or a place of it`} value=${queried(name)} onChange=${event => setQuery({ [name]: event.target.value.trim() })}/></label>`)}<button type="button" class="chip" aria-pressed=${all} onClick=${() => setQuery({ all: all ? '' : 'true' })}>what is the same, too</button></div>`;
  return html`<div class="head"><div class="grow"><h1>Compare</h1>${found ? html`<p class="sum">${found.same ? html`<b>Nothing differs</b> in what was said and done.` : html`<b>First difference: ${turnName(found.firstDivergence.turn)}</b>, ${KINDS[found.firstDivergence.kind][1]}. ${found.firstDivergence.place.text}`}</p>` : null}</div></div>${fields}
    ${state.error.value ? html`<${Failed} error=${state.error.value}/>` : !queried('a') || !queried('b') ? html`<div class="empty"><h2>Pick two runs</h2><p class="muted">In the list of runs, <kbd>x</kbd> picks the one that is chosen. Or name them here: an id, or a place such as ID@turn:2.</p></div>` : !found ? html`<${Loading}/>` : html`<${Compared} found=${found} all=${all}/>`}`;
});

const Compared = ({ found, all }) => html`<table class="list compare"><caption class="vh">What came of both</caption><thead><tr><th scope="col"></th>${TOTALS.map(([name, said]) => html`<th scope="col">${said}</th>`)}</tr></thead>
    <tbody>${['a', 'b'].map(side => html`<tr><th scope="row"><span class=${`ab ${side}`}>${side.toUpperCase()}</span> <a class="link mono" ...${link(href('run', found[side].run, { at: found[side].place.position }))}>${found[side].run.slice(0, 8)}</a></th>${TOTALS.map(([name]) => html`<td class=${told(name, found.a.totals[name]) !== told(name, found.b.totals[name]) ? 'd' : ''}>${told(name, found[side].totals[name])}</td>`)}</tr>`)}</tbody></table>
  <table class="list compare turns"><caption class="vh">Part by part</caption><colgroup><col class="w-kind"/><col class="w-half"/><col class="w-sign"/><col class="w-half"/></colgroup><thead><tr><th scope="col">Part</th><th scope="col">A</th><th scope="col"><span class="vh">How they compare</span></th><th scope="col">B</th></tr></thead>
    <tbody>${found.turns.filter(turn => all || turn.kind !== 'same').map(turn => html`<tr class=${turn.kind}><th scope="row">${turnName(turn.turn)}</th><td><${Side} of="a" turn=${turn}/></td><td><b title=${KINDS[turn.kind]?.[1]}>${KINDS[turn.kind]?.[0] ?? turn.kind}</b><span class="vh">${KINDS[turn.kind]?.[1]}</span></td><td><${Side} of="b" turn=${turn}/></td></tr>`)}
    ${all ? null : html`<tr><td colspan="4" class="muted">${counted(found.turns.filter(turn => turn.kind === 'same').length, 'part')} the same.</td></tr>`}</tbody></table>`;
const Side = ({ of, turn }) => {
  const it = turn[of];
  if (!it) return html`<span class="muted">–</span>`;
  const { place, who, to, text, ...rest } = it, words = turn.differs?.find(one => one.field === 'text')?.words;
  return html`<span class="small muted">${who ? (who.startsWith('agent:') ? html`<${Who} lane=${laneOf(who)}/>` : who) : ''}${to ? ` → ${short(to)}` : ''} <a class="mono" ...${link(href('log', '', { at: place.position }))}>#${place.position}</a></span>
    ${words ? html`<p>${words.filter(one => one.of === of || one.of === 'both' || one.of === 'ab').map(one => (one.of === of ? (of === 'a' ? html`<del>${one.text}</del>` : html`<ins>${one.text}</ins>`) : one.text))}</p>` : text ? html`<p>${text}</p>` : null}
    ${Object.keys(rest).length ? html`<code class="muted">${Object.entries(rest).map(([name, value]) => `${name}: ${typeof value === 'object' ? JSON.stringify(value) : value}`).join(', ')}</code>` : null}`;
};
