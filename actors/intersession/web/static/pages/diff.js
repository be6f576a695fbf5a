// Two runs, a run and its fork, or two places of one: what came of both, one diagram, and part by part what differs.
import { effect, html, seen, signal, view } from '../base/drawing.js';
import { capital, counted, short, took } from '../base/words.js';
import { deliveryName, editName, endName } from '../asking/about.js';
import { href, link, queried, route, setQuery } from '../asking/address.js';
import { ask, forked } from '../asking/api.js';
import { Failed, Loading } from '../parts/answers.js';
import { Shield } from '../parts/icons.js';
import { Outline } from '../parts/outline.js';
import { Who, laneOf } from '../parts/speakers.js';
import { Tabs } from '../parts/tabs.js';
import { isForPage } from '../parts/window.js';
import { AgainButton } from '../deeds/fork-again.js';
import { Beside } from '../compare/diagram-of-both.js';
import { bothOf } from '../compare/paired-rows.js';
import { PromptOfBoth, StateOfBoth } from '../compare/panel-of-both.js';
import { provenIn } from '../compare/proven-beginning.js';

/** @type {Record<string, [string, string]>} */
const KINDS = {
  same: ['=', 'the same'],
  changed: ['≠', 'other words'],
  only_a: ['A', 'only in A'],
  only_b: ['B', 'only in B'],
};
const TOTALS = [
  ['turns', 'Turns'],
  ['loopEnd', 'The loop ended'],
  ['end', 'All ended'],
  ['tokens', 'Tokens'],
  ['durationMs', 'Took'],
  ['deliveries', 'Texts outside'],
];
/** @param {string} name @param {any} value */
function told(name, value) {
  if (value === null || value === undefined || value === '') return '–';
  if (name === 'durationMs') return took(value);
  if (name === 'loopEnd' || name === 'end') return endName(value);
  if (typeof value !== 'object') return String(value).replaceAll('_', ' ');
  const parts = Object.entries(value).map(([key, item]) =>
    name === 'deliveries' ? `${item} ${deliveryName(key)}` : `${key}: ${item}`,
  );
  return parts.join(', ') || '–';
}
/** @param {string} turn */
const turnName = turn => turn.replace(':', ' ').replaceAll('/', ', ').replaceAll('_', ' ');
/** @param {Answers.CutAnswer} cut */
const edited = cut =>
  cut.edits
    .filter(edit => edit.kind !== 'agent')
    .map(edit => editName({ ...edit, value: edit.value?.replace(/[.]$/, '') }))
    .join('; ');
/** @param {Answers.CutAnswer} cut */
const withEdits = cut => (edited(cut) ? `, with ${edited(cut)}` : '');
// Where the forks were cut on the way from the one to the other.
const CALLED = ['a fork', 'a fork of a fork'];
/** @param {Answers.CompareAnswer} found @param {SideName} side */
function cutsOf(found, side) {
  const cuts = found.cuts.filter(cut => cut.side === side);
  if (!cuts.length) return '';
  const called = CALLED[cuts.length - 1] ?? `a fork, ${cuts.length} forks on`;
  const each = cuts.map(cut => `cut after #${cut.position}${withEdits(cut)}`);
  return ` ${side.toUpperCase()} is ${called}, ${each.join('; then ')}.`;
}

// Both are called by their first words; a fork, or another place of the same run, by what it is.
const MOST_OF_A_TITLE = 60;
/** @param {string} [title] */
const quoted = title => {
  if (!title) return 'A run without words';
  return title.length > MOST_OF_A_TITLE ? `“${title.slice(0, MOST_OF_A_TITLE)}…”` : `“${title}”`;
};
/** @param {Answers.CompareAnswer} found @param {string} other */
function calledIn(found, other) {
  const { a, b } = found.titles;
  if (other) return { head: `${quoted(a)} and its fork`, a: 'The run', b: 'Its fork' };
  if (found.a.run === found.b.run)
    return { head: `${quoted(a)}, at two places`, a: capital(found.a.place.text), b: capital(found.b.place.text) };
  return { head: `${quoted(a)} and ${quoted(b)}`, a: a || '(no words)', b: b || '(no words)' };
}

/**
 * @returns {{
 *   found: Signal<Answers.CompareAnswer | null>,
 *   error: Signal<Error | null>,
 *   both: Signal<Both | null>,
 *   failed: Signal<Error | null>,
 *   of: string,
 * }}
 */
