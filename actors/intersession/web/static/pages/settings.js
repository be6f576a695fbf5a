// The settings in force.
import { html, signal, view } from '../base/drawing.js';
import { ask } from '../asking/api.js';
import { Failed, Loading } from '../parts/answers.js';
import { Position, Time } from '../parts/moments.js';
import { Listed } from '../lists/table.js';

/** @type {(value: any, path?: string) => [string, any][]} */
const flat = (value, path = '') =>
  value && typeof value === 'object' && !Array.isArray(value) && Object.keys(value).length
    ? Object.entries(value).flatMap(([name, item]) => flat(item, path ? `${path}.${name}` : name))
    : [[path, value]];
// As JSON where it has parts; on lines of its own where one would be long.
/** @param {any} value */
const written = value => {
  if (typeof value === 'string') return value;
  const line = JSON.stringify(value);
  return line.length > 100 ? JSON.stringify(value, null, 1) : line;
};
const COLUMNS = [
  ['w-key', 'Setting'],
  ['w-words', 'In force'],
];
/**
 * @returns {{
 *   found: Signal<Answers.SettingsAnswer | null>,
 *   error: Signal<Error | null>,
 *   words: Signal<string>,
 *   load: () => unknown,
 * }}
 */
const nothingYet = () => ({
  found: signal(null),
  error: signal(null),
  words: signal(''),
  load: () => null,
});
export const Settings = view((_, self) => {
  const state = self.once(() => {
    const made = nothingYet();
    made.load = () =>
      ask('settings').then(
        found => {
          made.found.value = found;
          made.error.value = null;
        },
        error => {
          made.error.value = error;
        },
      );
    made.load();
    return made;
  });
  const found = state.found.value;
  const words = state.words.value.toLowerCase();
  if (state.error.value)
    return html`<${Failed} title="Settings in force" error=${state.error.value} retry=${state.load} />`;
  if (!found) return html`<${Loading}/>`;
  return html`
    <div class="head">
      <div class="grow ttl">
        <h1>Settings in force</h1>
        <span class="muted mono">${found.digest.slice(0, 12)}</span>
      </div>
    </div>
    <div class="filters">
      <label>
        <span class="vh">Setting</span>
        <input
          type="search"
          aria-label="Setting"
          placeholder="Setting"
          size="24"
          onInput=${event => {
            state.words.value = event.target.value;
          }} />
      </label>
      <span class="muted small">
        Secrets are never
        shown. ${found.loaded.length
          ? html`
              In force
              since <${Position} at=${found.loaded[0].position} />, <${Time} ms=${found.loaded[0].timeMs} dated />.
            `
          : 'None were recorded in this log: these are those of whoever reads it.'}
      </span>
    </div>
    <${Listed} caption="Settings" columns=${COLUMNS} look="dense whole">
      ${flat(found.settings)
        .filter(([path]) => path.toLowerCase().includes(words))
        .map(
          ([path, value]) => html`
            <tr key=${path}>
              <th scope="row" class="mono">${path}</th>
              <td class="mono">${written(value)}</td>
            </tr>
          `,
        )}
    <//>
  `;
});
