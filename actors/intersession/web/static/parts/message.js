// A message of a transcript: who said it, to whom, and its words.
import { html, signal, view } from '../base/drawing.js';
import { calls, gave, given, parsed, short, textOf } from '../base/words.js';
import { about } from '../asking/about.js';
import { href, link } from '../asking/address.js';
import { openClaws } from '../asking/api.js';
import { Attachments, attachmentsIn } from './attachments.js';
import { hueOf } from './hues.js';
import { Time } from './moments.js';
import { laneOf } from './speakers.js';

/** @param {string} key */
const hue = key => {
  return hueOf(laneOf(key));
};

// What a tool was given or gave, which is often long: its beginning, and all of it when asked for.
const LINES = 8;
const LETTERS = 600;
/** @type {View<{ text: string }>} */
const Long = view(({ text }, self) => {
  const whole = self.once(() => signal(false));
  const begins = text.split('\n').slice(0, LINES).join('\n').slice(0, LETTERS);
  if (whole.value || text.length - begins.length < 80) return html`<code>${text}</code>`;
  const unfold = () => {
    whole.value = true;
  };
  return html`
    <code>${begins}…</code>
    <p>
      <button type="button" class="chip" onClick=${unfold}>
        ${(text.length - begins.length).toLocaleString('en-GB')} more letters
      </button>
    </p>
  `;
});

// What an agent is said to have said and no run of it made (`chat.inject`) has the name of who wrote it.
/** @param {Record<string, any>} [origin] */
const injected = origin =>
  origin?.kind === 'internal_system' ? `in the words of ${origin.editedBy ?? 'the operator'}` : '';

// What a message says of itself: who said it, and to whom. `given` leads to what its speaker had been given,
// `caller` is who called, where that was by no session: the message itself does not say it. An import's answer stands
// for its run.
/**
 * @param {{
 *   message: Message,
 *   owner: string,
 *   at?: number,
 *   turn?: string,
 *   isNew?: boolean,
 *   given?: ((runId: string) => Part),
 *   caller?: string | null,
 * }} given
 */
export const Message = ({ message, owner, at, turn, isNew, given: prompt, caller }) => {
  const origin = message.provenance;
  const from = origin?.sourceSessionKey;
  const [name, colour, how] =
    message.role === 'assistant'
      ? [short(owner), hue(owner), calls(message.content).length ? 'calls' : injected(origin)]
      : message.role === 'toolResult'
        ? [message.toolName ?? 'tool', hue(owner), 'gave']
        : openClaws.has(message.id)
          ? ['OpenClaw', 'c-grey', 'tells']
        : from
          ? [
              short(from),
              hue(from),
              turn ?? (origin.turn ? (origin.turn === 1 ? 'replies' : `turn ${origin.turn - 1}`) : 'asks'),
            ]
          : origin?.kind === 'external_user'
            ? origin.sourceChannel === 'operator' && !origin.sender
              ? [caller ? short(caller) : 'the operator', 'c-operator', '']
              : [origin.senderName ?? origin.sender ?? 'a person', 'c-person', origin.sourceChannel ?? '']
            : origin?.kind === 'inter_session'
              ? [caller ? short(caller) : 'the operator', 'c-operator', 'asks']
            : message.role === 'user' && origin
              ? ['the system', 'c-grey', 'tells']
              : [message.role, 'c-grey', ''];
  const tool = message.role === 'toolResult' || calls(message.content).length > 0;
  const text = textOf(message.content);
  const run = message.runId ?? (message.position && `#${message.position}`);
  return html`
    <div class=${`msg ${colour} ${tool ? 'tool' : ''} ${isNew ? 'here' : ''}`}>
      <div class="by">
        ${origin?.kind === 'external_user' && origin.sender && about.value?.isOperator
          ? html`
              <a
                class="link"
                title="What they were told"
                ...${link(href('person', [origin.sourceChannel, origin.sender].filter(Boolean).join(':')))}>
                <b>${name}</b>
              </a>
            `
          : html`<b>${name}</b>`}
        ${how ? html`<span>${how}</span>` : null}
        <span class="p">${at ? `#${at}` : message.timestamp ? html`<${Time} ms=${message.timestamp} />` : ''}</span>
        ${isNew ? html`<span class="newm">new</span>` : null}
        ${prompt && message.role === 'assistant' && run ? prompt(run) : null}
      </div>
      ${text ? (message.role === 'toolResult' ? html`<${Long} text=${gave(text)} />` : html`<p>${text}</p>`) : null}
      ${calls(message.content).map(call => html`<${Long} text=${`${call.name} ${given(parsed(call.arguments))}`} />`)}
      <${Attachments} content=${message.content} owner=${owner} />
      ${!text && !tool && !attachmentsIn(message.content).length ? html`<p class="muted">(no text)</p>` : null}
    </div>
  `;
};