const nothingYet = () => ({
  found: signal(null),
  error: signal(null),
  both: signal(null),
  failed: signal(null),
  of: '',
});
export const Diff = view((_, self) => {
  const state = self.once(() => {
    const made = nothingYet();
    let known = '';
    /** @param {Answers.CompareAnswer} found @param {string} other */
    const drawn = (found, other) =>
      bothOf(found, other).then(
        both => {
          if (made.found.peek() !== found) return;
          made.both.value = both;
          made.failed.value = null;
        },
        error => {
          made.failed.value = error;
        },
      );
    self.onEnd(
      effect(() => {
        const { query } = route.value;
        const a = query.get('a');
        const b = query.get('b');
        const other = query.get('other') ?? '';
        const key = `${a}|${b}|${other}|${other ? forked.value : ''}`;
        if (!a || !b) {
          made.found.value = null;
          return;
        }
        if (key === known) return;
        known = key;
        ask('compare', { a, b, other }).then(
          found => {
            if (known !== key) return null;
            if (made.of !== `${a}|${b}|${other}`) made.both.value = null;
            made.of = `${a}|${b}|${other}`;
            made.found.value = found;
            made.error.value = null;
            return drawn(found, other);
          },
          error => {
            made.error.value = error;
          },
        );
      }),
    );
    /** @param {KeyboardEvent} event */
    const heard = event => {
      if (event.key === '.' && isForPage(event)) next();
    };
    addEventListener('keydown', heard);
    self.onEnd(() => removeEventListener('keydown', heard));
    return made;
  });
  const found = state.found.value;
  const all = queried('all') === 'true';
  const other = queried('other');
  const called = found ? calledIn(found, other) : null;
  if (called) document.title = `${seen(called.head.slice(0, 80))} · Intersession`;
  const fields = html`
    <div class="filters" role="group" aria-label="What is compared">
      ${['a', 'b'].map(
        name => html`
          <label>
            ${name.toUpperCase()} <input
              type="search"
              class="wide"
              aria-label=${`Run ${name.toUpperCase()}, or a place of it`}
              value=${queried(name)}
              onChange=${event => setQuery({ [name]: event.target.value.trim() })} />
          </label>
        `,
      )}
      <label>
        in
        fork <input
          type="search"
          aria-label="The fork that B is in"
          value=${other}
          onChange=${event => setQuery({ other: event.target.value.trim() })} />
      </label>
      <button type="button" class="chip" aria-pressed=${all} onClick=${() => setQuery({ all: all ? '' : 'true' })}>
        what is the same, too
      </button>
    </div>
  `;
  return html`
    <div class="head">
      <div class="grow">
        ${called ? html`<p class="crumbs"><span>Compare</span></p>` : null}
        <h1>${called ? called.head : 'Compare'}</h1>
        ${found
          ? html`
              <p class="sum">
                ${found.same || !found.firstDivergence
                  ? html`<b>Nothing differs</b> in what was said and done.`
                  : html`
                      <b>First difference: ${turnName(found.firstDivergence.turn)}</b>, ${KINDS[
                        found.firstDivergence.kind
                      ][1]}. ${capital(found.firstDivergence.place.text)}.
                    `}
                ${cutsOf(found, 'a')}${cutsOf(found, 'b')}
              </p>
            `
          : null}
      </div>
      ${found?.cut ? html`<div class="acts"><${AgainButton} found=${found} /></div>` : null}
    </div>
    ${fields}
    ${state.error.value
      ? html`<${Failed} error=${state.error.value} />`
      : !queried('a') || !queried('b')
        ? html`
            <div class="empty">
              <h2>Pick two runs</h2>
              <p class="muted">
                In the list of runs, <kbd>x</kbd> picks the one that is chosen. Or name them here: an id, or a place
                such as ID@turn:2.
              </p>
            </div>
          `
        : !found
          ? html`<${Loading}/>`
          : html`
              <${Totals} found=${found} other=${other} called=${called} both=${state.both.value} />
              <div class="work compare-work">
                <section class="left" aria-label="Both in one diagram">
                  <${Beside} found=${found} both=${state.both.value} failed=${state.failed.value} other=${other} />
                </section>
                <${Panel} found=${found} both=${state.both.value} all=${all} other=${other} />
              </div>
            `}
  `;
});
let at = -1;
const next = () => {
  const all = [...document.querySelectorAll('.pair:not(.same) .sign')];
  if (all.length) {
    at = (at + 1) % all.length;
    all[at].scrollIntoView({ block: 'center' });
  }
};

/** @type {SideName[]} */
const SIDES = ['a', 'b'];
const TABS = [
  ['words', 'Words'],
  ['state', 'State'],
  ['lens', 'Prompts'],
];
/** @param {{ found: Answers.CompareAnswer, both: Both | null, all: boolean, other: string }} given */
const Panel = ({ found, both, all, other }) => {
  const tab = TABS.some(([name]) => name === queried('tab')) ? queried('tab') : 'words';
  /** @param {string} name */
  const choose = name => setQuery({ tab: name === 'words' ? '' : name });
  return html`
    <aside class="panel" aria-label="What differs">
      <${Tabs} label="What to see of both" id="tab-panel" tabs=${TABS} tab=${tab} choose=${choose} />
      <div class="tp" id="tab-panel" role="tabpanel" aria-labelledby=${`tab-${tab}`} tabindex="0">
        ${tab === 'state'
          ? html`<${StateOfBoth} found=${found} other=${other} />`
          : tab === 'lens'
            ? html`<${PromptOfBoth} found=${found} both=${both} other=${other} />`
            : html`
                <${Parts} found=${found} all=${all} other=${other} />
                <${Prefix} found=${found} both=${both} other=${other} />
              `}
      </div>
    </aside>
  `;
};
// Whether what both begin with is proven to be the same, and how much that is.
/** @type {View<{ found: Answers.CompareAnswer, both: Both | null, other: string }>} */
const Prefix = view(({ found, both, other }) => {
  const said = provenIn(found, both, other);
  if (!said) return null;
  return html`
    <p class=${`sec rec prefix ${said.ok ? 'ok' : 'no'}`}>
      <${Shield} ok=${said.ok} />
      <b>${said.ok ? 'Prefix proved' : 'Prefix not proved'}</b>
      <span class="muted">${said.ok ? `${said.events}as in A` : said.why}</span>
    </p>
  `;
});

