// What stood in both of two runs at the places that are compared, and what the agents of each were given there.
import { html, signal, view } from '../base/drawing.js';
import { counted, ofKind, short, textOf } from '../base/words.js';
import { ask } from '../asking/api.js';
import { loaded } from '../asking/remembered.js';
import { Failed, Loading } from '../parts/answers.js';
import { Message } from '../parts/message.js';
import { Seg } from '../parts/tabs.js';
import { Changes } from '../run/changes.js';

// Times, ids and positions differ in any two runs, and say nothing of either.
const OF_EACH = /(At|Ms|Id|since|position|accepted|earlier|transcript|digest)$/i;
/** @param {unknown} value */
const isPlain = value => value === null || typeof value !== 'object';
/** @param {string} path @param {Record<string, any>} row @param {Map<string, any>} into */
function fieldsOf(path, row, into) {
  for (const [name, value] of Object.entries(row)) {
    if (OF_EACH.test(name)) continue;
    const said = name.replace(/([a-z])([A-Z])/g, (_, a, b) => `${a} ${b.toLowerCase()}`);
    if (isPlain(value) || Array.isArray(value)) into.set(`${path}/${said}`, isPlain(value) ? value : String(value));
    else fieldsOf(`${path}/${said}`, value, into);
  }
}
/** @param {Record<string, any>} run */
const stepOf = run =>
  run.turn ? `turn ${run.turn}` : `${ofKind(run.step ?? 'run')} of ${short(run.sessionKey)}`;
/** @param {Answers.StateAnswer} state */
function standing(state) {
  /** @type {Map<string, any>} */
  const found = new Map();
  for (const session of state.sessions) fieldsOf(`sessions/${session.key}`, session, found);
  for (const run of state.runs)
    for (const name of ['status', 'reply', 'error']) if (run[name]) found.set(`${stepOf(run)}/${name}`, run[name]);
  for (const name of /** @type {const} */ (['exchanges', 'spawns']))
    for (const flow of state[name] ?? []) fieldsOf(name.replace(/s$/, ''), flow, found);
  return found;
}
/** @param {Answers.StateAnswer} a @param {Answers.StateAnswer} b */
export function otherwise(a, b) {
  const [one, two] = [standing(a), standing(b)];
  return [...new Set([...one.keys(), ...two.keys()])]
    .map(path => ({ path, before: one.get(path), after: two.get(path) }))
    .filter(({ before, after }) => String(before ?? '') !== String(after ?? ''));
}

/** @type {View<{ found: Answers.CompareAnswer, other: string }>} */
export const StateOfBoth = view(({ found, other }, self) => {
  const [a, b] = [found.a, found.b];
  const key = `${a.run}/${a.place.position}/${b.run}/${b.place.position}/${other}`;
  const both = loaded(self, 'state', key, async stop => {
    /** @param {Answers.ComparedAnswer} side @param {string} fork */
    const of = (side, fork) =>
      ask('state', { of: side.run, at: side.place.position, messages: 0, fork }, { signal: stop });
    return { states: await Promise.all([of(a, ''), of(b, other)]) };
  });
  if (!both) return html`<${Loading}/>`;
  if (both.error) return html`<${Failed} error=${both.error} retry=${both.again} />`;
  return html`
    <div>
      <p class="as"><span>A ${a.place.text}. B ${b.place.text}.</span></p>
      <div class="sec">
        <h2>What stands otherwise in B</h2>
        <${Changes} changes=${otherwise(...both.states)} none="Nothing: in both the same stood there." />
      </div>
    </div>
  `;
});

// The first agent that was asked behind the first difference, or the one whose answer differs there:
// what it was given in A, and in B.
// Of an import, which has no runs, an agent is asked with a message, which its position names.
/** @param {Side} side */
const asked = side =>
  side.steps.flatMap(({ kind, position, runId, to }) =>
    kind === 'run_started'
      ? [{ position, runId }]
      : side.run.imported && kind === 'message_recorded' && to
        ? [{ position, runId: `#${position}` }]
        : [],
  );
