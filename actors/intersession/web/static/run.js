// The page of a run: its head, the slider that is its outline, the diagram or the table, and the panel.
// All of it at one place.
import { html, kept, signal, view } from './lib.js';
import { inside } from './api.js';
import { about, go, href, link, proof, queried, setQuery } from './state.js';
import {
  Failed,
  Icon,
  Loading,
  Seg,
  Time,
  Tri,
  Who,
  copy,
  hueOf,
  laneOf,
  open,
  prompted,
  tickShape,
} from './parts.js';
import { Diagram } from './diagram.js';
import { Held, HoldButton, can } from './deeds.js';
import { ForkButtons, fork, whatIf } from './forking.js';
import { CopyButtons, FileButton, NoteButton, Notes, files, note, storeOf } from './sharing.js';
import { Panel } from './panel.js';
import { Place } from './place.js';
import { clock, counted, ended, failed, ofKind, short, since, smellName, took, utc } from './words.js';

const FORMS =
  'A position (412), event:ID, an ISO time, head, start, reply, turn:3, announce, end; +2 or -2 behind any of them.';

export const Run = view(({ id }, self) => {
  const state = self.once(() => {
    const made = { place: new Place(id, self), hidden: signal(new Set()) };
    keys(self, made.place);
    return made;
  });
  const { place, hidden } = state;
  const run = place.run.value;
  if (place.error.value) return html`<${Failed} error=${place.error.value} />`;
  if (!run) return html`<${Loading}/>`;
  const table = queried('view') === 'table';
  const timed = queried('scale') === 'time';
  document.title = `${run.title.slice(0, 60)} · Intersession`;
  return html`
    <div class="run">
      <div><${Head} run=${run} place=${place} /><${Held} place=${place} /></div>
      <${Slider} place=${place} />
      <div class="work">
        <section class="left" aria-label="What happened">
          <div class="bar">
            <${Seg}
              label="How it is drawn"
              value=${table ? 'table' : 'diagram'}
              options=${[
                ['diagram', 'Diagram'],
                ['table', `All ${run.steps} events`],
              ]}
              onChange=${name => setQuery({ view: name === 'table' ? 'table' : '' })} />
            ${table
              ? null
              : html`
                  <${Seg}
                    label="Vertical space"
                    value=${timed ? 'time' : 'order'}
                    options=${[
                      ['order', 'Order'],
                      ['time', 'Time'],
                    ]}
                    onChange=${name => setQuery({ scale: name === 'time' ? 'time' : '' })} />
                `}
            <span class="grow"></span>
            ${place.breaks.value
              ? html`
                  <button
                    type="button"
                    class="chip on"
                    onClick=${() => {
                      place.breaks.value = '';
                    }}>
                    break on ${place.breaks.value} ×
                  </button>
                `
              : null}
            ${(run.smells ?? []).map(
              smell => html`
                <button
                  type="button"
                  class="chip smell"
                  title=${smell.text}
                  onClick=${() => place.toPosition(smell.place.position)}>
                  <${Mark} smell=${smell} />
                </button>
              `,
            )}
            ${place.notes.value.length
              ? html`<span class="chip"><${Icon} name="note" />${counted(place.notes.value.length, 'note')}</span>`
              : null}
          </div>
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
            : html`<${Diagram} place=${place} hidden=${hidden} timed=${timed} />`}
          <${Notes} notes=${place.notes.value} place=${place} />
          <${Paper} place=${place} />
        </section>
        <${Panel} place=${place} />
      </div>
    </div>
  `;
});
const Mark = ({ smell }) =>
  html`<${Tri}/>${smellName(smell.code)} <span class="mono">#${smell.place.position}</span>`;

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
              ? html`<${Who} lane=${person} /> asked `
              : null}
          <${Who} lane=${laneOf(run.target)} />
          ${run.turns !== undefined ? `: ${counted(run.turns, 'turn')}` : ''}, ${took(run.tookMs)}. <b
            class=${failed(run) ? 'bad' : ''}>
            ${run.state === 'open' ? html`<span class="dot on"></span>` : null}
            ${first}
          </b>
          ${rest ? `, ${rest}` : ''}${channel && run.closeReason === 'announced'
            ? html` to <${Who} lane=${channel} />`
            : null}.${run.imported ? ' Imported: it is walked, not decided again.' : ''}
        </p>
      </div>
      <div class="acts">
        <${ForkButtons} place=${place} store=${storeOf()} />
        <${HoldButton} place=${place} />
        <${NoteButton} place=${place} />
        <${FileButton} place=${place} />
        <${CopyButtons} run=${run} at=${at} fork=${inside.fork} />
      </div>
    </div>
  `;
};

// What stands on the slider wherever one is: its ticks, the numbers of turns, the longest gaps.
function still(place, run) {
  const turns = new Map(
    place.rows
      .filter(row => row?.position)
      .map(row => [row.position, /^turn (\d+)/.exec(row.how ?? row.text ?? '')?.[1]])
      .filter(([, turn]) => turn),
  );
  const gaps = place.rows
    .flatMap((row, number) => {
      const next = row?.row === 'gap' ? place.rows.slice(number + 1).find(one => one?.position) : null;
      return next ? [[place.indexOf(next.position) - 0.5, row.ms]] : [];
    })
    .sort((one, two) => two[1] - one[1])
    .slice(0, 8);
  const ticks = (run.outline ?? [])
    .filter(one => one[0] !== '/')
    .map(([letter, lane, at]) => [letter, run.lanes[lane], place.indexOf(at), at]);
  return { turns, gaps, ticks };
}

const Slider = view(({ place }, self) => {
  const run = place.run.value;
  const index = place.index.value;
  const position = place.position.value;
  const step = place.step.value;
  const most = Math.max(run.steps, 1);
  const loaded = place.loaded.value;
  const said =
    place.said.value?.place.position === position
      ? place.said.value.place.text
      : index
        ? `after #${position}`
        : 'before the first event of this run';
  const x = number => `${(number / most) * 100}%`;
  const { turns, gaps, ticks } = kept(self, 'still', [run, loaded], () => still(place, run));
  const start = place.steps[0]?.timeMs;
  return html`
    <div class="time">
      <div class="xport" role="group" aria-label="Move">
        <button class="btn" type="button" aria-label="To the start" onClick=${() => place.jump(0)}>
          <${Icon} name="first" />
        </button>
        <button class="btn" type="button" aria-label="An event back" onClick=${() => place.event(-1)}>
          <${Icon} name="back" />
        </button>
        <button class="btn" type="button" aria-label="An event on" onClick=${() => place.event(1)}>
          <${Icon} name="on" />
        </button>
        <button class="btn" type="button" aria-label="To the end" onClick=${() => place.jump(run.steps)}>
          <${Icon} name="last" />
        </button>
      </div>
      <div class="track">
        <input
          type="range"
          min="0"
          max=${run.steps}
          step="1"
          value=${index}
          aria-label="Place in the run"
          aria-valuetext=${`${said}, event ${index} of ${run.steps}`}
          onInput=${event => place.jump(Number(event.target.value))} />
        <svg aria-hidden="true">
          <line class="rail" x1="0" x2="100%" y1="38" y2="38" />
          <line class="rail past" x1="0" x2=${x(index)} y1="38" y2="38" />
          ${ticks.map(
            ([letter, lane, number, at]) => html`
              <svg x=${x(number)} y="21" overflow="visible">
                <g class=${`tick ${lane ? hueOf(lane.kind, lane.id) : ''} ${at > position ? 'future' : ''}`}>
                  ${letter === 'e'
                    ? html`
                        <rect
                          class=${`endsq ${at > position ? 'future' : ''}`}
                          x="-4"
                          y="13"
                          width="8"
                          height="8" />
                      `
                    : letter === 'x'
                      ? html`<path class="x" d="M-4 13l8 8m0-8-8 8" stroke="var(--bad)" stroke-width="2" />`
                      : tickShape(letter, 0, 17)}
                </g>
                ${turns.has(at) && ticks.length <= 24
                  ? html`
                      <text class=${`tl ${at > position ? 'future' : ''}`} y=${letter === 'u' ? -2 : 42}>
                        ${turns.get(at)}
                      </text>
                    `
                  : null}
              </svg>
            `,
          )}
          ${gaps.map(
            ([number, ms]) => html`
              <svg x=${x(number)} y="21" overflow="visible">
                <rect class="gapbg" x="-7" y="11" width="14" height="12" />
                <path class="brk2" d="M-5 22l4-10m2 10 4-10" />
                <text class="tl" y="42">${took(ms)}</text>
              </svg>
            `,
          )}
          ${(run.smells ?? []).map(
            smell => html`
              <svg x=${x(place.indexOf(smell.place.position))} y="2" overflow="visible">
                <g class="tri" transform="translate(-6 0)">
                  <path d="M6 1 11.5 11H.5Z" />
                  <path class="bang" d="M6 4.6v3M6 9.3v.1" />
                </g>
              </svg>
            `,
          )}
          <svg x=${x(index)} y="0" overflow="visible">
            <line class="needle" y1="14" y2="62" />
            <circle class="thumb" cy="38" r="6" />
          </svg>
        </svg>
      </div>
      <p class="now" aria-live="polite">
        <b>#${position} · ${said.replace(/^after /, 'after ')}</b>
        <span>
          ${step ? html`<${Time} ms=${step.timeMs} /> · ${since(step.timeMs - start)} · ` : ''}
          ${index < run.steps
            ? `${counted(run.steps - index, 'event')} follow`
            : run.state === 'open'
              ? 'follows the log'
              : 'nothing follows'}
        </span>
      </p>
    </div>
  `;
});