/**
 * @param {{ found: Answers.CompareAnswer, other: string, called: Record<string, string>, both: Both | null }} given
 */
const Totals = ({ found, other, called, both }) => html`
  <table class="list compare">
    <caption class="vh">What came of both</caption>
    <colgroup><col class="w-fork" /><col class="w-outline" /></colgroup>
    <thead>
      <tr>
        <th scope="col"><span class="vh">Run</span></th>
        <th scope="col">Outline</th>
        ${TOTALS.map(([name, said]) => html`<th scope="col">${said}</th>`)}
      </tr>
    </thead>
    <tbody>
      ${SIDES.map(
        side => html`
          <tr>
            <th scope="row">
              <span class=${`ab ${side}`}>${side.toUpperCase()}</span> <a
                class="link"
                title=${called[side]}
                ...${link(
                  href('run', found[side].run, { at: found[side].place.position, fork: side === 'b' ? other : '' }),
                )}>
                ${called[side]}
              </a> <span class="mono muted">${(side === 'b' && other ? other : found[side].run).slice(0, 8)}</span>
            </th>
            <td data-name="Outline">${both ? html`<${Outline} run=${both[side].run} />` : null}</td>
            ${TOTALS.map(
              ([name, said]) => html`
                <td
                  data-name=${said}
                  class=${told(name, found.a.totals[name]) !== told(name, found.b.totals[name]) ? 'd' : ''}>
                  ${told(name, found[side].totals[name])}
                </td>
              `,
            )}
          </tr>
        `,
      )}
    </tbody>
  </table>
`;
/** @param {{ found: Answers.CompareAnswer, all: boolean, other: string }} given */
const Parts = ({ found, all, other }) => {
  const shown = found.turns.filter(turn => all || turn.kind !== 'same');
  const same = found.turns.length - found.turns.filter(turn => turn.kind !== 'same').length;
  return html`
    <ol class="parts-of" aria-label="Part by part">
      ${shown.map(
        turn => html`
          <li class=${`sec turn ${turn.kind}`}>
            <h2>
              <b title=${KINDS[turn.kind]?.[1]}>${KINDS[turn.kind]?.[0] ?? turn.kind}</b> ${turnName(
                turn.turn,
              )} <span class="muted">${KINDS[turn.kind]?.[1]}</span>
            </h2>
            <${Part} turn=${turn} other=${other} />
          </li>
        `,
      )}
    </ol>
    ${all ? null : html`<p class="as">${counted(same, 'part')} the same.</p>`}
  `;
};
/** @param {Record<string, any>} it @param {string} fork */
const where = (it, fork) =>
  html`<a class="num-link" ...${link(href('log', '', { at: it.place.position, fork }))}>#${it.place.position}</a>`;
/** @param {{ turn: Answers.TurnAnswer, other: string }} given */
const Part = ({ turn, other }) => {
  const words = turn.differs?.find(one => one.field === 'text')?.words;
  const it = turn.a ?? turn.b ?? {};
  const rest = (turn.differs ?? []).filter(one => one.field !== 'text');
  return html`
    <p class="small muted">
      ${it.who ? (it.who.startsWith('agent:') ? html`<${Who} lane=${laneOf(it.who)} />` : it.who) : ''}${it.to
        ? ` → ${short(it.to)}`
        : ''} ${turn.a ? html`A ${where(turn.a, '')} ` : null}${turn.b ? html`B ${where(turn.b, other)}` : null}
    </p>
    ${words
      ? html`
          <p>
            ${words.map((/** @type {{ of: string, text: string }} */ one) =>
              one.of === 'a'
                ? html`<del>${one.text}</del>`
                : one.of === 'b'
                  ? html`<ins>${one.text}</ins>`
                  : one.text,
            )}
          </p>
        `
      : it.text
        ? html`
            <p>
              ${turn.kind === 'only_a'
                ? html`<del>${it.text}</del>`
                : turn.kind === 'only_b'
                  ? html`<ins>${it.text}</ins>`
                  : it.text}
            </p>
          `
        : null}
    ${rest.map(
      one => html`
        <p class="small">
          <span class="muted">${one.field}</span> <del>${told('', one.a)}</del> <ins>${told('', one.b)}</ins>
        </p>
      `,
    )}
  `;
};
