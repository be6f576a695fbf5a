// Why something happened, back to who began it, and what it led to.
import { html, view } from '../base/drawing.js';
import { capital, counted, ofKind, short, took } from '../base/words.js';
import { ask } from '../asking/api.js';
import { loaded } from '../asking/remembered.js';
import { Failed, Loading } from '../parts/answers.js';
import { Time } from '../parts/moments.js';
import { Badge, laneOf } from '../parts/speakers.js';
import { shown } from './changes.js';

// Times and durations as people read them; what is neither stays as it is.
/** @param {{ value: any, unit?: string }} given */
const measured = ({ value, unit }) => {
  if (typeof value !== 'number' || !unit) return shown(value);
  return unit === 'time' ? html`<${Time} ms=${value} dated />` : took(value);
};
// Who did what to whom. A whole sentence names everybody itself.
/** @param {{ who: string | null, to: string | null, how: string, way: string, topic: string }} given */
const saying = ({ who, to, how, way, topic }) => {
  if (/[.]$/.test(how)) return how;
  const did = how || (way === 'said' ? '' : ofKind(topic.replace(/\.\d+$/, '')));
  return [who ? short(who) : '', did, to ? `→ ${short(to)}` : ''].filter(Boolean).join(' ');
};
/** @param {string} text */
const brief = text => (text.length > 90 ? `${text.slice(0, 88).replace(/\s\S*$/, '')} …` : text);
/** @param {{ told: Answers.DescribedEvent & { kind?: string }, place: Place }} given */
const Told = ({ told: one, place }) => html`
  <li>
    <button type="button" class="num-link n" onClick=${() => place.toPosition(one.position)}>
      #${one.position}
    </button>
    <span class="mk">
      ${one.who?.startsWith('agent:')
        ? html`<${Badge} lane=${laneOf(one.who)} />`
        : html`<span class="b"></span>`}
    </span>
    <span>
      <span class=${one.kind ? 'strong' : ''}>
        ${saying(one)}
      </span>
      ${one.text && one.text !== one.how ? html`<br/><span class="w">${one.text}</span>` : null}
    </span>
  </li>
`;
// What a story tells of what something led to: what only carries words on gives its place to what came of it.
/** @param {Answers.EffectAnswer} one */
const isTold = one => (one.how || one.way === 'said') && !one.carried;
/** @type {(effects: Answers.EffectAnswer[]) => Answers.EffectAnswer[]} */
const told = effects => effects.flatMap(one => (isTold(one) ? [one] : told(one.effects)));
// What came of one thing alone stands below it; only where it parts, it goes in.
/** @type {(one: Answers.EffectAnswer) => Answers.EffectAnswer[]} */
const inRow = one => {
  const after = told(one.effects);
  return after.length === 1 ? [one, ...inRow(after[0])] : [one];
};
const MOST_LED = 12; // in a row, before the rest is left to whoever goes there
/** @param {{ effects: Answers.EffectAnswer[], place: Place, deep: number }} given */
const Effects = ({ effects, place, deep }) => html`
  <ul>
    ${told(effects).flatMap(inRow).map((one, number) => {
      if (number > MOST_LED) return null;
      if (number === MOST_LED) return html`<li class="muted">and more</li>`;
      const below = told(one.effects);
      const parts = below.length > 1;
      return html`
        <li>
          <button type="button" class="num-link" onClick=${() => place.toPosition(one.position)}>
            #${one.position}
          </button> ${saying(one)}
          ${one.way === 'said' ? html`<span class="muted"> ${brief(one.text)}</span>` : null}${parts && deep
            ? html`<${Effects} effects=${one.effects} place=${place} deep=${deep - 1} />`
            : null}${one.more || (parts && !deep) ? html` <span class="muted">and more</span>` : null}
        </li>
      `;
    })}
  </ul>
`;
/** @type {View<{ place: Place }>} */
export const Why = view(({ place }, self) => {
  const run = place.run.value;
  const position = place.position.value;
  const atEnd = place.index.value === place.length;
  const found = loaded(self, 'why', `${position}/${atEnd}/${run.steps}`, async stop => {
    /** @type {[Answers.WhyAnswer, any]} */
    const [why, led] = await Promise.all([
      ask('why', { of: atEnd ? run.id : position }, { signal: stop }),
      ask('why', { of: position, forward: true }, { signal: stop }),
    ]);
    return { why, led: /** @type {Answers.EffectsAnswer} */ (led) };
  });
  if (!found) return html`<${Loading}/>`;
  if (found.error) return html`<${Failed} error=${found.error} retry=${found.again} />`;
  const { why, led } = found;
  const story = [why.event, ...why.causes].filter((one, number) => number === 0 || (one.how && !one.carried));
  return html`
    <div>
      ${why.waits?.text
        ? html`
            <div class="sec">
              <h2>It is not over</h2>
              <p>
                ${why.waits.text}.
                ${why.waits.sinceMs ? html` Since <${Time} ms=${why.waits.sinceMs} dated />.` : null}
                ${why.waits.untilMs ? html` Until <${Time} ms=${why.waits.untilMs} dated /> at most.` : null}
              </p>
            </div>
          `
        : null}
      ${why.explanations.length
        ? html`
            <div class="sec">
              <h2>${atEnd && !why.waits ? 'Why it ended so' : 'Why it is so'}</h2>
              ${why.explanations.map(
                one => html`
                  <div class="rule">
                    <p><b>${capital(one.text)}</b></p>
                    <dl class="kv">
                      <dt>Rule</dt>
                      <dd>
                        ${one.rule}
                        ${one.asDecided === false
                          ? html` <b class="bad">today it would say something else</b>`
                          : null}
                      </dd>
                      ${(one.inputs ?? []).map(
                        (/** @type {Record<string, any> & { value: any }} */ input) => html`
                          <dt>${input.name}</dt>
                          <dd>
                            ${measured(input)} <span class="muted small">
                              ${input.setBy === 'default' ? 'the default; nobody set it' : `by ${input.setBy}`}
                            </span>
                            ${input.position
                              ? html` <button
                                  type="button"
                                  class="num-link"
                                  onClick=${() => place.toPosition(input.position)}>
                                  #${input.position}
                                </button>`
                              : null}
                          </dd>
                        `,
                      )}
                    </dl>
                    ${one.instead?.length
                      ? html`
                          <div>
                            <b>What would have changed it</b>
                            <ul>
                              ${one.instead.map(
                                (/** @type {{ change: string, verdict?: string }} */ other) => html`
                                  <li>${other.change}${other.verdict ? ` → ${other.verdict}` : ''}</li>
                                `,
                              )}
                            </ul>
                          </div>
                        `
                      : null}
                  </div>
                `,
              )}
            </div>
          `
        : null}
      <div class="sec">
        <h2>
          Causes, back
          to ${why.root
            ? (why.root.by?.replace(/^operator$/, 'the operator') ??
              {
                person: 'a person',
                operator: 'the operator',
                timer: 'a timer',
                start: 'a start',
                import: 'an import',
                system: 'the system',
              }[why.root.kind] ??
              why.root.kind)
            : 'what is not within reach'}
        </h2>
        <ol class="chain">${story.map(told => html`<${Told} told=${told} place=${place} />`)}</ol>
      </div>
      <div class="sec tree">
        <h2>What it led to</h2>
        ${told(led.effects).length
          ? html`<${Effects} effects=${led.effects} place=${place} deep=${3} />`
          : html`<p class="muted">Nothing.</p>`}
        ${led.open.length ? html`<p>${counted(led.open.length, 'thing')} of it still open.</p>` : null}
      </div>
    </div>
  `;
});