// The table alternative: every event of the run, a window of them around the place.
const Table = view(({ place }, self) => {
  const around = self.once(() => signal(null));
  const index = place.index.value;
  const run = place.run.value;
  place.loaded.value;
  const many = 200;
  const from = around.value ?? Math.max(0, Math.min(index - 100, run.steps - many));
  const to = Math.min(run.steps, from + many);
  const shown = [];
  for (let number = Math.max(from, 0); number < to; number++) {
    if (place.steps[number]) shown.push([number, place.steps[number]]);
    else place.need(number + 1).catch(() => {});
  }
  return html`
    <div class="scroll" tabindex="0" role="region" aria-label="Events of the run">
      <table class="list dense">
        <caption class="vh">Events ${from + 1} to ${to} of ${run.steps}</caption>
        <colgroup>
          <col class="w-pos" />
          <col class="w-time" />
          <col class="w-kind" />
          <col class="w-stream" />
          <col class="w-words" />
        </colgroup>
        <thead>
          <tr>
            <th scope="col">#</th>
            <th scope="col">Time</th>
            <th scope="col">Event</th>
            <th scope="col">Who</th>
            <th scope="col">Words</th>
          </tr>
        </thead>
        <tbody>
          ${from > 0
            ? html`
                <tr>
                  <td colspan="5">
                    <button
                      class="btn"
                      type="button"
                      onClick=${() => {
                        around.value = Math.max(0, from - 100);
                      }}>
                      Earlier
                    </button>
                  </td>
                </tr>
              `
            : null}
          ${shown.map(
            ([number, step]) => html`
              <tr
                key=${number}
                class=${number === index - 1 ? 'sel' : ''}
                aria-current=${number === index - 1 ? 'true' : null}>
                <td>
                  <button type="button" class="num-link" onClick=${() => place.jump(number + 1)}>
                    #${step.position}
                  </button>
                </td>
                <td class="mono muted" title=${utc(step.timeMs)}>${clock(step.timeMs)}</td>
                <td class=${number >= index ? 'muted' : ''}>
                  ${ofKind(step.kind)}
                  ${step.turn ? ` ${step.turn}` : ''}
                </td>
                <td>${step.who ? short(step.who) : ''}${step.to ? ` → ${short(step.to)}` : ''}</td>
                <td class=${number >= index ? 'muted' : ''} title=${step.text}>${step.text}</td>
              </tr>
            `,
          )}
          ${to < run.steps
            ? html`
                <tr>
                  <td colspan="5">
                    <button
                      class="btn"
                      type="button"
                      onClick=${() => {
                        around.value = Math.min(run.steps - many, from + 100);
                      }}>
                      Later
                    </button>
                  </td>
                </tr>
              `
            : null}
        </tbody>
      </table>
    </div>
  `;
});

