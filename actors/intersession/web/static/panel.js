// The right side of a run: transcripts as they stood, what an agent is given, the event, why,
// and the raw row with its hashes.
import { html, signal, view } from './lib.js';
import { ask, inside, tell } from './api.js';
import { can } from './deeds.js';
import { Badge, Failed, Loading, Shield, Time, hueOf, laneOf, open } from './parts.js';
import { href, link, queried, setQuery } from './state.js';
import { calls, capital, clock, counted, gave, given, ofKind, parsed, short, textOf, took, utc } from './words.js';

// A secret is hidden, whoever looks. That one was looked at is recorded.
export const Hidden = ({ event }) =>
  event.redacted
    ? html`
        <p class="as hidden">
          <span>Secrets in it are hidden.</span>
          ${can('reveal')
            ? html`
                <button
                  type="button"
                  class="btn"
                  onClick=${() => {
                    open.value = {
                      title: `Reveal the secrets of #${event.position}`,
                      button: 'Reveal them',
                      body: html`<p>They are shown to you, once. That you have looked is recorded in the log.</p>`,
                      done: async () => {
                        try {
                          const whole = await tell(
                            'api/reveal',
                            inside.fork ? { at: event.position, fork: inside.fork } : { at: event.position },
                          );
                          open.value = {
                            title: `#${event.position}, with its secrets`,
                            body: html`<pre tabindex="0">${JSON.stringify(whole.data, null, 2)}</pre>`,
                          };
                        } catch (error) {
                          open.value = {
                            title: 'They were not revealed',
                            body: html`<p class="alert">${error.message}</p>`,
                          };
                        }
                      },
                    };
                  }}>
                  Reveal
                </button>
              `
            : null}
        </p>
      `
    : null;

const TABS = [
  ['transcripts', 'Transcripts'],
  ['lens', 'Next prompt'],
  ['event', 'Event'],
  ['why', 'Why'],
  ['raw', 'Raw'],
];
const hue = key => {
  const lane = laneOf(key);
  return hueOf(lane.kind, lane.id);
};

