// The other lists: sessions and one of them, the log event by event, deliveries, and what a search finds.
import { effect, html, signal, view } from './lib.js';
import { ask, live } from './api.js';
import { Badge, Failed, Loading, Outline, Position, Time, laneOf } from './parts.js';
import { Choice, Chosen, More, Only, Text, chosen, given, listKeys, paged } from './paging.js';
import { go, href, link, queried, route } from './state.js';
import { Message } from './message.js';
import { Raw } from './raw.js';
import { RetryButton } from './deeds.js';
import { capital, clock, counted, day, ended, failed, ofKind, short, took, utc } from './words.js';

const Body = view(({ state, what, names, children, empty }) => {
  const rows = state.rows.value;
  if (state.error.value) return html`<${Failed} error=${state.error.value} retry=${() => state.load()} />`;
  if (!rows) return html`<${Loading}/>`;
  if (rows.length) return html`${children(rows)}<${More} state=${state} />`;
  return chosen(names).length
    ? html`
        <div class="empty">
          <h2>No ${what} matches</h2>
          <p class="muted">Take one of these away:</p>
          <${Chosen} names=${names} />
        </div>
      `
    : html`<div class="empty"><h2>${empty}</h2></div>`;
});
const Title = view(
  ({ name, state, more }) => html`
    <div class="head">
      <div class="grow ttl">
        <h1>${name}</h1>
        ${state.rows.value
          ? html`
              <span class="muted">
                ${state.rows.value.length}
                ${state.cursor.value ? ' so far' : ''}
                ${more ?? ''}
              </span>
            `
          : null}
      </div>
    </div>
  `,
);

const OF_SESSIONS = ['search', 'agent', 'at', 'kinds'];
export const Sessions = view((_, self) => {
  const address = row => href('session', row.canonical, { at: queried('at') });
  const state = self.once(() => {
    const made = paged(self, 'sessions', 'sessions', () => given(OF_SESSIONS));
    listKeys(self, made, address);
    return made;
  });
  const asOf = state.rows.value ? `, as of #${state.answer.asOf}` : '';
  return html`
    <${Title} name="Sessions" state=${state} more=${asOf} />
    <div class="filters" role="group" aria-label="Filters">
      <${Text} name="search" label="Key, label or name" wide />
      <${Text} name="agent" label="Agent" />
      <${Text} name="at" label="As of, a time or #" />
    </div>
    <${Body} state=${state} what="session" names=${OF_SESSIONS} empty="No sessions in this log yet">
      ${rows => html`
        <table class="list">
          <caption class="vh">Sessions, the most recently active first</caption>
          <colgroup>
            <col class="w-key" />
            <col class="w-words" />
            <col class="w-small" />
            <col class="w-small" />
            <col class="w-took" />
            <col class="w-began" />
          </colgroup>
          <thead>
            <tr>
              <th scope="col">Session</th>
              <th scope="col">Last said</th>
              <th scope="col">Channel</th>
              <th scope="col">State</th>
              <th scope="col" class="num">Tokens</th>
              <th scope="col" class="num">Updated</th>
            </tr>
          </thead>
          <tbody>
            ${rows.map(
              (row, place) => html`
                <tr
                  key=${row.canonical}
                  class=${place === state.sel.value ? 'sel' : ''}
                  onClick=${event => {
                    if (!event.target.closest('a')) go(address(row));
                  }}>
                  <td>
                    <span class="who">
                      <${Badge} lane=${laneOf(row.canonical)} />
                      <a class="t" ...${link(address(row))}>
                        ${row.label ?? row.displayName ?? short(row.canonical)}
                      </a>
                    </span>
                    <span class="why mono">${row.canonical}</span>
                  </td>
                  <td><span class="why">${lastSaid(row)}</span></td>
                  <td>${row.channel === 'unknown' ? '' : row.channel}</td>
                  <td>
                    ${row.runState}
                    ${row.abortedLastRun ? html`<span class="why bad">last run aborted</span>` : null}
                  </td>
                  <td class="num">${row.totalTokens?.toLocaleString('en-GB') ?? ''}</td>
                  <td class="num mono"><${Time} ms=${row.updatedAt} /></td>
                </tr>
              `,
            )}
          </tbody>
        </table>
      `}
    <//>
  `;
});
const lastSaid = row => {
  const last = row.messages?.at(-1);
  return last
    ? typeof last.content === 'string'
      ? last.content
      : (last.content ?? []).map(block => block.text ?? block.name ?? '').join(' ')
    : '';
};

