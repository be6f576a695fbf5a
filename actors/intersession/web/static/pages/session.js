// One session: its transcript, as it stood at a place, and the runs that it took part in.
import { batch, effect, html, signal, view } from '../base/drawing.js';
import { counted, ended, short } from '../base/words.js';
import { archivalName } from '../asking/about.js';
import { href, link, queried, route, setQuery } from '../asking/address.js';
import { ask, moved } from '../asking/api.js';
import { Failed, Loading } from '../parts/answers.js';
import { Message } from '../parts/message.js';
import { Position } from '../parts/moments.js';
import { Badge, laneOf } from '../parts/speakers.js';
import { Tabs } from '../parts/tabs.js';
import { ImportedPrompt } from '../run/prompts.js';
import { FileButton, files } from '../deeds/sharing.js';
import { Text } from '../lists/filters.js';
import { More, paged } from '../lists/paging.js';

// Why a session is on no list any more; what was said in it stays.
/** @param {Record<string, any>} session */
const whyLeft = ({ archived, archivedBy }) =>
  `off the list: ${archivalName(archived)}${archivedBy ? ` by ${archivedBy}` : ''}`;
const AtFilter = () => html`
  <div class="filters" role="group" aria-label="Place">
    <${Text} name="at" label="As it stood at, a time or #" wide />
  </div>
`;
/**
 * @returns {{
 *   found: Signal<Answers.StateAnswer | null>,
 *   error: Signal<Error | null>,
 *   at: string,
 *   asked: number,
 *   began: boolean,
 * }}
 */
const nothingYet = () => ({ found: signal(null), error: signal(null), at: '', asked: 0, began: false });
/** @type {[string, string][]} */
const TABS = [
  ['about', 'Session'],
  ['lens', 'Prompt'],
];
// A run shows what was given in it on its own page. An imported answer has none, and is named by its place.
/** @param {{ who: string, run: string }} given */
const Given = ({ who, run }) => {
  const title = `What ${short(who)} had been given`;
  // On a narrow screen the panel stands below.
  const show = () => {
    setQuery({ lens: run });
    requestAnimationFrame(() => document.getElementById('tab-panel')?.scrollIntoView({ block: 'nearest' }));
  };
  return run.startsWith('#')
    ? html`
        <button type="button" class="num-link" title=${title} onClick=${show}>prompt</button>
      `
    : html`<a class="num-link" title=${title} ...${link(href('run', run, { tab: 'lens', lens: run }))}>prompt</a>`;
};
/** @type {View<{ id: string }>} */
export const Session = view(({ id }, self) => {
  const state = self.once(() => ({
    ...nothingYet(),
    runs: paged(self, 'runs', 'runs', () => ({ session: id, limit: 20 })),
  }));
  const { runs } = state;
  const load = async () => {
    const at = queried('at');
    const turn = ++state.asked;
    try {
      const found = await ask('state', { of: id, at, messages: 300 });
      if (turn !== state.asked) return;
      batch(() => {
        state.found.value = found;
        state.error.value = null;
      });
      state.at = at;
    } catch (error) {
      // What is shown of this place stays, where only what came since can't be read.
      if (turn === state.asked && !(state.found.peek() && state.at === at))
        state.error.value = /** @type {Error} */ (error);
    }
  };
  if (!state.began) {
    state.began = true;
    /** @type {string | null} */
    let head = null;
    /** @type {string | null | undefined} */
    let at;
    let timer = 0;
    self.onEnd(
      effect(() => {
        const now = moved();
        const { page, query } = route.value;
        const place = query.get('at');
        if (page !== 'session') return;
        if (place !== at) load();
        else if (now !== head && !place) {
          clearTimeout(timer);
          timer = setTimeout(load, 300);
        }
        head = now;
        at = place;
      }),
    );
    self.onEnd(() => clearTimeout(timer));
  }
  const found = state.found.value;
  const lens = queried('lens');
  const session = /** @type {Spoken | undefined} */ (found?.sessions[0]);
  if (state.error.value)
    return html`
      <${Failed} title="The session can't be shown" error=${state.error.value} retry=${load} />
      ${queried('at') ? html`<${AtFilter}/>` : null}
    `;
  if (!found) return html`<${Loading}/>`;
  if (!session)
    return html`
      <div class="empty">
        <h1>${short(id)} was not there yet</h1>
        <p class="muted">At this place the log knew no such session.</p>
      </div>
      <${AtFilter}/>
    `;
  return html`
    <div class="head">
      <div class="grow">
        <p class="crumbs"><a ...${link(href('sessions'))}>Sessions</a></p>
        <div class="ttl">
          <${Badge} lane=${laneOf(session.key, session.label)} />
          <h1>${session.label ?? short(session.key)}</h1>
          <span class="mono muted">${session.key}</span>
        </div>
        <p class="sum">
          ${queried('at') ? `As it stood ${found.place.text}` : 'As it stands now'} · <${Position}
            at=${found.place.position} />
        </p>
      </div>
      <div class="acts">
        <${FileButton}
          title="Send this session as a file: a bundle, an export"
          onClick=${() => files({ session: session.key }, String(found.place.position))} />
      </div>
    </div>
    <${AtFilter}/>
    <div class="work session">
      <section class="col page-col" aria-label="Transcript">
        <h2>Transcript <span>${counted(session.transcript.length, 'message')}</span></h2>
        ${session.transcript.length
          ? session.transcript.map(
              message => html`
                <${Message}
                  key=${message.id}
                  message=${message}
                  owner=${session.key}
                  given=${(/** @type {string} */ run) => html`<${Given} who=${session.key} run=${run} />`} />
              `,
            )
          : html`<p class="muted">Nothing was said yet.</p>`}
      </section>
      <aside class="panel" aria-label="About the session">
        ${lens
          ? html`
              <${Tabs}
                label="What to see of the session"
                id="tab-panel"
                tabs=${TABS}
                tab="lens"
                choose=${() => setQuery({ lens: '' })} />
              <div class="tp" id="tab-panel" role="tabpanel" aria-labelledby="tab-lens" tabindex="0">
                <${ImportedPrompt} run=${lens} />
              </div>
            `
          : null}
        <div class="tp" hidden=${Boolean(lens)}>
          <div class="sec">
            <h2>Session</h2>
            <dl class="kv">
              <dt>State</dt>
              <dd>${session.archived ? whyLeft(session) : session.runState}</dd>
              <dt>Model</dt>
              <dd>${session.model ?? 'not recorded'}</dd>
              <dt>Talks to</dt>
              <dd>${session.route ? `${session.route.channel}:${session.route.to}` : 'nobody outside'}</dd>
              <dt>May send</dt>
              <dd>${session.sendPolicy.action}<br/><span class="muted small">${session.sendPolicy.rule}</span></dd>
              ${session.spawnedBy
                ? html`
                    <dt>Spawned by</dt>
                    <dd>
                      <a class="link" ...${link(href('session', session.spawnedBy))}>${short(session.spawnedBy)}</a>
                    </dd>
                  `
                : null}
            </dl>
          </div>
          <div class="sec runlist">
            <h2>Runs it took part in</h2>
            ${(runs.rows.value ?? []).map(
              (/** @type {Answers.ListedRun} */ run) => html`
                <p key=${run.id}>
                  <a class="t link" ...${link(href('run', run.id))}>${run.title || run.id}</a>
                  <br/>
                  <span class=${`small ${run.failed ? 'bad' : 'muted'}`}>${ended(run)[0]}</span>
                </p>
              `,
            )}
            <${More} state=${runs} />
          </div>
        </div>
      </aside>
    </div>
  `;
});