/** @param {Side} side @param {number} from */
const askedBehind = (side, from) => asked(side).find(one => one.position >= from)?.runId;
/** @param {Side} side @param {number} at */
const answersAt = (side, at) => {
  const before = asked(side).filter(one => one.position <= at);
  if (side.run.imported) return before.at(-1)?.runId;
  const runId = side.steps.findLast(step => step.position <= at)?.runId;
  return before.some(one => one.runId === runId) ? runId : undefined;
};
/** @type {Record<string, (side: Side, at: number) => string | undefined>} */
const ASKED = { next: askedBehind, given: answersAt };
const WHICH = [
  ['next', 'What the next was given'],
  ['given', 'What was given for this answer'],
];
/** @param {Message} message */
const whatOf = message => `${message.role} ${textOf(message.content)} ${JSON.stringify(message.content)}`;
// What both were given is looked at from here on; before it, a long transcript is not read.
/** @param {...(Answers.LensAnswer | null)} lenses */
const shownFrom = (...lenses) => Math.max(...lenses.map(lens => lens?.before ?? 0));
/** @param {Answers.LensAnswer | null} lens @param {number} from */
const givenBehind = (lens, from) =>
  lens ? [...lens.messages, ...(lens.message ? [lens.message] : [])].slice(from - (lens.before ?? 0)) : [];
// The very same message in the same place has the same before it. Where there is none such, all is looked at.
/** @param {Answers.LensAnswer | null} a @param {Answers.LensAnswer | null} b */
const showWhereTheyPart = (a, b) => {
  const from = shownFrom(a, b);
  return !from || (a && b && givenBehind(a, from)[0]?.id === givenBehind(b, from)[0]?.id);
};
/** @param {string} which @param {number} same @param {Answers.LensAnswer} a @param {Answers.LensAnswer} b */
const alike = (which, same, a, b) => {
  const context = a.systemContext !== b.systemContext ? ', the system context is another one' : '';
  const what = which === 'next' ? 'The next prompt behind the first difference' : 'The prompt of the first difference';
  return `${what}: ${counted(same, 'message')} the same in both${context}.`;
};
/** @type {View<{ found: Answers.CompareAnswer, both: Both | null, other: string }>} */
export const PromptOfBoth = view(({ found, both, other }, self) => {
  const chosen = self.once(() => signal('next'));
  const which = chosen.value;
  const first = found.turns.find(turn => turn.kind !== 'same');
  const runs = both
    ? /** @type {SideName[]} */ (['a', 'b']).map(
        side => first?.[side] && ASKED[which](both[side], first[side].place.position),
      )
    : [];
  const lenses = loaded(self, 'lens', `${runs.join('/')}/${other}`, async stop => {
    /** @param {string | undefined} run @param {string} fork @param {boolean} all */
    const of = (run, fork, all) => (run ? ask('lens', { run, fork, all }, { signal: stop }) : null);
    /** @param {boolean} all */
    const both = all => Promise.all([of(runs[0] ?? undefined, '', all), of(runs[1] ?? undefined, other, all)]);
    const ends = await both(false);
    return { both: showWhereTheyPart(ends[0], ends[1]) ? ends : await both(true) };
  });
  if (!first) return html`<p class="loading">Nothing differs: every agent was given the same.</p>`;
  if (!both || !lenses) return html`<${Loading}/>`;
  if (lenses.error) return html`<${Failed} error=${lenses.error} retry=${lenses.again} />`;
  const choice = html`
    <div class="bar">
      <${Seg}
        label="Whose prompt"
        value=${which}
        options=${WHICH}
        onChange=${(/** @type {string} */ name) => {
          chosen.value = name;
        }} />
    </div>
  `;
  const [a, b] = lenses.both;
  if (!a && !b)
    return html`
      ${choice}
      <p class="loading">
        ${which === 'next'
          ? 'No agent was asked behind the first difference.'
          : 'The first difference is no answer of an agent.'}
      </p>
    `;
  const [one, two] = [givenBehind(a, shownFrom(a, b)), givenBehind(b, shownFrom(a, b))];
  let same = 0;
  while (same < one.length && same < two.length && whatOf(one[same]) === whatOf(two[same])) same++;
  /** @param {SideName} name @param {Answers.LensAnswer | null} lens @param {Message[]} rest */
  const side = (name, lens, rest) => html`
    <div class="sec">
      <h2>
        <span class=${`ab ${name}`}>${name.toUpperCase()}</span> ${lens
          ? html`${short(lens.sessionKey)} was given <span class="muted">#${lens.place.position}</span>`
          : which === 'next' ? 'nobody was asked any more' : 'nobody answered there'}
      </h2>
      ${rest.map(message => html`<${Message} message=${message} owner=${lens?.sessionKey} />`)}
      ${lens && !rest.length ? html`<p class="muted">Nothing besides.</p>` : null}
    </div>
  `;
  return html`
    <div>
      ${choice}
      ${a && b ? html`<p class="as"><span>${alike(which, shownFrom(a, b) + same, a, b)}</span></p>` : null}
      ${side('a', a, one.slice(same))} ${side('b', b, two.slice(same))}
    </div>
  `;
});
