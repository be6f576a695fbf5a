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
const isPlain = value => value === null || typeof value !== 'object';
function fieldsOf(path, row, into) {
  for (const [name, value] of Object.entries(row)) {
    if (OF_EACH.test(name)) continue;
    const said = name.replace(/([a-z])([A-Z])/g, (_, a, b) => `${a} ${b.toLowerCase()}`);
    if (isPlain(value) || Array.isArray(value)) into.set(`${path}/${said}`, isPlain(value) ? value : String(value));
    else fieldsOf(`${path}/${said}`, value, into);
  }
}
const stepOf = run =>
  run.turn ? `turn ${run.turn}` : `${ofKind(run.step ?? 'run')} of ${short(run.sessionKey)}`;
function standing(state) {
  const found = new Map();
  for (const session of state.sessions) fieldsOf(`sessions/${session.key}`, session, found);
  for (const run of state.runs)
    for (const name of ['status', 'reply', 'error']) if (run[name]) found.set(`${stepOf(run)}/${name}`, run[name]);
  for (const name of ['exchanges', 'spawns'])
    for (const flow of state[name] ?? []) fieldsOf(name.replace(/s$/, ''), flow, found);
  return found;
}
export function otherwise(a, b) {
  const [one, two] = [standing(a), standing(b)];
  return [...new Set([...one.keys(), ...two.keys()])]
    .map(path => ({ path, before: one.get(path), after: two.get(path) }))
    .filter(({ before, after }) => String(before ?? '') !== String(after ?? ''));
}

export const StateOfBoth = view(({ found, other }, self) => {
  const [a, b] = [found.a, found.b];
  const key = `${a.run}/${a.place.position}/${b.run}/${b.place.position}/${other}`;
  const both = loaded(self, 'state', key, async stop => {
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
const isBegun = step => step.kind === 'run_started';
const askedBehind = (side, from) => side.steps.find(step => isBegun(step) && step.position >= from)?.runId;
const answersAt = (side, at) => {
  const runId = side.steps.findLast(step => step.position <= at)?.runId;
  return side.steps.some(step => isBegun(step) && step.runId === runId && step.position <= at) ? runId : undefined;
};
const ASKED = { next: askedBehind, given: answersAt };
const WHICH = [
  ['next', 'What the next was given'],
  ['given', 'What was given for this answer'],
];
const whatOf = message => `${message.role} ${textOf(message.content)} ${JSON.stringify(message.content)}`;
// What both were given is looked at from here on; before it, a long transcript is not read.
const shownFrom = (...lenses) => Math.max(...lenses.map(lens => lens?.before ?? 0));
const givenBehind = (lens, from) =>
  lens ? [...lens.messages, ...(lens.message ? [lens.message] : [])].slice(from - (lens.before ?? 0)) : [];
// The very same message in the same place has the same before it. Where there is none such, all is looked at.
const showWhereTheyPart = (a, b) => {
  const from = shownFrom(a, b);
  return !from || (a && b && givenBehind(a, from)[0]?.id === givenBehind(b, from)[0]?.id);
};
const alike = (which, same, a, b) => {
  const context = a.systemContext !== b.systemContext ? ', the system context is another one' : '';
  const what = which === 'next' ? 'The next prompt behind the first difference' : 'The prompt of the first difference';
  return `${what}: ${counted(same, 'message')} the same in both${context}.`;
};
export const PromptOfBoth = view(({ found, both, other }, self) => {
  const chosen = self.once(() => signal('next'));
  const which = chosen.value;
  const first = found.turns.find(turn => turn.kind !== 'same');
  const runs = both
    ? ['a', 'b'].map(side => first?.[side] && ASKED[which](both[side], first[side].place.position))
    : [];
  const lenses = loaded(self, 'lens', `${runs.join('/')}/${other}`, async stop => {
    const of = (run, fork, all) => (run ? ask('lens', { run, fork, all }, { signal: stop }) : null);
    const both = all => Promise.all([of(runs[0], '', all), of(runs[1], other, all)]);
    const ends = await both(false);
    return { both: showWhereTheyPart(...ends) ? ends : await both(true) };
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
        onChange=${name => {
          chosen.value = name;
        }} />
    </div>
  `;
  const [a, b] = lenses.both;
  if (!a && !b)
    return html`
      ${choice}
      <p class="loading">
        ${both.a.run.imported && both.b.run.imported
          ? 'What agents were given is not in an imported record.'
          : which === 'next'
            ? 'No agent was asked behind the first difference.'
            : 'The first difference is no answer of an agent.'}
      </p>
    `;
  const [one, two] = [givenBehind(a, shownFrom(a, b)), givenBehind(b, shownFrom(a, b))];
  let same = 0;
  while (same < one.length && same < two.length && whatOf(one[same]) === whatOf(two[same])) same++;
  const side = (name, lens, rest) => html`
    <div class="sec">
      <h2>
        <span class=${`ab ${name}`}>${name.toUpperCase()}</span> ${lens
          ? html`${short(lens.sessionKey)} was given <span class="muted">#${lens.place.position}</span>`
          : both[name].run.imported
            ? 'what its agents were given is not in an imported record'
            : which === 'next' ? 'nobody was asked any more' : 'nobody answered there'}
      </h2>
      ${rest.map(message => html`<${Message} message=${message} owner=${lens.sessionKey} />`)}
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
