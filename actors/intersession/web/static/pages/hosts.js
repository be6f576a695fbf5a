// The hosts of the log now: its writer, standbys, workers and doors, and the calls that workers make for the writer.
import { html, view } from '../base/drawing.js';
import { capital, counted, short } from '../base/words.js';
import { href, link } from '../asking/address.js';
import { Failed, Loading } from '../parts/answers.js';
import { Moment } from '../parts/moments.js';
import { Said } from '../parts/texts.js';
import { paged } from '../lists/paging.js';
import { Listed } from '../lists/table.js';

const HOSTS = [
  ['w-stream', 'Host'],
  ['w-stream', 'Where'],
  ['w-small', 'Version'],
  ['w-words', 'What it does'],
  ['w-moment', 'Since', 'num'],
];
const SERVED = [
  ['w-key', 'Calls of'],
  ['w-small', 'Waiting', 'num'],
  ['w-small', 'Under way', 'num'],
  ['w-small', 'Parked', 'num'],
  ['w-words', 'Workers'],
];
const CALLS = [
  ['w-words', 'Call'],
  ['w-small', 'Attempt', 'num'],
  ['w-state', 'State'],
  ['w-stream', 'Worker'],
  ['w-moment', 'Offered', 'num'],
];
const STATES = { waiting: 'waits', underWay: 'under way', silent: 'its worker is silent', answered: 'answered' };

// Hosts come, go and take calls without an event of the log.
const AGAIN_MS = 2000;

export const Hosts = view((_, self) => {
  const state = self.once(() => {
    const made = paged(self, 'hosts', 'underWay', () => ({}));
    const again = setInterval(() => document.hidden || made.renew(), AGAIN_MS);
    self.onEnd(() => clearInterval(again));
    return made;
  });
  if (state.error.value)
    return html`<${Failed} title="Hosts" error=${state.error.value} retry=${() => state.load()} />`;
  if (!state.rows.value) return html`<${Loading}/>`;
  const found = /** @type {Answers.HostsAnswer} */ (state.answer);
  const parts = [...found.standbys, ...found.workers, ...found.doors];
  return html`
    <div class="head"><div class="grow ttl"><h1>Hosts</h1></div></div>
    <div class="sheet">
      <section>
        <h2>Hosts of the log</h2>
        ${found.writer
          ? null
          : html`<p class="alert"><b>No process writes the log.</b> What waits goes on with one.</p>`}
        ${found.unread ? html`<p class="note">Only the writer is shown: <${Said} text=${found.unread} /></p>` : null}
        ${found.writer || parts.length
          ? html`
              <${Listed} caption="Hosts of the log" columns=${HOSTS}>
                ${found.writer ? html`<${Writer} writer=${found.writer} />` : null}
                ${found.standbys.map(one => html`<${Host} kind="Standby" host=${one}>waits for the log<//>`)}
                ${found.workers.map(one => html`<${Host} kind="Worker" host=${one}>${work(one)}<//>`)}
                ${found.doors.map(one => html`<${Host} kind="Door" host=${one}>${lag(one)}${at(one.gateway)}<//>`)}
              <//>
            `
          : null}
      </section>
      ${found.calls.length
        ? html`
            <section>
              <h2>Calls by agent and channel</h2>
              <${Listed} caption="Calls by agent and channel" columns=${SERVED}>
                ${found.calls.map(one => html`<${Served} key=${`${one.kind} ${one.name}`} served=${one} />`)}
              <//>
            </section>
          `
        : null}
      ${found.underWay.length
        ? html`
            <section>
              <h2>${counted(found.count, 'call')}, the oldest first</h2>
              <${Listed} caption="Calls, the oldest first" columns=${CALLS}>
                ${found.underWay.map(one => html`<${Call} key=${`${one.id} ${one.attempt}`} call=${one} />`)}
              <//>
            </section>
          `
        : null}
    </div>
  `;
});
/** @param {string[]} names */
const some = names => names.slice(0, 8).join(', ') + (names.length > 8 ? ` and ${names.length - 8} more` : '');
/** @param {Answers.WorkerAnswer} worker */
const work = ({ taken, seats, agents, channels, draining }) =>
  [
    `${taken} of ${counted(seats, 'seat')} taken`,
    some([...agents, ...channels.map(name => `channel ${name}`)]),
    draining ? 'takes no more' : '',
  ]
    .filter(Boolean)
    .join('; ');
/** @param {Answers.PresentAnswer} door */
const lag = ({ lag: behind }) => (behind ? `${counted(behind, 'event')} behind` : 'has all events');
/** @param {string | null} gateway */
const at = gateway => (gateway ? `, with a gateway at ${gateway}` : '');
/** @param {{ writer: Answers.WriterAnswer }} given */
const Writer = ({ writer }) => html`
  <tr>
    <th scope="row">Writer<span class="why">epoch ${writer.epoch}</span></th>
    <td>${writer.host}<span class="why">process ${writer.pid}</span></td>
    <td class="mono">${writer.version}</td>
    <td class="all">writes the log${at(writer.gateway)}</td>
    <td></td>
  </tr>
`;
/** @param {{ kind: string, host: Answers.PresentAnswer | Answers.WorkerAnswer, children: Part }} given */
const Host = ({ kind, host, children }) => html`
  <tr>
    <th scope="row">${kind}<span class="why">${host.name}</span></th>
    <td>${host.host}${'pid' in host ? html`<span class="why">process ${host.pid}</span>` : null}</td>
    <td class="mono">${host.version}</td>
    <td class="all">${children}</td>
    <td class="num mono"><${Moment} ms=${host.sinceMs} /></td>
  </tr>
`;
/** @param {{ served: Answers.ServedAnswer }} given */
const Served = ({ served }) => html`
  <tr>
    <th scope="row">${capital(served.kind)} ${served.name}</th>
    <td class=${`num ${served.waiting && !served.workers.length ? 'bad' : ''}`} data-unit="waiting">
      ${served.waiting}
    </td>
    <td class="num" data-unit="under way">${served.underWay + served.silent}</td>
    <td class=${`num ${served.parked ? 'bad' : ''}`} data-unit="parked">${served.parked}</td>
    <td>${some(served.workers) || 'none'}</td>
  </tr>
`;
/** @param {{ call: Answers.CallAnswer }} given */
const Call = ({ call }) => html`
  <tr>
    <td class="all first">
      ${call.kind === 'agent'
        ? html`<a class="t said" ...${link(href('run', call.id))}>${short(call.sessionKey)}</a>`
        : html`<span class="t said">channel ${call.name}</span>`}
      <span class="why">${call.kind === 'agent' ? `agent ${call.name}` : `delivery ${call.id}`}</span>
    </td>
    <td class="num" data-unit=${call.attempt === 1 ? 'attempt' : 'attempts'}>${call.attempt}</td>
    <td class=${call.state === 'silent' ? 'bad' : ''}>${STATES[call.state]}</td>
    <td>${call.worker ?? ''}</td>
    <td class="num mono"><${Moment} ms=${call.offeredMs} /></td>
  </tr>
`;
