// What everybody had said and seen at a place: the transcripts as they stood, and what the next agent is given.
import { html, view } from './lib.js';
import { ask } from './api.js';
import { loaded } from './loaded.js';
import { Message } from './message.js';
import { Badge, Failed, Loading, Shield, Time, laneOf } from './parts.js';
import { href, link, queried } from './state.js';
import { counted, short, took } from './words.js';

export const Transcripts = view(({ place }, self) => {
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

export const Lens = view(({ place }, self) => {
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
