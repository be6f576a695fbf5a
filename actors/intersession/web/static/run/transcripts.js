// What everybody had said and seen at a place: the transcripts as they stood.
import { createRef, html, kept, signal, view } from '../base/drawing.js';
import { counted, short } from '../base/words.js';
import { href, link } from '../asking/address.js';
import { ask } from '../asking/api.js';
import { loaded } from '../asking/remembered.js';
import { Failed, Loading } from '../parts/answers.js';
import { Message } from '../parts/message.js';
import { Badge, laneOf } from '../parts/speakers.js';
import { Seg } from '../parts/tabs.js';
import { Given } from './prompts.js';

// One beside the other, where there is room for two; else one at a time, first that of whoever spoke last.
const ROOMY = matchMedia('(min-width: 1181px)');
const VERY = matchMedia('(min-width: 2200px)');
const mostBeside = () => (VERY.matches ? 3 : ROOMY.matches ? 2 : 1);

/** @param {Row} [row] */
const howOf = row => (row?.row === 'arrow' ? row.how : /^is told: /.test(row?.text ?? '') ? 'tells' : '');
/** @type {() => Signal<string | null>} */
const noKey = () => signal(null);
/** @type {View<{ place: Place }>} */
export const Transcripts = view(({ place }, self) => {
  const state = self.once(() => {
    const made = { chosen: noKey(), most: signal(mostBeside()) };
    const measure = () => {
      made.most.value = mostBeside();
    };
    for (const media of [ROOMY, VERY]) {
      media.addEventListener('change', measure);
      self.onEnd(() => media.removeEventListener('change', measure));
    }
    return made;
  });
  const run = place.run.value;
  const position = place.position.value;
  const step = place.step.value;
  const known = place.loaded.value;
  const found = loaded(self, 'state', position, stop =>
    ask('state', { of: run.id, at: position, messages: 120 }, { signal: stop }),
  );
  if (!found) return html`<${Loading}/>`;
  if (found.error) return html`<${Failed} error=${found.error} retry=${found.again} />`;
  const sessions = /** @type {Spoken[]} */ (found.sessions);
  const positions = kept(
    self,
    'positions',
    [run, known],
    () => new Map(place.steps.flatMap(one => (one?.messageId ? [[one.messageId, one.position]] : []))),
  );
  // An import's messages do not say which turn they are; the rows of the run do.
  const hows = kept(
    self,
    'hows',
    [run, known],
    () => new Map(place.rows.flatMap(row => (howOf(row) ? [[row?.arrived ?? row?.position, howOf(row)]] : []))),
  );
  const callers = kept(
    self,
    'callers',
    [run, known],
    () =>
      new Map(
        place.rows
          .flatMap(row =>
            row?.row === 'arrow' && run.lanes[row.source].kind === 'operator'
              ? [[row.arrived ?? row.position, run.lanes[row.source].id]]
              : [],
          ),
      ),
  );
  /** @param {Spoken} session */
  const lastOf = session =>
    Math.max(
      0,
      ...session.transcript.map(message => positions.get(message.id) ?? 0).filter(at => at <= position),
    );
  const last = Math.max(0, ...sessions.map(lastOf));
  const fresh = step && position - last <= 3 ? last : step?.position;
  const beside = sessions.length <= state.most.value;
  const latest = sessions.find(session => lastOf(session) === last) ?? sessions[0];
  const chosen = sessions.find(session => session.key === state.chosen.value) ?? latest;
  const waits = found.next?.text;
  const goesOn = place.index.value < place.length;
  return html`
    <div class="then">
      <p class="as">
        <span>
          As they stood after #${found.place.position}. Nothing later is
          shown.${found.redacted ? ' Secrets are hidden; the event of a message reveals them.' : ''}
        </span>
        <span>
          ${found.open.runs.length ? `${counted(found.open.runs.length, 'run')} at work` : 'nobody at work'}
        </span>
      </p>
      ${beside || !chosen
        ? null
        : html`
            <div class="bar">
              <${Seg}
                label="Whose transcript"
                value=${chosen.key}
                options=${sessions.map(session => [session.key, short(session.key)])}
                onChange=${(/** @type {string} */ key) => {
                  state.chosen.value = key;
                }} />
            </div>
          `}
      <div class="cols">
        ${(beside ? sessions : [chosen]).map(
          session => html`
            <${Transcript}
              key=${session.key}
              place=${place}
              session=${session}
              at=${found.place.position}
              positions=${positions}
              hows=${hows}
              callers=${callers}
              fresh=${fresh}
              goesOn=${goesOn}
              followed=${place.followed}
              isNext=${place.nextRun?.who === session.key} />
          `,
        )}
        ${sessions.length ? null : html`<p class="loading">No session was there yet.</p>`}
      </div>
      ${waits && goesOn ? html`<p class="as">next: ${waits}</p>` : null}
    </div>
  `;
});

// The last messages are what one looks for: a transcript begins at its end, and the earlier ones are folded.
const SHOWN = 40;
// Whoever has gone back to read stays there, where it is the log that goes on.
/** @param {HTMLElement | null} box */
const isReadBack = box => box && box.scrollHeight - box.scrollTop - box.clientHeight > 40;
/**
 * @type {View<{
 *   place: Place,
 *   session: Spoken,
 *   at: number,
 *   positions: Map<string, number>,
 *   hows: Map<number | undefined, string>,
 *   callers: Map<number | undefined, string>,
 *   fresh?: number,
 *   goesOn: boolean,
 *   isNext: boolean,
 *   followed: boolean,
 * }>}
 */
const Transcript = view(({ place, session, at, positions, hows, callers, fresh, goesOn, isNext, followed }, self) => {
  const state = self.once(() => ({ box: createRef(), whole: signal(false), seen: '' }));
  const all = session.transcript;
  const folded = state.whole.value ? 0 : Math.max(0, all.length - SHOWN);
  const seen = `${all.at(-1)?.id} ${all.length}`;
  if (state.seen !== seen) {
    state.seen = seen;
    // With the frame: asked for at once, the layout would be made twice.
    if (!(followed && isReadBack(state.box.current)))
      requestAnimationFrame(() => {
        const box = state.box.current;
        if (box) box.scrollTop = box.scrollHeight;
      });
  }
  const unfold = () => {
    state.whole.value = true;
  };
  return html`
    <section class="col" aria-label=${`Transcript of ${short(session.key)}`}>
      <h2>
        <${Badge} lane=${laneOf(session.key)} />
        <a ...${link(href('session', session.key, { at }))}>${short(session.key)}</a>
        <span>${counted(all.length, 'message')}</span>
      </h2>
      <div class="msgs" ref=${state.box} tabindex="0" role="group" aria-label="Messages">
        ${folded
          ? html`
              <p><button type="button" class="chip" onClick=${unfold}>${counted(folded, 'earlier message')}</button></p>
            `
          : null}
        ${all.slice(folded).map(message => {
          const where = positions.get(message.id);
          return html`
            <${Message}
              key=${message.id}
              message=${message}
              owner=${session.key}
              at=${where}
              turn=${hows.get(where)}
              caller=${callers.get(where)}
              isNew=${where !== undefined && where === fresh}
              given=${runId => html`<${Given} place=${place} who=${session.key} runId=${runId} at=${where} />`} />
          `;
        })}
        ${all.length ? null : html`<p class="muted">Nothing was said yet.</p>`}
        ${goesOn ? html`<p class="notyet">not yet</p>` : null}
        ${isNext ? html`<p class="waits">${short(session.key)} answers next.</p>` : null}
      </div>
    </section>
  `;
});
