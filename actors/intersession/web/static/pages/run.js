// The page of a run: its head, the slider that is its outline, the diagram or the table, and the panel.
// All of it at one place.
import { html, seen, signal, view } from '../base/drawing.js';
import { counted, ended, lasted } from '../base/words.js';
import { about } from '../asking/about.js';
import { href, link, queried, setQuery } from '../asking/address.js';
import { inside, saying } from '../asking/api.js';
import { Failed, Loading } from '../parts/answers.js';
import { Icon, Tri } from '../parts/icons.js';
import { Who, laneOf } from '../parts/speakers.js';
import { Seg } from '../parts/tabs.js';
import { ForkButtons } from '../deeds/forking.js';
import { HeldCalls } from '../deeds/approving.js';
import { Held, HoldButton } from '../deeds/holding.js';
import { CopyButtons, FileButton, NoteButton, Notes, filesOfRun, storeOf } from '../deeds/sharing.js';
import { Diagram } from '../run/diagram.js';
import { Table } from '../run/event-table.js';
import { Place } from '../run/place.js';
import { Panel } from '../run/place-panel.js';
import { Paper } from '../run/printed.js';
import { FORMS, keys, mark } from '../run/run-keys.js';
import { Slider } from '../run/slider.js';

/** @type {View<{ id: string }>} */
export const Run = view(({ id }, self) => {
  const state = self.once(() => {
    const made = { place: new Place(id, self), hidden: signal(new Set()) };
    keys(self, made.place);
    return made;
  });
  const { place, hidden } = state;
  const run = place.run.value;
  if (place.error.value)
    return html`
      <${Failed} title="The run can't be shown" error=${place.error.value} retry=${() => place.open()} />
    `;
  if (!run) return html`<${Loading}/>`;
  const table = queried('view') === 'table';
  const timed = queried('scale') === 'time';
  document.title = `${seen(run.title.slice(0, 60))} · Intersession`;
  return html`
    <div class="run">
      <div>
        <${Head} run=${run} place=${place} />
        <${Held} place=${place} />
        <${HeldCalls} place=${place} />
        <${Now} run=${run} />
      </div>
      <${Slider} place=${place} />
      <div class="work">
        <section class="left" aria-label="What happened">
          <${Bar} place=${place} table=${table} timed=${timed} />
          ${place.refused.value
            ? html`
                <p class="alert" role="alert">
                  ${place.refused.value}
                  <br/>
                  <span class="muted small">${FORMS}</span>
                </p>
              `
            : null}
          ${table
            ? html`<${Table} place=${place} />`
            : html`<${Diagram} place=${place} hidden=${hidden} timed=${timed} mark=${Number(queried('mark'))} />`}
          <${Notes} notes=${place.notes.value} place=${place} />
          <${Paper} place=${place} />
        </section>
        <${Panel} place=${place} />
      </div>
    </div>
  `;
});
/** What agents of an open run say while they say it. @type {View<{ run: Run }>} */
const Now = view(({ run }) => {
  if (run.state !== 'open' || inside.fork) return null;
  const lanes = run.lanes.map(lane => lane.id);
  const said = Object.values(saying.value).filter(({ sessionKey }) => lanes.includes(sessionKey));
  return said.map(
    ({ sessionKey, text }) => html`
      <p class="sum saying"><${Who} lane=${laneOf(sessionKey)} /> is saying: <span class="said">${text}</span></p>
    `,
  );
});
/** @param {{ place: Place, table: boolean, timed: boolean }} given */
const Bar = ({ place, table, timed }) => {
  const run = place.run.value;
  const drawn = [
    ['diagram', 'Diagram'],
    ['table', `All ${run.steps} events`],
  ];
  const spaces = [
    ['order', 'Order'],
    ['time', 'Time'],
  ];
  /** @param {string} name */
  const show = name => setQuery({ view: name === 'table' ? 'table' : '' });
  /** @param {string} name */
  const scale = name => setQuery({ scale: name === 'time' ? 'time' : '' });
  return html`
    <div class="bar">
      <${Seg} label="How it is drawn" value=${table ? 'table' : 'diagram'} options=${drawn} onChange=${show} />
      ${table
        ? null
        : html`
            <${Seg} label="Vertical space" value=${timed ? 'time' : 'order'} options=${spaces} onChange=${scale} />
          `}
      <span class="grow"></span>
      <${Chips} place=${place} />
    </div>
  `;
};
/** @param {{ place: Place }} given */
const Chips = ({ place }) => {
  const run = place.run.value;
  const marked = queried('mark');
  const unbreak = () => {
    place.breaks.value = '';
  };
  const notes = place.notes.value.length;
  return html`
    ${place.breaks.value
      ? html`<button type="button" class="chip on" onClick=${unbreak}>break on ${place.breaks.value} ×</button>`
      : null}
    ${(run.smells ?? []).map(
      smell => html`
        <button
          type="button"
          class="chip smell"
          title=${smell.text}
          onClick=${() => place.toPosition(smell.place.position)}>
          <${Tri}/>${smell.name} <span class="mono">#${smell.place.position}</span>
        </button>
      `,
    )}
    ${notes ? html`<span class="chip"><${Icon} name="note" />${counted(notes, 'note')}</span>` : null}
    ${marked
      ? html`
          <button type="button" class="chip on" title="Take the mark away" onClick=${() => setQuery({ mark: '' })}>
            marked <span class="mono">#${marked}</span> ×
          </button>
        `
      : html`
          <button
            type="button"
            class="chip"
            title="Mark this place, and see from another one what changed since"
            onClick=${() => mark(place)}>
            Mark
          </button>
        `}
  `;
};

