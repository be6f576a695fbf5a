// What agents were given: whoever has answered at the place, and whoever is asked next.
import { batch, html, signal, view } from '../base/drawing.js';
import { counted, short, took } from '../base/words.js';
import { queried, setQuery } from '../asking/address.js';
import { ask } from '../asking/api.js';
import { loaded } from '../asking/remembered.js';
import { Failed, Loading } from '../parts/answers.js';
import { Shield } from '../parts/icons.js';
import { Message } from '../parts/message.js';
import { Position, Time } from '../parts/moments.js';
import { Seg } from '../parts/tabs.js';

// Shows what an agent was given in a run: at the run's own place, where it is one of the run that is looked at.
/** @param {Place} place @param {string} runId @param {number} [position] */
export function showGiven(place, runId, position) {
  const isOwn = place.steps.some(step => step?.kind === 'run_started' && step.runId === runId);
  if (isOwn && position) place.toPosition(position);
  setQuery({ tab: 'lens', lens: isOwn && position ? '' : runId });
}
/** @param {{ place: Place, who: string, runId: string, at?: number }} given */
export const Given = ({ place, who, runId, at }) => html`
  <button
    type="button"
    class="num-link given"
    title=${`What ${short(who)} had been given`}
    onClick=${() => showGiven(place, runId, at)}>
    prompt
  </button>
`;

/** @param {Step} step */
const whoOf = step => short(step.who);
/** @param {{ index: number }} given */
const None = ({ index }) => html`
  <p class="loading">No agent was asked ${index ? 'yet' : 'before this place'}.</p>
`;
// `lens` in the address is `given`, `next`, or a run by its id.
/** @type {View<{ place: Place }>} */
export const Lens = view(({ place }, self) => {
  const index = place.index.value;
  place.loaded.value;
  const named = queried('lens');
  const { given, next, attempt, first } = place.prompts;
  /** @type {Record<string, Step | undefined>} */
  const both = { given, next };
  const which = named in both ? (both[named] ? named : first) : named ? '' : first;
  const chosen = which ? both[which]?.runId : named;
  /** @type {{ run?: string, attempt?: number }} */
  const asked = which === 'given' ? { run: chosen, attempt } : { run: chosen };
  const found = chosen
    ? loaded(self, 'lens', `${chosen}/${asked.attempt ?? ''}`, stop => ask('lens', asked, { signal: stop }))
    : null;
  if (!chosen) return html`<${None} index=${index} />`;
  const options = [
    ...(given ? [['given', `What ${whoOf(given)} was given`]] : []),
    ...(next ? [['next', `What ${whoOf(next)} is given next`]] : []),
  ];
  return html`
    <div>
      ${options.length > 1 || !which
        ? html`
            <div class="bar">
              <${Seg}
                label="Whose prompt"
                value=${which}
                options=${options}
                onChange=${(/** @type {string} */ name) => setQuery({ lens: name === first ? '' : name })} />
            </div>
          `
        : null}
      ${!found
        ? html`<${Loading}/>`
        : found.error
          ? html`<${Failed} error=${found.error} retry=${found.again} />`
          : html`<${Prompt} found=${found} asked=${asked} place=${place} ahead=${which === 'next'} />`}
    </div>
  `;
});

// It begins at its end, and is read back page by page.
/** @type {(before: number) => { earlier: Signal<any[]>, before: Signal<number>, error: Signal<Error | null> }} */
const readFrom = before => ({ earlier: signal([]), before: signal(before), error: signal(null) });
/** @type {View<{ found: Answers.LensAnswer, asked: Record<string, any> }>} */
const Transcript = view(({ found, asked }, self) => {
  const state = self.once(() => readFrom(found.before ?? 0));
  const readBack = async () => {
    const before = state.before.peek();
    try {
      const page = await ask('lens', { ...asked, before });
      if (self.gone || before !== state.before.peek()) return;
      batch(() => {
        state.earlier.value = [...page.messages, ...state.earlier.peek()];
        state.before.value = page.before ?? 0;
        state.error.value = null;
      });
    } catch (error) {
      state.error.value = /** @type {Error} */ (error);
    }
  };
  const before = state.before.value;
  return html`
    <div class="sec">
      <h2>Transcript, ${counted(found.total ?? found.messages.length, 'message')}</h2>
      ${state.error.value
        ? html`<${Failed} error=${state.error.value} retry=${readBack} />`
        : before
          ? html`
              <p>
                <button type="button" class="chip" onClick=${readBack}>${counted(before, 'earlier message')}</button>
              </p>
            `
          : null}
      ${[...state.earlier.value, ...found.messages].map(
        message => html`<${Message} key=${message.id} message=${message} owner=${found.sessionKey} />`,
      )}
    </div>
  `;
});

