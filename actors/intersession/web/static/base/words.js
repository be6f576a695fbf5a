// How times, lengths, names and ends are said. Pure, but for the names of sub-agents that answers have told of.
const named = new Map();
/** @param {Record<string, string>} names */
export const learn = names => {
  for (const [key, said] of Object.entries(names)) named.set(key, said);
};
/** @param {string | null} [key] */
export const short = key => {
  if (named.has(key)) return named.get(key);
  const [kind, agent, ...rest] = String(key ?? '').split(':');
  if (kind !== 'agent') return key === 'operator' ? 'the operator' : String(key ?? '');
  const name = rest.join(':');
  if (name === 'main' || !name) return agent;
  return `${agent}/${name.replace(/([0-9a-f]{8})-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}/gi, '$1')}`;
};
/** @param {string | null} [key] */
export const isSub = key => String(key).includes(':subagent:');
/** @param {number | null} [ms] */
export const took = ms => {
  if (ms === undefined || ms === null) return '';
  if (ms < 1000) return `${Math.round(ms)} ms`;
  if (ms < 60_000) return `${(ms / 1000).toFixed(1)} s`;
  if (ms < 3_600_000) return `${Math.floor(ms / 60_000)} min ${Math.floor((ms % 60_000) / 1000)} s`;
  if (ms < 172_800_000) return `${Math.floor(ms / 3_600_000)} h ${Math.floor((ms % 3_600_000) / 60_000)} min`;
  return `${Math.floor(ms / 86_400_000)} days`;
};
// How long a run took: one that is not over, so far. What it was held, waiting for a release, is no time that it took.
/** @param {Answers.ListedRun} run */
export const lasted = run =>
  [
    `${took(run.tookMs)}${run.state === 'open' && !run.heldSince ? ' so far' : ''}`,
    run.heldMs ? `held ${took(run.heldMs)}` : '',
    run.heldSince ? `held since ${moment(run.heldSince)}` : '',
  ]
    .filter(Boolean)
    .join(', ');
/** @param {Answers.Gap} row */
export const gapped = row =>
  row.held
    ? `held for ${took(row.ms)}`
    : row.forked
    ? `the cut: forked ${took(row.ms)} later, which is no time of the run`
    : `${took(row.ms)} in which nothing was said`;
/** @param {number} ms */
export const since = ms =>
  ms < 0 ? '' : ms < 1000 ? `+${ms} ms` : ms < 60_000 ? `+${(ms / 1000).toFixed(1)} s` : `+${took(ms)}`;
// A time of a run without what lay between the cut of a fork and its making: `[cut, born]` each.
/** @param {number} ms @param {[number, number][]} [pauses] */
export const ran = (ms, pauses = []) => ms - pauses.reduce((sum, [cut, born]) => sum + (ms < born ? 0 : born - cut), 0);
/** @param {number} number */
const two = number => String(number).padStart(2, '0');
/** @param {number} ms */
export const clock = ms => {
  const at = new Date(ms);
  return `${two(at.getHours())}:${two(at.getMinutes())}:${two(at.getSeconds())}`;
};
/** @param {number} ms */
export const day = ms =>
  new Date(ms).toLocaleDateString('en-GB', { day: 'numeric', month: 'long', year: 'numeric' });
// The time of a day; with the day, where that is another one than today, and with the year, where that is another.
/** @param {number} ms */
export const moment = ms => {
  const at = new Date(ms);
  const now = new Date();
  if (at.toDateString() === now.toDateString()) return clock(ms);
  const year = at.getFullYear() === now.getFullYear() ? undefined : 'numeric';
  return `${at.toLocaleDateString('en-GB', { day: 'numeric', month: 'short', year })} ${clock(ms)}`;
};
/** @param {number} ms */
export const utc = ms => `${new Date(ms).toISOString().replace('T', ' ').replace('Z', '')} UTC`;
/** @param {number} number @param {string} what */
export const counted = (number, what) => `${number.toLocaleString('en-GB')} ${what}${number === 1 ? '' : 's'}`;
/** @param {string} [text] */
export const capital = text => (text ? text[0].toUpperCase() + text.slice(1) : '');
// A sentence begins with a capital, but for a name, which stays as it is.
/** @param {Answers.ListedRun} run */
const namesIn = run =>
  (run.lanes ?? []).flatMap(lane => (lane.kind === 'channel' ? [lane.name, lane.id.split(':')[0]] : [lane.name]));
/** @param {string} text @param {Answers.ListedRun} run */
const begun = (text, run) => (namesIn(run).some(one => text.startsWith(`${one} `)) ? text : capital(text));
/** @param {Answers.ListedRun} run */
export const ended = run => [begun(run.ended[0], run), run.ended[1]];
/** @param {Message["content"]} [content] */
export const textOf = content => {
  if (typeof content === 'string') return content;
  return (content ?? [])
    .filter(block => block.type === 'text')
    .map(block => block.text)
    .join('\n');
};
/** @param {Message["content"]} [content] */
export const calls = content => (Array.isArray(content) ? content.filter(block => block.type === 'toolCall') : []);
/** @param {string} kind */
export const ofKind = kind => String(kind).replaceAll('_', ' ');
// What a tool was given, or gave, as people say it; all else as JSON.
/** @param {any} args */
export const given = args => {
  const { sessionKey, label, agentId, message, task, ...rest } = args ?? {};
  const to = sessionKey ?? label ?? agentId;
  const text = message ?? task;
  if (typeof text !== 'string') return JSON.stringify(args, null, 1);
  return `${to ? `→ ${short(to)}  ` : ''}“${text}”${Object.keys(rest).length ? `  ${JSON.stringify(rest)}` : ''}`;
};
/** @param {string} text */
export const gave = text => {
  try {
    const said = JSON.parse(text);
    if (typeof said?.status !== 'string') return JSON.stringify(said, null, 1);
    const words = said.reply ?? said.error;
    return `${said.status}${words ? ` · ${said.reply ? 'reply' : 'error'}: “${words}”` : ''}`;
  } catch {
    return text;
  }
};
/** @param {any} args */
export const parsed = args => {
  if (typeof args !== 'string') return args;
  try {
    return JSON.parse(args);
  } catch {
    return { text: args };
  }
};
