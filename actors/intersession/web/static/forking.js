// Forking from where one stands: what is to be otherwise, who answers from there, and then both side by side.
import { html, signal, view } from './lib.js';
import { ask, inside, tell } from './api.js';
import { about, go, href, link } from './state.js';
import { Icon, copy, open, told } from './parts.js';
import { forkedOften } from './often.js';
import { can } from './deeds.js';
import { capital, ofKind, short } from './words.js';

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
  script: 'a script, a reply a line',
  none: 'nobody: only make it',
};
const NEEDS = {
  reply: 'What is said instead',
  message: 'What is asked instead',
  inject: 'What is said to the session',
  set: 'Its value',
};
const KEYED = { set: ['Which setting', 'session.agentToAgent.maxPingPongTurns'], inject: ['To which session', ''] };

// Where an edit goes: one that replaces an answer names that answer, all others the place itself.
export const placeOf = (kind, place) => {
  if (kind === 'message') return `${place.run.peek().id}@start`;
  const answer = place.answer;
  return ['reply', 'skip', 'drop'].includes(kind) && answer
    ? String(answer.position)
    : String(Math.max(place.position.peek(), 1));
};

const asked = (given, place) => {
  const edits = given.kind ? [{ kind: given.kind, key: given.key ?? '', value: given.value ?? '' }] : [];
  return { run: place.run.peek().id, at: placeOf(given.kind, place), edits, ...agentsOf(given) };
};
// Who answers in a fork, as it was chosen.
export function agentsOf(given) {
  const script = (given.script ?? '')
    .split('\n')
    .map(line => line.trim())
    .filter(Boolean);
  return {
    agents: given.who === 'none' ? {} : { '*': given.who === 'script' ? { script } : 'recorded' },
    onDivergence: given.who === 'live' ? 'live' : 'stop',
    carryOn: given.who !== 'none',
  };
}

async function made(given, place) {
  const run = place.run.peek();
  const params = asked(given, place);
  told.value = 'The fork is being made';
  open.value = {
    title: 'Making the fork',
    body: html`<p role="status">It is copied, and carried on to its end.</p>`,
  };
  try {
    const { result } = await tell('api/do', { method: 'forks.make', params });
    told.value = 'The fork is made';
    open.value = null;
    go(href('diff', '', { a: run.id, b: result.run, other: result.fork }));
    const left = result.state === 'diverged' ? result.divergence : null;
    const missing = result.missing ?? [];
    if (left || missing.length || result.state === 'running')
      open.value = {
        title: left ? 'It left the recording' : missing.length ? 'It waits' : 'It goes on still',
        body: html`
          ${left
            ? html`
                <p>${capital(left.place?.text ?? '')}: from here on there is nothing recorded that fits.</p>
                ${left.recorded ? html`<p>${thenOf(left.kind)}: ${left.recorded}</p>` : null}
                <p>${left.kind === 'tool' ? 'Its tool gives now' : 'It is asked now'}: ${left.now ?? ''}</p>
              `
            : missing.length
              ? html`
                  <p>Nobody answers for ${missing.join(', ')}. Carry it on with agents of your own:</p>
                  <pre>intersession fork ${result.fork.slice(0, 8)} --agent ID=SPEC</pre>
                `
              : html`<p>What it has come to is shown when you look again.</p>`}
        `,
      };
  } catch (error) {
    open.value = { title: 'No fork was made', body: html`<p class="alert">${error.message}</p>` };
  }
}

const MOST_TIMES = 50;

// What a divergence of this kind holds against what is there now.
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
          .filter(([name]) => name !== 'live' || !about.value.readOnly)
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

const Form = view(({ place, kind, who }, self) => {
  const state = self.once(() => ({ kind: signal(kind), who: signal(who), text: signal(null) }));
  const answer = place.answer;
  const chosen = state.kind.value;
  const key = KEYED[chosen];
  if (self.known !== chosen) {
    self.known = chosen;
    state.text.value = null;
    if (chosen === 'reply' && answer)
      ask('event', { at: answer.position }).then(
        event => {
          state.text.value = event.data?.text ?? event.data?.reply ?? answer.text;
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
      : null}
    ${key
      ? html`
          <label>
            ${key[0]}
            <br/>
            <input
              class="field"
              name="key"
              required
              value=${key[1] || place.run.peek().target} />
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
const ask_ = (place, title, kind, who) => {
  open.value = {
    title,
    button: 'Make the fork',
    done: given =>
      Number(given.times) > 1 ? forkedOften(asked(given, place), Number(given.times)) : made(given, place),
    body: html`<${Form} place=${place} kind=${kind} who=${who} />`,
  };
};
const kindOf = place => (place.answer ? 'reply' : 'message');
const whoOf = () => (about.value.readOnly ? 'stop' : 'live');
export const fork = place => ask_(place, 'Fork here', kindOf(place), whoOf(place));
export const whatIf = place => ask_(place, 'What if', kindOf(place), 'stop');

const command = (place, store) => `intersession fork ${place.run.peek().id} --at ${place.position.peek()}${store}`;
export const ForkButtons = ({ place, store }) => {
  if (!about.value.isOperator || inside.fork) return null;
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
export const ForksLink = ({ run }) =>
  html`<a class="link" ...${link(href('forks', '', { run: run.id }))}>Forks of this run</a>`;