export const Session = view(({ id }, self) => {
  const state = self.once(() => ({ found: signal(null), error: signal(null) }));
  const runs = (self.once2 ??= paged(self, 'runs', 'runs', () => ({ session: id, limit: 20 })));
  const load = async () => {
    try {
      state.found.value = await ask('state', { of: id, at: queried('at'), messages: 300 });
      state.error.value = null;
    } catch (error) {
      state.error.value = error;
    }
  };
  if (!self.began) {
    self.began = true;
    let head = -1;
    let at = null;
    self.onEnd(
      effect(() => {
        const now = live.value.head;
        const place = route.value.query.get('at');
        if (now !== head || place !== at) {
          head = now;
          at = place;
          load();
        }
      }),
    );
  }
  const found = state.found.value;
  const session = found?.sessions[0];
  if (state.error.value) return html`<${Failed} error=${state.error.value} retry=${load} />`;
  if (!found) return html`<${Loading}/>`;
  if (!session)
    return html`
      <div class="empty">
        <h2>${short(id)} was not there yet</h2>
        <p class="muted">At this place the log knew no such session.</p>
      </div>
    `;
  return html`
    <div class="head">
      <div class="grow">
        <p class="crumbs"><a ...${link(href('sessions'))}>Sessions</a></p>
        <div class="ttl">
          <${Badge} lane=${laneOf(session.key)} />
          <h1>${session.label ?? short(session.key)}</h1>
          <span class="mono muted">${session.key}</span>
        </div>
        <p class="sum">${capital(found.place.text)} · <${Position} at=${found.place.position} /></p>
      </div>
    </div>
    <div class="filters" role="group" aria-label="Place">
      <${Text} name="at" label="As it stood at, a time or #" wide />
    </div>
    <div class="work session">
      <section class="col page-col" aria-label="Transcript">
        <h2>Transcript <span>${counted(session.transcript.length, 'message')}</span></h2>
        ${session.transcript.length
          ? session.transcript.map(
              message => html`<${Message} key=${message.id} message=${message} owner=${session.key} />`,
            )
          : html`<p class="muted">Nothing was said yet.</p>`}
      </section>
      <aside class="panel" aria-label="About the session">
        <div class="tp">
          <div class="sec">
            <h2>Session</h2>
            <dl class="kv">
              <dt>State</dt>
              <dd>${session.runState}</dd>
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
              run => html`
                <p>
                  <a class="t link" ...${link(href('run', run.id))}>${run.title || run.id}</a>
                  <br/>
                  <span class=${`small ${failed(run) ? 'bad' : 'muted'}`}>${ended(run)[0]}</span>
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

const OF_LOG = ['stream', 'kind', 'session', 'since', 'until', 'at'];
export const Log = view((_, self) => {
  const state = self.once(() =>
    paged(self, 'events', 'events', () => ({
      ...given(['stream', 'kind', 'session', 'since']),
      until: queried('until') || queried('at'),
    })),
  );
  const shown = (self.shown ??= signal(null));
  const at = queried('at');
  if (at && self.at !== at) {
    self.at = at;
    ask('event', { at }).then(
      found => {
        shown.value = found;
      },
      error => {
        shown.value = { error };
      },
    );
  }
  const pick = row => {
    shown.value = null;
    ask('event', { at: row.position }).then(
      found => {
        shown.value = found;
      },
      error => {
        shown.value = { error };
      },
    );
  };
  return html`
    <${Title} name="Log" state=${state} />
    <div class="filters" role="group" aria-label="Filters">
      <${Text} name="stream" label="Stream begins with" wide />
      <${Text} name="kind" label="Kind of event" />
      <${Text} name="session" label="Session" />
      <${Text} name="since" label="Since, a time or #" />
      <${Text} name="until" label="Until, a time or #" />
    </div>
    <div class="work">
      <div>
        <${Body} state=${state} what="event" names=${OF_LOG} empty="This log is empty">
          ${rows => html`
            <table class="list dense">
              <caption class="vh">Events, the newest first</caption>
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
                  <th scope="col">Stream</th>
                  <th scope="col">Words</th>
                </tr>
              </thead>
              <tbody>
                ${rows.map(
                  row => html`
                    <tr key=${row.position} class=${shown.value?.position === row.position ? 'sel' : ''}>
                      <td>
                        <button type="button" class="num-link" onClick=${() => pick(row)}>#${row.position}</button>
                      </td>
                      <td class="mono">
                        <time title=${utc(row.timeMs)} datetime=${new Date(row.timeMs).toISOString()}>
                          ${clock(row.timeMs)}
                        </time>
                      </td>
                      <td>${ofKind(row.kind)}</td>
                      <td class="mono muted" title=${row.stream}>${streamName(row.stream)}</td>
                      <td title=${row.text}>${between(row)}${row.text ?? ''}</td>
                    </tr>
                  `,
                )}
              </tbody>
            </table>
          `}
        <//>
      </div>
      <aside class="panel" aria-label="Event">
        <div class="tp" tabindex="0">
          ${shown.value?.error
            ? html`<${Failed} error=${shown.value.error} />`
            : shown.value
              ? html`<${Raw} event=${shown.value} />`
              : html`<p class="loading">Choose an event to see all of it.</p>`}
        </div>
      </aside>
    </div>
  `;
});
const streamName = stream => {
  const [kind, ...rest] = stream.split(':');
  const name = rest.join(':');
  return kind === 'session' ? short(name) : name ? `${kind}:${name.slice(0, 8)}` : kind;
};
const between = row =>
  row.who
    ? html`
        <span class="muted">${short(row.who)}${row.to ? ` → ${short(row.to)}` : ''}${row.text ? ': ' : ''}</span>
      `
    : null;

const OF_DELIVERIES = ['failed', 'pending', 'session', 'channel', 'since'];
const STATES = {
  done: 'delivered',
  failed: 'not delivered',
  denied: 'forbidden by the send policy',
  unknown: 'perhaps delivered',
  retrying: 'tried again soon',
  started: 'on its way',
  decided: 'waits',
  withheld: 'withheld: would deliver',
};
export const Deliveries = view((_, self) => {
  const state = self.once(() => paged(self, 'deliveries', 'deliveries', () => given(OF_DELIVERIES)));
  return html`
    <${Title} name="Deliveries and failures" state=${state} />
    <div class="filters" role="group" aria-label="Filters">
      <${Text} name="session" label="Session" />
      <${Text} name="channel" label="Channel" />
      <${Text} name="since" label="Since, a time or #" />
      <${Only} name="failed">did not arrive<//>
      <${Only} name="pending">still to come<//>
    </div>
    <${Body} state=${state} what="text" names=${OF_DELIVERIES} empty="No text went outside yet">
      ${rows => html`
        <table class="list">
          <caption class="vh">Texts that went outside, or should have, the newest first</caption>
          <colgroup>
            <col class="w-pos" />
            <col class="w-stream" />
            <col class="w-end" />
            <col class="w-words" />
            <col class="w-turns" />
            <col class="w-began" />
          </colgroup>
          <thead>
            <tr>
              <th scope="col">#</th>
              <th scope="col">From, to</th>
              <th scope="col">What became of it</th>
              <th scope="col">Text</th>
              <th scope="col" class="num">Tries</th>
              <th scope="col" class="num">Decided</th>
            </tr>
          </thead>
          <tbody>
            ${rows.map(
              row => html`
                <tr key=${row.id}>
                  <td><${Position} at=${row.position} /></td>
                  <td>
                    ${short(row.sessionKey)}
                    <span class="why">${row.channel}${row.to ? `:${row.to}` : ''}</span>
                  </td>
                  <td class=${['failed', 'denied', 'unknown'].includes(row.state) ? 'bad' : ''}>
                    ${capital(STATES[row.state] ?? row.state)}
                    <span class="why" title=${row.error}>${row.error ?? ''}</span>
                    <${RetryButton} row=${row} after=${() => state.load()} />
                  </td>
                  <td>
                    ${row.runId
                      ? html`<a class="t" ...${link(href('run', row.runId, { at: row.position }))}>${row.text}</a>`
                      : row.text}
                  </td>
                  <td class="num">${row.attempts}</td>
                  <td class="num mono">${row.decidedAt ? html`<${Time} ms=${row.decidedAt} />` : ''}</td>
                </tr>
              `,
            )}
          </tbody>
        </table>
      `}
    <//>
  `;
});

// Where words were said first, in its run. An import's transcripts name none: there it is the run that had them next.
async function originOf(words) {
  const found = await ask('origin', { words });
  const { first } = found;
  if (!first || first.runId) return found;
  const { hits } = await ask('search', { words: found.words, limit: 100 });
  const next = hits.findLast(hit => hit.runId && hit.position >= first.position);
  return next ? { ...found, first: { ...first, runId: next.runId, inRun: next.position } } : found;
}

// Who said it first: the words as they stand, else the longest part of them that anybody said.
const First = view((_, self) => {
  const state = self.once(() => {
    const made = { found: signal(null) };
    let known = '';
    self.onEnd(
      effect(() => {
        const words = route.value.query.get('words') ?? '';
        if (words === known) return;
        known = words;
        made.found.value = null;
        if (words.trim().length > 2)
          originOf(words).then(
            found => {
              if (known === words) made.found.value = found;
            },
            () => {},
          );
      }),
    );
    return made;
  });
  const found = state.found.value;
  const first = found?.first;
  if (!first) return null;
  const address = first.runId
    ? href('run', first.runId, { at: first.inRun ?? first.position })
    : href('session', first.sessionKey, { at: first.position });
  return html`
    <p class="note first">
      <b>First said</b> by <${Badge} lane=${laneOf(first.who)} small /> <b>${short(first.who)}</b>
      ${first.to ? ` to ${short(first.to)}` : ''}, <${Time} ms=${first.timeMs} dated />
      ${found.match === 'exact'
        ? ''
        : found.match === 'folded'
          ? ', in other case'
          : `, of it “${found.words}”`}: <a class="link" ...${link(address)}>
        “${first.text.slice(0, 160)}” <span class="mono">#${first.position}</span>
      </a>
      ${found.hops.length
        ? html` <span class="muted">It came to ${counted(found.hops.length, 'more message')}.</span>`
        : ''}
    </p>
  `;
});

export const Search = view((_, self) => {
  const state = self.once(() =>
    paged(
      self,
      'search',
      'hits',
      () => ({ words: queried('words') || ' ', in: queried('in'), kind: queried('kind') }),
      { fresh: false },
    ),
  );
  return html`
    <${Title} name=${`Search: ${queried('words')}`} state=${state} />
    <div class="filters" role="group" aria-label="Filters">
      <${Text} name="words" label="Words" wide />
      <${Text} name="in" label="In session" />
      <${Text} name="kind" label="Kind of event" />
    </div>
    <${First}/>
    <${Body} state=${state} what="message or event" names=${['words', 'in', 'kind']} empty="Nothing found">
      ${rows => html`
        <table class="list">
          <caption class="vh">Where the words stand, the newest first</caption>
          <colgroup>
            <col class="w-pos" />
            <col class="w-words" />
            <col class="w-stream" />
            <col class="w-kind" />
            <col class="w-time" />
          </colgroup>
          <thead>
            <tr>
              <th scope="col">#</th>
              <th scope="col">Words</th>
              <th scope="col">Session</th>
              <th scope="col">Event</th>
              <th scope="col" class="num">Time</th>
            </tr>
          </thead>
          <tbody>
            ${rows.map(
              hit => html`
                <tr key=${hit.position}>
                  <td><${Position} at=${hit.position} /></td>
                  <td>
                    ${hit.runId
                      ? html`
                          <a class="t" ...${link(href('run', hit.runId, { at: hit.position }))}>${hit.snippet}</a>
                        `
                      : html`<span class="t">${hit.snippet}</span>`}
                  </td>
                  <td>
                    ${hit.sessionKey
                      ? html`
                          <a ...${link(href('session', hit.sessionKey, { at: hit.position }))}>
                            ${short(hit.sessionKey)}
                          </a>
                        `
                      : ''}
                  </td>
                  <td class="muted">${ofKind(hit.kind)}</td>
                  <td class="num mono" title=${day(hit.timeMs)}><${Time} ms=${hit.timeMs} /></td>
                </tr>
              `,
            )}
          </tbody>
        </table>
      `}
    <//>
  `;
});