// A person's name leads to what they were told.
/** @param {{ lane: Lane }} given */
const Told = ({ lane }) =>
  about.value?.isOperator
    ? html`<a title="What they were told" ...${link(href('person', lane.id))}><${Who} lane=${lane} /></a>`
    : html`<${Who} lane=${lane} />`;
/** @param {{ run: Run, place: Place }} given */
const Head = ({ run, place }) => {
  const [first, rest] = ended(run);
  const asker = run.kind === 'run' ? null : run.requester;
  const person = run.lanes.find(lane => lane.kind === 'person');
  const channel = run.lanes.find(lane => lane.kind === 'channel');
  const at = place.index.value === place.length ? null : place.position.value;
  return html`
    <div class="head">
      <div class="grow">
        <div class="ttl">
          <span class="crumbs"><a ...${link(href('runs'))}>Runs</a><span aria-hidden="true">/</span></span>
          <h1 title=${run.title}>${run.title || '(no words)'}</h1>
          <span class="mono muted" title=${run.id}>${run.id.slice(0, 8)}</span>
        </div>
        <p class="sum">
          ${asker
            ? html`<${Who} lane=${laneOf(asker)} /> ${run.kind === 'spawn' ? 'gave work to' : 'asked'} `
            : person
              ? html`<${Told} lane=${person} /> asked `
              : null}
          <${Who} lane=${laneOf(run.target ?? '')} />
          ${run.turns !== undefined ? `: ${counted(run.turns, 'turn')}` : ''}, ${lasted(run)}. <b
            class=${run.failed ? 'bad' : ''}>
            ${run.state === 'open' ? html`<span class="dot on"></span>` : null}
            ${first}
          </b>
          ${rest ? `, ${rest}` : ''}${channel && run.closeReason === 'announced'
            ? html` to <span class="end"><${Who} lane=${channel} />.</span>`
            : '.'}${run.imported ? ' Imported: it is walked, not decided again.' : ''}
        </p>
      </div>
      <div class="acts">
        <${ForkButtons} place=${place} store=${storeOf()} />
        <${HoldButton} place=${place} />
        <${NoteButton} place=${place} />
        <${FileButton}
          title="Send this run as a file: a bundle, an export, a log, a test"
          onClick=${() => filesOfRun(place)} />
        <${CopyButtons} run=${run} at=${at} fork=${inside.fork} />
      </div>
    </div>
  `;
};