// What is printed: the run as a page that can be filed. It is drawn for the printer alone.
const Paper = view(({ place }, self) => {
  const printed = self.once(() => {
    const made = signal(false);
    const on = () => {
      made.value = true;
    };
    addEventListener('beforeprint', on);
    self.onEnd(() => removeEventListener('beforeprint', on));
    const paper = matchMedia('print');
    paper.addEventListener('change', on);
    if (paper.matches) made.value = true;
    self.onEnd(() => paper.removeEventListener('change', on));
    return made;
  });
  if (!printed.value) return null;
  const run = place.run.value;
  const found = proof.value;
  place.loaded.value;
  return html`
    <div class="paper" aria-hidden="true">
      <p>${run.kind} ${run.id}, log ${about.value.logId}. Accepted ${utc(run.began)}. ${run.told}.</p>
      <p>
        ${found?.ok
          ? `As it was written, by the chain, to #${found.verifiedTo}; head ${found.logHead.hash}.`
          : 'Not verified.'}
      </p>
      ${found?.ok
        ? html`<p>Not proven by this:</p><ul>${found.unproven.map(one => html`<li>${one}</li>`)}</ul>`
        : null}
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
        <tbody>
          ${place.rows
            .slice(0, 2000)
            .filter(row => row && row.row !== 'gap')
            .map(
              row => html`
                <tr>
                  <td class="mono">#${row.position}</td>
                  <td>${utc(row.time)}</td>
                  <td>
                    ${row.row === 'arrow'
                      ? `${run.lanes[row.source].name} → ${run.lanes[row.target].name}, ${row.how}`
                      : row.lane === null
                        ? 'all'
                        : run.lanes[row.lane].name}
                  </td>
                  <td>${row.text}</td>
                </tr>
              `,
            )}
        </tbody>
      </table>
    </div>
  `;
});

function keys(self, place) {
  const tab = name => setQuery({ tab: name === 'transcripts' ? '' : name, lens: '' });
  const other = id => (id ? go(href('run', id)) : null);
  const does = {
    ArrowRight: () => place.event(1),
    ArrowLeft: () => place.event(-1),
    n: () => place.turn(1),
    p: () => place.turn(-1),
    c: () => place.cause(),
    e: () => place.effect(),
    Home: () => place.jump(0),
    End: () => place.jump(place.length),
    ']': () => other(place.run.peek()?.after),
    '[': () => other(place.run.peek()?.before),
    r: () => place.toBreak(1),
    R: () => place.toBreak(-1),
    t: () => tab('transcripts'),
    l: () => tab('lens'),
    v: () => tab('event'),
    w: () => tab('why'),
    x: () => tab('raw'),
    g: () => prompted('Go to a place', 'Place', '', at => at && place.goTo(at), FORMS),
    d: () =>
      prompted(
        'Compare with',
        'Another run, or a place of one',
        '',
        other => other && go(href('diff', '', { a: place.id, b: other })),
      ),
    f: () =>
      can('forks.make') && !inside.fork ? fork(place) : go(href('forks', '', { run: place.run.peek().id })),
    F: () => can('forks.make') && !inside.fork && whatIf(place),
    N: () => can('notes.pin') && note(place),
    s: () => can('file') && files(place),
    y: () => copy(location.href, 'Link'),
    b: () =>
      prompted(
        'Break on',
        'Words, kind:NAME or session:NAME',
        place.breaks.peek(),
        words => {
          place.breaks.value = words;
        },
        'Then r runs on to it, R back.',
      ),
  };
  const heard = event => {
    if (
      event.metaKey ||
      event.ctrlKey ||
      event.altKey ||
      event.target.closest?.('input:not([type=range]),textarea,select,dialog')
    )
      return;
    if (open.peek()) return;
    if (event.target.type === 'range' && event.key.startsWith('Arrow')) return;
    const act = does[event.key];
    if (act && place.run.peek()) {
      event.preventDefault();
      act();
    }
  };
  addEventListener('keydown', heard);
  self.onEnd(() => removeEventListener('keydown', heard));
}
