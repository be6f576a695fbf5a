// Handing a run or a session on: as a file, as a note pinned to a place, as a link or a command.
import { html, signal, view } from '../base/drawing.js';
import { about } from '../asking/about.js';
import { addressOf, tell } from '../asking/api.js';
import { taken } from '../parts/downloads.js';
import { Icon } from '../parts/icons.js';
import { copy, open, say } from '../parts/window.js';
import { can } from './rights.js';

const FILES = [
  [
    'bundle',
    'Bundle for an auditor',
    'One file that is checked anywhere: all of it and all that it touches, the proof, a report.',
  ],
  ['export', 'Export for other tools', 'In the form above, with secrets hidden.'],
];
const FILES_OF_A_RUN = [
  [
    'log',
    'The run as a log',
    'One small file with all that the run touches, up to this place. Whoever gets it opens it with intersession debug.',
  ],
  [
    'test',
    'The run as a test',
    'A pytest module with its recording: it fails when today’s rules decide otherwise.',
  ],
];
const WITHHELD = [
  ['', 'nothing'],
  ['secrets', 'secrets in words'],
  ['words', 'all words'],
  ['people', 'who people are'],
];
const FORMS = [
  ['cloudevents', 'events (CloudEvents)'],
  ['otlp', 'spans (OpenTelemetry)'],
  ['parquet', 'tables (Parquet, for DuckDB and pandas)'],
];
const FORMS_OF_A_SESSION = [
  ['openai', 'messages (OpenAI, chat completions)'],
  ['responses', 'messages (OpenAI, Responses)'],
  ['anthropic', 'messages (Anthropic)'],
];
/** @type {View<{ of: Part, at: string }>} */
const Files = view(({ of, at }, self) => {
  const redact = self.once(() => signal(''));
  const form = self.once(() => signal('cloudevents'));
  /** @param {string} what */
  const address = what =>
    addressOf({
      ...of,
      what: what === 'export' ? form.value : what,
      // Notes are pinned later than what they are about, so that no bundle up to its place would have them.
      at: what === 'test' || what === 'bundle' ? '' : at,
      redact: what === 'bundle' ? redact.value : '',
    });
  return html`
    <${Choice} said="The bundle withholds" name="redact" chosen=${redact} of=${WITHHELD} />
    <${Choice}
      said="The export has"
      name="form"
      chosen=${form}
      of=${'run' in of ? FORMS : [...FORMS, ...FORMS_OF_A_SESSION]} />
    <ul class="files">
      ${[...FILES, ...('run' in of ? FILES_OF_A_RUN : [])].map(
        ([what, name, why], number) => html`
          <li>
            <a class="btn" autofocus=${number === 0} href=${address(what)} onClick=${event => taken(event, name)}>
              <${Icon} name="down" />
              ${name}
            </a>
            <span class="muted">${why}</span>
          </li>
        `,
      )}
    </ul>
  `;
});
/** @param {{ said: string, name: string, chosen: Signal<string>, of: string[][] }} given */
const Choice = ({ said, name, chosen, of }) => html`
  <label>
    ${said}<br/>
    <select
      class="field"
      name=${name}
      onChange=${event => {
        chosen.value = event.target.value;
      }}>
      ${of.map(([one, words]) => html`<option value=${one} selected=${chosen.value === one}>${words}</option>`)}
    </select>
  </label>
`;
/** @typedef {{ run: string } | { session: string }} Part */
/** @param {Part} of @param {string} at */
export const files = (of, at) => {
  open.value = {
    title: 'Send it as a file',
    body: html`
      <p>
        Whole texts are in it, secrets among them, but for an export and for what the bundle withholds: send it to those
        who may read them. ${about.value?.readOnly ? null : 'That it was taken is recorded.'}
      </p>
      <${Files} of=${of} at=${at} />
    `,
  };
};
/** @param {Place} place */
export const filesOfRun = place => files({ run: place.run.peek().id }, String(place.position.peek()));
/** @param {{ title: string, onClick: () => void }} given */
export const FileButton = ({ title, onClick }) =>
  can('file')
    ? html`
        <button
          class="btn"
          type="button"
          title=${title}
          onClick=${onClick}>
          <${Icon} name="down" />File
        </button>
      `
    : null;

/** @param {Place} place */
export const note = place => {
  const run = place.run.peek().id;
  const at = place.position.peek(); // while one writes, a place at the head goes on
  open.value = {
    title: 'Pin a note here',
    button: 'Pin it',
    done: async given => {
      await tell('api/do', { method: 'notes.pin', params: { run, at, text: given.text } });
      say(`Noted, after #${at}`);
      place.noted();
    },
    body: html`
      <label>
        Note, after #${at}<br/>
        <textarea name="text" required autofocus maxlength="4000"></textarea>
      </label>
      <p class="muted">
        It is an event of the log, with who wrote it, and goes along with the run. It can’t be taken back.
      </p>
    `,
  };
};
/** @param {{ place: Place }} given */
export const NoteButton = ({ place }) =>
  can('notes.pin')
    ? html`<button class="btn" type="button" onClick=${() => note(place)}><${Icon} name="note" />Note</button>`
    : null;
/** @param {{ notes: Answers.NoteAnswer[], place: Place }} given */
export const Notes = ({ notes, place }) =>
  notes.length
    ? html`
        <div class="sec notes">
          <h2>Notes</h2>
          ${notes.map(
            one => html`
              <p>
                <button type="button" class="num-link" onClick=${() => place.toPosition(one.place.position)}>
                  #${one.place.position}
                </button> <b>${one.by}</b> ${one.text}
              </p>
            `,
          )}
        </div>
      `
    : null;

/** @param {string} text */
const shell = text => `'${String(text).replaceAll("'", "'\\''")}'`;
export const storeOf = () => (about.value?.store ? ` --store ${shell(about.value?.store)}` : '');
const quoted = JSON.stringify;
/** @param {string} run @param {string} at */
const asPython = (run, at) =>
  [
    'from intersession import open_log',
    '',
    `with open_log(${quoted(about.value?.store ?? 'intersession.db')}) as log:`,
    `    print(log.debug.state(${quoted(run)}${at ? `, at=${at}` : ''}))`,
    '',
  ].join('\n');
/** @param {{ run: Run, at: string, fork?: string }} given */
export const CopyButtons = ({ run, at, fork }) => html`
  <span class="group" role="group" aria-label="Copy this place">
    <button
      class="btn"
      type="button"
      title="Copy a link to exactly this"
      onClick=${() => copy(location.href, 'Link')}>
      <${Icon} name="copy" />Link
    </button>
    <button
      class="btn"
      type="button"
      title="Copy as a command"
      onClick=${() => copy(`intersession show ${fork || run.id}${at ? ` --at ${at}` : ''}${storeOf()}`, 'Command')}>
      CLI
    </button>
    <button
      class="btn"
      type="button"
      title="Copy as Python"
      onClick=${() => copy(asPython(fork || run.id, at), 'Python')}>
      Python
    </button>
  </span>
`;
