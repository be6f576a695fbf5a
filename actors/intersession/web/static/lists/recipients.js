// Who saw some words: runs whose agents were given them, sessions, chats, and looks at these sessions.
import { counted, short } from '../base/words.js';
import { html } from '../base/drawing.js';
import { about, deliveryName } from '../asking/about.js';
import { href, link } from '../asking/address.js';
import { Moment, Position } from '../parts/moments.js';
import { Listed } from './table.js';

/** @type {Record<string, string>} */
const WAYS = {
  told: 'was told',
  own: 'its own words',
  tool: 'a tool gave them',
  search: 'a look at sessions',
  inherited: 'inherited',
  system: 'from the system',
  summary: 'in a summary',
  line: 'in a line of its import that is no message',
};
/** @type {Record<string, string>} */
const PARTS = {
  transcript: 'its transcript',
  summary: 'a summary',
  message: 'the message to answer',
  partial: 'what the attempt before had done',
  systemContext: 'the system’s text',
};
/** @param {Answers.SeenAnswer} run @param {string} part */
const partOf = (run, part) => (run.imported && part === 'partial' ? 'what it had done since' : PARTS[part]);
const COLUMNS = [
  ['w-pos', '#'],
  ['w-stream', 'Who'],
  ['w-words', 'How'],
  ['w-moment', 'Time', 'num'],
];
/** @param {{ at: number, ms: number, who: Part, how: Part }} given */
const Row = ({ at, ms, who, how }) => html`
  <tr>
    <td><${Position} at=${at} /></td>
    <td>${who}</td>
    <td class="all first">${how}</td>
    <td class="num mono"><${Moment} ms=${ms} /></td>
  </tr>
`;
/** @param {string} key @param {number} at */
const session = (key, at) => html`<a ...${link(href('session', key, { at }))}>${short(key)}</a>`;
// A chat leads to what was sent there.
/** @param {Record<string, any>} route */
const chatOf = ({ channel, to }) => {
  const place = `${channel}:${to}`;
  return about.value?.isOperator ? html`<a class="link" ...${link(href('person', place))}>${place}</a>` : place;
};
/** @param {{ title: string, children: Part }} given */
const Part = ({ title, children }) => html`
  <div class="sec"><h2>${title}</h2></div>
  <${Listed} caption=${title} columns=${COLUMNS} look="low">${children}<//>
`;
/** @param {Answers.SeenAnswer} run */
const fromTools = run => (run.tools ? [run.tools.join(', ')] : []);
/** @param {Answers.SeenAnswer[]} seen */
const givenTo = seen => {
  const imported = seen.filter(one => one.imported).length;
  const runs = seen.length - imported;
  return [
    ...(runs || !imported ? [counted(runs, 'run')] : []),
    ...(imported ? [counted(imported, 'imported answer')] : []),
  ].join(' and ');
};
/** @param {Answers.SeenInSession} one */
const times = one => (one.count > 1 ? `, ${one.count} times, last at #${one.last.position}` : '');

/** @param {{ found: Answers.OriginAnswer }} given */
export const Recipients = ({ found }) => {
  const { seen = [], sessions = [], outside = [], looks = [] } = found;
  if (![seen, sessions, outside, looks].some(some => some.length))
    return html`<p class="note">Nobody saw them in this order.</p>`;
  return html`
    <${Part} title=${`Given to ${givenTo(seen)}${found.cursor ? ', and to earlier ones' : ''}`}>
      ${seen.map(
        run => html`
          <${Row}
            key=${run.position}
            at=${run.position}
            ms=${run.timeMs}
            who=${session(run.sessionKey, run.position)}
            how=${html`<a
              class="t said"
              ...${link(
                run.imported
                  ? href('session', run.sessionKey, { at: run.position, lens: run.runId })
                  : href('run', run.runId, { at: run.position, tab: 'lens' }),
              )}>
              ${[`in ${run.within.map(part => partOf(run, part)).join(', ')}`, ...fromTools(run)].join(', from ')}
            </a>`} />
        `,
      )}
    <//>
    ${sessions.length
      ? html`
          <${Part} title=${`In the history of ${counted(sessions.length, 'session')}`}>
            ${sessions.map(
              one => html`
                <${Row}
                  key=${one.sessionKey}
                  at=${one.first.position}
                  ms=${one.first.timeMs}
                  who=${session(one.sessionKey, one.first.position)}
                  how=${`${one.ways.map(way => WAYS[way]).join(', ')}${times(one)}${
                    one.imported ? '. Imported: what its agents were given besides messages is not known' : ''
                  }`} />
              `,
            )}
          <//>
        `
      : null}
    ${outside.length
      ? html`
          <${Part} title=${`Sent to ${counted(outside.length, 'chat')}`}>
            ${outside.map(
              chat => html`
                <${Row}
                  key=${chat.first.position}
                  at=${chat.first.position}
                  ms=${chat.first.timeMs}
                  who=${chatOf(chat.route)}
                  how=${`from ${chat.sessions.map(key => short(key)).join(', ')}: ${Object.entries(chat.states)
                    .map(([state, count]) => `${count} ${deliveryName(state)}`)
                    .join(', ')}`} />
              `,
            )}
          <//>
        `
      : null}
    ${looks.length
      ? html`
          <${Part} title="Looks at these sessions, which may have shown them">
            ${looks.map(
              look => html`
                <${Row}
                  key=${look.position}
                  at=${look.position}
                  ms=${look.timeMs}
                  who=${look.who}
                  how=${`${look.call}: ${look.sessions.map(key => short(key)).join(', ')}`} />
              `,
            )}
          <//>
        `
      : null}
  `;
};