// What a message says of itself: who said it, and to whom.
export const Message = ({ message, owner, at, isNew }) => {
  const origin = message.provenance;
  const from = origin?.sourceSessionKey;
  const [name, colour, how] =
    message.role === 'assistant'
      ? [short(owner), hue(owner), calls(message.content).length ? 'calls' : '']
      : message.role === 'toolResult'
        ? [message.toolName ?? 'tool', hue(owner), 'gave']
        : from
          ? [
              short(from),
              hue(from),
              origin.turn ? (origin.turn === 1 ? 'replies' : `turn ${origin.turn - 1}`) : 'asks',
            ]
          : origin?.kind === 'external_user'
            ? [origin.senderName ?? origin.sender ?? 'a person', 'c-person', origin.sourceChannel ?? '']
            : message.role === 'user' && origin
              ? ['the system', 'c-grey', 'tells']
              : [message.role, 'c-grey', ''];
  const tool = message.role === 'toolResult' || calls(message.content).length > 0;
  const text = textOf(message.content);
  return html`
    <div class=${`msg ${colour} ${tool ? 'tool' : ''} ${isNew ? 'here' : ''}`}>
      <div class="by">
        <b>${name}</b>
        ${how ? html`<span>${how}</span>` : null}
        <span class="p">${at ? `#${at}` : message.timestamp ? html`<${Time} ms=${message.timestamp} />` : ''}</span>
        ${isNew ? html`<span class="newm">new</span>` : null}
      </div>
      ${text ? (message.role === 'toolResult' ? html`<code>${gave(text)}</code>` : html`<p>${text}</p>`) : null}
      ${calls(message.content).map(call => html`<code>${call.name} ${given(parsed(call.arguments))}</code>`)}
      ${!text && !tool ? html`<p class="muted">(no text)</p>` : null}
    </div>
  `;
};

// loaded(self, key, load): what `load` gives for the key that is shown now;
// what was shown stays until the next is there.
function loaded(self, name, key, load) {
  const kept = ((self.loads ??= {})[name] ??= { key: null, value: signal(null), cache: new Map() });
  if (kept.key !== key) {
    kept.key = key;
    clearTimeout(kept.timer);
    kept.stop?.abort();
    if (kept.cache.has(key))
      queueMicrotask(() => {
        kept.value.value = kept.cache.get(key);
      });
    else
      kept.timer = setTimeout(async () => {
        kept.stop = new AbortController();
        let found;
        try {
          found = { key, ...(await load(kept.stop.signal)) };
          kept.cache.set(key, found);
          if (kept.cache.size > 60) kept.cache.delete(kept.cache.keys().next().value);
        } catch (error) {
          if (error.name === 'AbortError') return;
          found = { key, error };
        }
        if (kept.key === key && !self.gone) kept.value.value = found;
      }, 50);
  }
  return kept.value.value;
}

const Transcripts = view(({ place }, self) => {
  const run = place.run.value;
  const position = place.position.value;
  const step = place.step.value;
  const found = loaded(self, 'state', position, stop =>
    ask('state', { of: run.id, at: position, messages: 120 }, { signal: stop }),
  );
  if (!found) return html`<${Loading}/>`;
  if (found.error) return html`<${Failed} error=${found.error} />`;
  const positions = new Map(place.steps.filter(one => one?.messageId).map(one => [one.messageId, one.position]));
  const next = place.nextRun;
  const waits = found.next?.text;
  const last = Math.max(
    0,
    ...found.sessions
      .flatMap(session => session.transcript.map(message => positions.get(message.id) ?? 0))
      .filter(at => at <= position),
  );
  const fresh = step && position - last <= 3 ? last : step?.position;
  return html`
    <div>
      <p class="as">
        <span>
          As they stood after #${found.place.position}. Nothing later is
          shown.${found.redacted ? ' Secrets are hidden; the event of a message reveals them.' : ''}
        </span>
        <span>
          ${found.open.runs.length ? `${counted(found.open.runs.length, 'run')} at work` : 'nobody at work'}
        </span>
      </p>
      <div class="cols">
        ${found.sessions.map(
          session => html`
            <section class="col" key=${session.key} aria-label=${`Transcript of ${short(session.key)}`}>
              <h2>
                <${Badge} lane=${laneOf(session.key)} /> <a
                  ...${link(href('session', session.key, { at: found.place.position }))}>
                  ${short(session.key)}
                </a>
                <span>${counted(session.transcript.length, 'message')}</span>
              </h2>
              ${session.transcript.map(
                message => html`
                  <${Message}
                    key=${message.id}
                    message=${message}
                    owner=${session.key}
                    at=${positions.get(message.id)}
                    isNew=${positions.get(message.id) !== undefined && positions.get(message.id) === fresh} />
                `,
              )}
              ${session.transcript.length ? null : html`<p class="muted">Nothing was said yet.</p>`}
              ${place.index.value < place.length ? html`<p class="notyet">not yet</p>` : null}
              ${next && next.who === session.key
                ? html`<p class="muted small">${short(session.key)} answers next.</p>`
                : null}
            </section>
          `,
        )}
        ${found.sessions.length ? null : html`<p class="loading">No session was there yet.</p>`}
      </div>
      ${waits && place.index.value < place.length ? html`<p class="as">next: ${waits}</p>` : null}
    </div>
  `;
});

const Lens = view(({ place }, self) => {
  const index = place.index.value;
  place.loaded.value;
  const named = queried('lens');
  const next = place.nextRun;
  const chosen = named || next?.runId || place.lastRun?.runId;
  const found = chosen
    ? loaded(self, 'lens', chosen, stop => ask('lens', { run: chosen }, { signal: stop }))
    : null;
  if (!chosen) return html`<p class="loading">No agent was asked ${index ? 'yet' : 'before this place'}.</p>`;
  if (!found) return html`<${Loading}/>`;
  if (found.error) return html`<${Failed} error=${found.error} />`;
  const who = short(found.sessionKey);
  const ahead = !named && next?.runId === chosen;
  return html`
    <div>
      <p class="as">
        <span>
          ${ahead ? `What ${who} is about to be given` : `What ${who} was given`}, attempt ${found.attempt}
        </span>
        <button type="button" class="num-link" onClick=${() => place.toPosition(found.place.position)}>
          #${found.place.position}
        </button>
      </p>
      <div class="sec">
        <p class=${`rec ${found.asRecorded ? 'ok' : 'no'}`}>
          <${Shield} ok=${found.asRecorded} />
          <b>${found.asRecorded ? 'As recorded' : 'Not as recorded'}</b>
          <span class="muted">
            ${found.asRecorded ? 'rebuilt from the log, same hash' : (found.problem ?? 'the hash differs')}
          </span>
        </p>
        <code class="muted">${found.contextHash}</code>
      </div>
      <div class="sec"><h2>System context</h2><pre tabindex="0">${found.systemContext || '(none)'}</pre></div>
      <div class="sec">
        <h2>Transcript, ${counted(found.messages.length, 'message')}</h2>
        ${found.messages.map(
          message => html`<${Message} key=${message.id} message=${message} owner=${found.sessionKey} />`,
        )}
      </div>
      <div class="sec">
        <h2>The message to answer</h2>
        ${found.message
          ? html`<${Message} message=${found.message} owner=${found.sessionKey} isNew=${true} />`
          : html`<p class="muted">not in the log any more</p>`}
        ${found.partial.length
          ? html`
              <h2>Said before it was cut off</h2>
              ${found.partial.map(message => html`<${Message} message=${message} owner=${found.sessionKey} />`)}
            `
          : null}
      </div>
      <div class="sec">
        <dl class="kv">
          <dt>Model</dt>
          <dd>${found.model ?? 'not recorded'}</dd>
          <dt>Deadline</dt>
          <dd>
            ${found.deadlineMs
              ? took(found.deadlineMs) === ''
                ? ''
                : html`<${Time} ms=${found.deadlineMs} dated />`
              : 'none'}
          </dd>
          <dt>Tools</dt>
          <dd>
            ${found.tools ? found.tools.map(tool => tool.title ?? tool.name).join(', ') || 'none' : 'not recorded'}
          </dd>
        </dl>
      </div>
    </div>
  `;
});

const shown = value =>
  value === null || value === undefined ? '–' : typeof value === 'string' ? value : JSON.stringify(value);
const Event = view(({ place }, self) => {
  const run = place.run.value;
  const position = place.position.value;
  const step = place.step.value;
  const found = loaded(self, 'event', position, async stop => {
    if (!step) throw new Error('There is no event before the first one.');
    const [event, changed] = await Promise.all([
      ask('event', { at: position }, { signal: stop }),
      ask(
        'state',
        { of: run.id, from: Math.max(position - 1, 0), to: position, messages: 0 },
        { signal: stop },
      ).catch(() => ({ changes: [] })),
    ]);
    return { event, changes: changed.changes };
  });
  if (!found) return html`<${Loading}/>`;
  if (found.error) return html`<${Failed} error=${found.error} />`;
  const { event, changes } = found;
  return html`
    <div>
      <div class="sec">
        <dl class="kv">
          <dt>Event</dt>
          <dd><b>${ofKind(event.kind)}</b> <span class="mono muted">#${event.position}</span></dd>
          <dt>Stream</dt>
          <dd class="mono">${event.stream}, ${event.version}</dd>
          <dt>When</dt>
          <dd>${clock(event.timeMs)} <span class="muted">${utc(event.timeMs)}</span></dd>
          <dt>Who</dt>
          <dd>${event.who ? short(event.who) : '–'}${event.to ? ` → ${short(event.to)}` : ''}</dd>
          ${step?.cause
            ? html`
                <dt>Cause</dt>
                <dd>
                  <button type="button" class="num-link" onClick=${() => place.toPosition(step.cause)}>
                    #${step.cause}
                  </button>
                </dd>
              `
            : null}
        </dl>
      </div>
      <div class="sec">
        <h2>What it changed</h2>
        ${changes.length
          ? html`
              <table class="diff">
                <caption class="vh">Fields before and after</caption>
                <tbody>
                  ${changes.map(
                    change => html`
                      <tr>
                        <th scope="row">
                          ${String(change.path).replace(/[0-9a-f]{8}-[0-9a-f-]{27}/g, id => id.slice(0, 8))}
                        </th>
                        <td>
                          ${change.before !== null && change.before !== undefined
                            ? html`<del>${shown(change.before)}</del> `
                            : null}
                          ${change.after !== null && change.after !== undefined
                            ? html`<ins>${shown(change.after)}</ins>`
                            : null}
                        </td>
                      </tr>
                    `,
                  )}
                </tbody>
              </table>
            `
          : html`<p class="muted">Nothing that is shown of this run.</p>`}
      </div>
      <${Hidden} event=${event} />
      <div class="sec"><h2>Payload</h2><pre tabindex="0">${JSON.stringify(event.data, null, 2)}</pre></div>
    </div>
  `;
});

const Told = ({ told, place }) => html`
  <li>
    <button type="button" class="num-link n" onClick=${() => place.toPosition(told.position)}>
      #${told.position}
    </button>
    <span class="mk">
      ${told.who?.startsWith('agent:')
        ? html`<${Badge} lane=${laneOf(told.who)} />`
        : html`<span class="b"></span>`}
    </span>
    <span>
      <span class=${told.kind ? 'strong' : ''}>
        ${told.who ? `${short(told.who)} ` : ''}
        ${told.how || ofKind(told.topic.replace(/\.\d+$/, ''))}
        ${told.to ? ` → ${short(told.to)}` : ''}
      </span>
      ${told.text && told.text !== told.how ? html`<br/><span class="w">${told.text}</span>` : null}
    </span>
  </li>
`;
const Effects = ({ effects, place, deep }) => html`
  <ul>
    ${effects.map(
      one => html`
        <li>
          <button type="button" class="num-link" onClick=${() => place.toPosition(one.position)}>
            #${one.position}
          </button> ${one.who ? `${short(one.who)} ` : ''}${one.how || ofKind(one.topic.replace(/\.\d+$/, ''))}${one
            .effects.length && deep
            ? html`<${Effects} effects=${one.effects} place=${place} deep=${deep - 1} />`
            : null}${one.more || (one.effects.length && !deep) ? html` <span class="muted">and more</span>` : null}
        </li>
      `,
    )}
  </ul>
`;
const Why = view(({ place }, self) => {
  const run = place.run.value;
  const position = place.position.value;
  const atEnd = place.index.value === place.length;
  const found = loaded(self, 'why', `${position}/${atEnd}`, async stop => {
    const [why, led] = await Promise.all([
      ask('why', { of: atEnd ? run.id : position }, { signal: stop }),
      ask('why', { of: position, forward: true }, { signal: stop }),
    ]);
    return { why, led };
  });
  if (!found) return html`<${Loading}/>`;
  if (found.error) return html`<${Failed} error=${found.error} />`;
  const { why, led } = found;
  const story = [why.event, ...why.causes].filter((one, number) => number === 0 || one.how);
  return html`
    <div>
      ${why.explanations.length
        ? html`
            <div class="sec">
              <h2>${atEnd ? 'Why it ended so' : 'Why it is so'}</h2>
              ${why.explanations.map(
                one => html`
                  <div class="rule">
                    <p><b>${capital(one.text)}</b></p>
                    <dl class="kv">
                      <dt>Rule</dt>
                      <dd>
                        ${one.rule}
                        ${one.asDecided === false
                          ? html` <b class="bad">today it would say something else</b>`
                          : null}
                      </dd>
                      ${(one.inputs ?? []).map(
                        input => html`
                          <dt>${input.name}</dt>
                          <dd>
                            ${shown(input.value)} <span class="muted small">
                              ${input.setBy === 'default' ? 'the default; nobody set it' : `by ${input.setBy}`}
                            </span>
                            ${input.position
                              ? html` <button
                                  type="button"
                                  class="num-link"
                                  onClick=${() => place.toPosition(input.position)}>
                                  #${input.position}
                                </button>`
                              : null}
                          </dd>
                        `,
                      )}
                    </dl>
                    ${one.instead?.length
                      ? html`
                          <div>
                            <b>What would have changed it</b>
                            <ul>
                              ${one.instead.map(
                                other => html`
                                  <li>
                                    ${Object.values(other)
                                      .filter(value => typeof value === 'string' || typeof value === 'number')
                                      .join(' ')}
                                  </li>
                                `,
                              )}
                            </ul>
                          </div>
                        `
                      : null}
                  </div>
                `,
              )}
            </div>
          `
        : null}
      <div class="sec">
        <h2>
          Causes, back
          to ${why.root
            ? ({
                person: 'a person',
                operator: 'the operator',
                timer: 'a timer',
                start: 'a start',
                import: 'an import',
                system: 'the system',
              }[why.root.kind] ?? why.root.kind)
            : 'what is not within reach'}
        </h2>
        <ol class="chain">${story.map(told => html`<${Told} told=${told} place=${place} />`)}</ol>
      </div>
      <div class="sec tree">
        <h2>What it led to</h2>
        ${led.effects.length
          ? html`<${Effects} effects=${led.effects} place=${place} deep=${3} />`
          : html`<p class="muted">Nothing.</p>`}
        ${led.open.length ? html`<p>${counted(led.open.length, 'thing')} of it still open.</p>` : null}
      </div>
    </div>
  `;
});

export const Raw = ({ event }) => {
  const { data, holds, redacted, ...row } = event;
  return html`
    <div>
      <${Hidden} event=${event} />
      <div class="sec">
        <p class=${`rec ${holds ? 'ok' : 'no'}`}>
          <${Shield} ok=${holds} />
          <b>${holds ? 'Hash confirmed' : 'The chain does not hold'}</b>
          <span class="muted">
            ${row.linkedTo ? `linked to #${row.linkedTo}` : row.version === 1 ? 'the first of its stream' : ''}
          </span>
        </p>
      </div>
      <div class="sec">
        <h2>#${row.position} ${row.topic}</h2>
        <pre tabindex="0">${JSON.stringify({ ...row, data }, null, 1)}</pre>
      </div>
    </div>
  `;
};
const RawTab = view(({ place }, self) => {
  const position = place.position.value;
  const found = loaded(self, 'raw', position, stop => ask('event', { at: position }, { signal: stop }));
  if (!found) return html`<${Loading}/>`;
  return found.error
    ? html`<${Failed} error=${found.error} />`
    : html`<${Raw} event=${Object.fromEntries(Object.entries(found).filter(([name]) => name !== 'key'))} />`;
});

const SHOWN = { transcripts: Transcripts, lens: Lens, event: Event, why: Why, raw: RawTab };
export const Panel = view(({ place }) => {
  const asked = queried('tab') || (queried('lens') ? 'lens' : '');
  const tab = SHOWN[asked] ? asked : 'transcripts';
  const Shown = SHOWN[tab];
  const choose = name => setQuery({ tab: name === 'transcripts' ? '' : name, lens: '' });
  const moved = event => {
    const by = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (!by) return;
    event.preventDefault();
    event.stopPropagation();
    const next = TABS[(TABS.findIndex(([name]) => name === tab) + by + TABS.length) % TABS.length][0];
    choose(next);
    queueMicrotask(() => document.getElementById(`tab-${next}`)?.focus());
  };
  return html`
    <aside class="panel" aria-label="At this place">
      <div class="tabs" role="tablist" aria-label="What to see of this place" onKeyDown=${moved}>
        ${TABS.map(
          ([name, said]) => html`
            <button
              type="button"
              role="tab"
              id=${`tab-${name}`}
              aria-selected=${tab === name}
              aria-controls="tab-panel"
              tabindex=${tab === name ? 0 : -1}
              onClick=${() => choose(name)}>
              ${said}
            </button>
          `,
        )}
      </div>
      <div class="tp" id="tab-panel" role="tabpanel" aria-labelledby=${`tab-${tab}`} tabindex="0">
        <${Shown} place=${place} />
      </div>
    </aside>
  `;
});