// Of an imported answer, on the page of its session, which has no place of a run.
/** @type {View<{ run: string }>} */
export const ImportedPrompt = view(({ run }, self) => {
  const found = loaded(self, 'lens', run, stop => ask('lens', { run }, { signal: stop }));
  if (!found) return html`<${Loading}/>`;
  return found.error
    ? html`<${Failed} error=${found.error} retry=${found.again} />`
    : html`<${Prompt} found=${found} asked=${{ run }} />`;
});

/** @param {{ found: Answers.LensAnswer, asked: Record<string, any>, place?: Place, ahead?: boolean }} given */
const Prompt = ({ found, asked, place, ahead }) => {
  const who = short(found.sessionKey);
  return html`
    <div>
      <p class="as">
        <span>
          ${ahead ? `What ${who} is about to be given` : `What ${who} was given`}${found.imported
            ? ''
            : `, attempt ${found.attempt}`}
        </span>
        ${place
          ? html`
              <button type="button" class="num-link" onClick=${() => place.toPosition(found.place.position)}>
                #${found.place.position}
              </button>
            `
          : html`<${Position} at=${found.place.position} />`}
      </p>
      <div class="sec">
        ${found.imported
          ? html`<p class="muted">${found.problem}</p>`
          : html`
              <p class=${`rec ${found.asRecorded ? 'ok' : 'no'}`}>
                <${Shield} ok=${found.asRecorded} />
                <b>${found.asRecorded ? 'As recorded' : 'Not as recorded'}</b>
                <span class="muted">
                  ${found.asRecorded ? 'rebuilt from the log, same hash' : (found.problem ?? 'the hash differs')}
                </span>
              </p>
              <code class="muted">${found.contextHash}</code>
            `}
        ${found.leftOut ? html`<p class="why bad">${found.leftOut.told}</p>` : null}
      </div>
      ${found.summary
        ? html`
            <div class="sec">
              <h2>Summary of the first ${found.summary.messages} messages</h2>
              <pre tabindex="0">${found.summary.text}</pre>
            </div>
          `
        : null}
      <div class="sec">
        <h2>System context</h2>
        <pre tabindex="0">${found.systemContext || (found.imported ? '(not recorded)' : '(none)')}</pre>
      </div>
      <${Transcript} key=${`${found.run}/${found.attempt}`} found=${found} asked=${asked} />
      <div class="sec">
        <h2>The message to answer</h2>
        ${found.message
          ? html`<${Message} message=${found.message} owner=${found.sessionKey} isNew=${true} />`
          : html`<p class="muted">not in the log any more</p>`}
        ${found.partial.length
          ? html`
              <h2>${found.imported ? 'Done since' : 'Said before it was cut off'}</h2>
              ${found.partial.map(
                message => html`<${Message} message=${message} owner=${found.sessionKey} />`,
              )}
            `
          : null}
      </div>
      <div class="sec">
        <dl class="kv">
          <dt>Model</dt>
          <dd>${found.model ?? 'not recorded'}</dd>
          <dt>Deadline</dt>
          <dd>
            ${found.deadlineMs
              ? took(found.deadlineMs) === ''
                ? ''
                : html`<${Time} ms=${found.deadlineMs} dated />`
              : found.imported ? 'not recorded' : 'none'}
          </dd>
          <dt>Tools</dt>
          <dd>
            ${found.tools ? found.tools.map(tool => tool.title ?? tool.name).join(', ') || 'none' : 'not recorded'}
          </dd>
        </dl>
      </div>
    </div>
  `;
};
