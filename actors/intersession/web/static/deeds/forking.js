// Forking from where one stands: what is to be otherwise, who answers from there, and then both side by side.
import { html, signal, view } from '../base/drawing.js';
import { capital, ofKind, short } from '../base/words.js';
import { about } from '../asking/about.js';
import { go, href } from '../asking/address.js';
import { ask, inside, tell } from '../asking/api.js';
import { Icon } from '../parts/icons.js';
import { copy, open, say } from '../parts/window.js';
import { forkedOften } from './fork-many.js';
import { can } from './rights.js';

const EDITS = [
  ['reply', 'another answer'],
  ['message', 'another message at the start'],
  ['skip', 'this answer: nothing to say'],
  ['drop', 'this answer: left out'],
  ['set', 'another setting'],
  ['inject', 'a further message'],
  ['', 'nothing'],
];
const WHO = {
  live: 'as recorded; where that ends, the agents of this host',
  stop: 'as recorded; stop where something differs',
  loose: 'as recorded at its place, whatever was said before it',
  script: 'a script, a reply a line',
  none: 'nobody: only make it',
};
/** @type {Record<string, string>} */
const NEEDS = {
  reply: 'What is said instead',
  message: 'What is asked instead',
  inject: 'What is said to the session',
  set: 'Its value',
};
/** @type {Record<string, [string, string]>} */
const KEYED = { set: ['Which setting', 'session.agentToAgent.maxPingPongTurns'], inject: ['To which session', ''] };

// Where one stood when one asked: a place at the head goes on while one writes.
/** @param {Place} place */
const standing = place => {
  const { id, target } = place.run.peek();
  return { run: id, target, position: Math.max(place.position.peek(), 1), answer: place.answer };
};
// Where an edit goes: one that replaces an answer names that answer, all others the place itself.
/** @param {string} kind @param {{ run: string, position: number, answer?: Step }} how */
const placeOf = (kind, { run, position, answer }) => {
  if (kind === 'message') return `${run}@start`;
  return String(['reply', 'skip', 'drop'].includes(kind) && answer ? answer.position : position);
};

/** @param {Record<string, any>} given @param {Standing} at */
const asked = (given, at) => {
  const edits = given.kind ? [{ kind: given.kind, key: given.key ?? '', value: given.value ?? '' }] : [];
  return { run: at.run, at: placeOf(given.kind, at), edits, ...agentsOf(given) };
};
// Who answers in a fork, as it was chosen.
/** @param {Record<string, any>} given */
export function agentsOf(given) {
  const script = (given.script ?? '')
    .split('\n')
    .map((/** @type {string} */ line) => line.trim())
    .filter(Boolean);
  return {
    agents: given.who === 'none' ? {} : { '*': given.who === 'script' ? { script } : 'recorded' },
    onDivergence: given.who === 'live' ? 'live' : 'stop',
    loose: given.who === 'loose',
    carryOn: given.who !== 'none',
  };
}

// The fork is made in the window that asked for it. Whoever has closed that meanwhile stays where they are.
/** @param {Record<string, any>} params @param {Shown | null} asking */
async function made(params, asking) {
  const { result } = await tell('api/do', { method: 'forks.make', params });
  if (open.peek() !== asking) {
    say('The fork is made: it stands on the page Forks');
    return;
  }
  say('The fork is made');
  go(href('diff', '', { a: params.run, b: result.run, other: result.fork }));
  open.value = stillOpen(result, params);
}
// A fork that has left its recording is made again: each recorded answer is then given for its place alone.
/** @param {Record<string, any>} params */
const goLoosely = params => made({ ...params, loose: true, onDivergence: 'stop' }, open.peek());
// What is to be told of a fork that has not come to its end.
/** @param {Record<string, any>} result @param {Record<string, any>} params */
function stillOpen(result, params) {
  const left = result.state === 'diverged' ? result.divergence : null;
  const missing = result.missing ?? [];
  if (left)
    return {
      title: 'It left the recording',
      // Recorded answers can be given for their place alone, once.
      ...(params.loose ? {} : { button: 'Go on loosely', doing: LOOSELY, done: () => goLoosely(params) }),
      body: html`
        <p>${capital(left.place?.text ?? '')}: from here on there is nothing recorded that fits.</p>
        ${left.recorded ? html`<p>${thenOf(left.kind)}: ${left.recorded}</p>` : null}
        <p>${left.kind === 'tool' ? 'Its tool gives now' : 'It is asked now'}: ${left.now ?? ''}</p>
        ${left.differs.map(
          (/** @type {Differs} */ one) => html`
            <p class="small">
              <b>${capital(one.part)}</b> differs.<br/>Then: ${one.then ?? 'nothing'}<br/>Now: ${one.now ?? 'nothing'}
            </p>
          `,
        )}
        <p class="muted">
          Behind this window both stand side by side, with what differs.
          ${params.loose ? '' : ` ${LOOSELY}`}
        </p>
      `,
    };
  if (missing.length)
    return {
      title: 'It waits',
      body: html`
        <p>Nobody answers for ${missing.join(', ')}. Carry it on with agents of your own:</p>
        <pre>intersession fork ${result.fork.slice(0, 8)} --agent ID=SPEC</pre>
      `,
    };
  if (result.state !== 'running') return null;
  return {
    title: 'It goes on still',
    body: html`<p>What it has come to is shown when you look again.</p>`,
  };
}

