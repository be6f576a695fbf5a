// What is printed of a run: a page that can be filed. It is drawn for the printer alone.
import { html, signal, view } from '../base/drawing.js';
import { counted, utc } from '../base/words.js';
import { about, proof } from '../asking/about.js';
import { Said } from '../parts/texts.js';

const MOST = 2000;

/** @type {View<{ place: Place }>} */
export const Paper = view(({ place }, self) => {
  const printed = self.once(() => {
    const made = signal(0);
    const on = () => {
      made.value = Date.now();
    };
    addEventListener('beforeprint', on);
    self.onEnd(() => removeEventListener('beforeprint', on));
    const paper = matchMedia('print');
    paper.addEventListener('change', on);
    if (paper.matches) on();
    self.onEnd(() => paper.removeEventListener('change', on));
    return made;
  });
  if (!printed.value) return null;
  const run = place.run.value;
  const found = proof.value;
  place.loaded.value;
  const shown = place.rows.slice(0, MOST).flatMap(row => row ?? []);
  return html`
    <div class="paper" aria-hidden="true">
      <p>${run.kind} ${run.id}, log ${about.value?.logId}. Accepted ${utc(run.began)}. ${run.told}.</p>
      <p>
        ${found?.ok
          ? `As it was written, by the chain, to #${found.verifiedTo}; head ${found.logHead?.hash}.`
          : 'Not verified.'}
      </p>
      ${place.notes.value.length
        ? html`
            <p>Notes:</p>
            <ul>
              ${place.notes.value.map(
                one => html`<li>#${one.place.position} ${one.by}, ${utc(one.timeMs)}: ${one.text}</li>`,
              )}
            </ul>
          `
        : null}
      <table>
        <thead>
          <tr><th>#</th><th>When</th><th>Who</th><th>Words</th></tr>
        </thead>
        <tbody>
          ${shown.map(row => row.row === 'gap' ? null : html`<${Row} row=${row} lanes=${run.lanes} />`)}
        </tbody>
      </table>
      ${run.kinds.length > shown.length
        ? html`
            <p>
              <b>This is not all of it:</b> ${shown.length.toLocaleString('en-GB')}
              of ${counted(run.kinds.length, 'row')} are here. The bundle for an auditor has every event.
            </p>
          `
        : null}
      ${found?.ok
        ? html`
            <h2>Not proven by this</h2>
            <ul>${found.unproven?.map(one => html`<li><${Said} text=${one} /></li>`)}</ul>
          `
        : null}
      <p class="filed">
        Printed ${utc(printed.value)}, as ${about.value?.who} sees it, by Intersession ${about.value?.version}.
      </p>
    </div>
  `;
});

/** @param {Timed} row @param {Lane[]} lanes */
const whoIn = (row, lanes) => {
  if (row.row === 'arrow') return `${lanes[row.source].name} → ${lanes[row.target].name}, ${row.how}`;
  return row.lane === null ? 'everybody' : lanes[row.lane].name;
};
/** @param {{ row: Timed, lanes: Lane[] }} given */
const Row = ({ row, lanes }) => html`
  <tr>
    <td class="mono">#${row.position}</td>
    <td>${utc(row.time)}</td>
    <td>${whoIn(row, lanes)}</td>
    <td>${row.text}</td>
  </tr>
`;