const LOOSELY = 'Loosely it is made anew, and each recorded answer is given at its place.';
const MOST_TIMES = 50;

// What a divergence of this kind holds against what is there now.
/** @param {string} kind */
function thenOf(kind) {
  if (kind === 'tool') return 'Its tool gave then';
  return kind === 'open' ? 'It was asked then' : 'It answered then';
}

export const HowOften = ({ times = '1' }) => html`
  <label>
    How often<br/><input class="field" name="times" type="number" min="1" max=${MOST_TIMES} value=${times} required />
  </label>
  <p class="muted small">More than once: each time a fork of its own, and a table of how they came out.</p>
`;

/** @type {View<{ who: string, chosen?: Signal<string> }>} */
export const WhoAnswers = view(({ who, chosen }, self) => {
  const now = self.once(() => chosen ?? signal(who));
  return html`
    <label>
      Who answers from there<br/>
      <select
        class="field"
        name="who"
        onChange=${event => {
          now.value = event.target.value;
        }}>
        ${Object.entries(WHO)
          .filter(([name]) => name !== 'live' || !about.value?.readOnly)
          .map(([name, said]) => html`<option value=${name} selected=${now.value === name}>${capital(said)}</option>`)}
      </select>
    </label>
    ${now.value === 'script'
      ? html`
          <label>
            Replies, one a line, in the order in which they are asked for<br/>
            <textarea name="script" required></textarea>
          </label>
        `
      : null}
  `;
});

/** @type {() => Signal<string | null>} */
const noText = () => signal(null);
/** @type {View<{ at: Standing, kind: string, who: string }>} */
const Form = view(({ at, kind, who }, self) => {
  const state = self.once(() => ({ kind: signal(kind), who: signal(who), text: noText(), known: '' }));
  const { answer } = at;
  const chosen = state.kind.value;
  const key = KEYED[chosen];
  if (state.known !== chosen) {
    state.known = chosen;
    state.text.value = null;
    if (chosen === 'reply' && answer)
      ask('event', { at: answer.position }).then(
        event => {
          state.text.value = event.said ?? answer.text;
        },
        () => {},
      );
  }
  const replaced = ['reply', 'skip', 'drop'].includes(chosen);
  return html`
    <p>
      All that this run touches is copied as it stood, to a log of its own. The recorded run is not touched,




      and <b>nothing of the fork reaches anybody</b>.
    </p>
    <label>
      What is otherwise<br/>
      <select
        class="field"
        name="kind"
        onChange=${event => {
          state.kind.value = event.target.value;
        }}>
        ${EDITS.map(
          ([name, said]) => html`
            <option
              value=${name}
              selected=${chosen === name}
              disabled=${!answer && ['reply', 'skip', 'drop'].includes(name)}>
              ${capital(said)}
            </option>
          `,
        )}
      </select>
    </label>
    ${replaced && answer
      ? html`
          <p class="muted small">
            In place of ${answer.turn ? `turn ${answer.turn}` : ofKind(answer.kind)},




            #${answer.position}${answer.who ? `, by ${short(answer.who)}` : ''}.
          </p>
        `
      : chosen === 'message'
        ? null
        : html`<p class="muted small">From after #${at.position} on.</p>`}
    ${key
      ? html`
          <label>
            ${key[0]}
            <br/>
            <input
              class="field"
              name="key"
              required
              value=${key[1] || at.target} />
          </label>
        `
      : null}
    ${NEEDS[chosen]
      ? html`
          <label>
            ${NEEDS[chosen]}
            <br/>
            <textarea name="value" required autofocus>${state.text.value ?? ''}</textarea>
          </label>
        `
      : null}
    <${WhoAnswers} chosen=${state.who} />
    ${state.who.value === 'none' ? null : html`<${HowOften}/>`}
  `;
});
/** @param {Place} place @param {string} title @param {string} who */
const askFor = (place, title, who) => {
  const at = standing(place);
  /** @type {Shown} */
  const asking = {
    title,
    button: 'Make the fork',
    doing: 'It is copied, and carried on to its end.',
    done: given =>
      Number(given.times) > 1
        ? forkedOften(asked(given, at), Number(given.times))
        : made(asked(given, at), asking),
    body: html`<${Form} at=${at} kind=${at.answer ? 'reply' : 'message'} who=${who} />`,
  };
  open.value = asking;
};
const whoOf = () => (about.value?.readOnly ? 'stop' : 'live');
/** @param {Place} place */
export const fork = place => askFor(place, 'Fork here', whoOf());
/** @param {Place} place */
export const whatIf = place => askFor(place, 'What if', 'stop');

/** @param {Place} place @param {string} store */
const command = (place, store) => `intersession fork ${place.run.peek().id} --at ${place.position.peek()}${store}`;
/** @param {{ place: Place, store: string }} given */
export const ForkButtons = ({ place, store }) => {
  if (!about.value?.isOperator || inside.fork) return null;
  if (!can('forks.make'))
    return html`
      <button
        class="btn"
        type="button"
        title="Copy the command that forks here"
        onClick=${() => copy(command(place, store), 'Command')}>
        <${Icon} name="fork" />Fork by command
      </button>
    `;
  return html`
    <button class="btn pri" type="button" onClick=${() => fork(place)}><${Icon} name="fork" />Fork here</button>
    <button class="btn" type="button" onClick=${() => whatIf(place)}><${Icon} name="branch" />What if</button>
  `;
};
