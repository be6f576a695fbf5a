// Whether the log as a whole is as it was written.
import { html, signal, view } from '../base/drawing.js';
import { counted } from '../base/words.js';
import { about, proof, prove } from '../asking/about.js';
import { Failed, Loading } from '../parts/answers.js';
import { Shield } from '../parts/icons.js';
import { Position, Time } from '../parts/moments.js';
import { Said } from '../parts/texts.js';

/** @param {Record<string, any>} given */
const checkpoints = ({ taken, upTo, up_to: until }) =>
  taken ? `${counted(taken, 'checkpoint')}, true up to #${upTo ?? until}` : 'none was taken';
/** @param {Record<string, any>} given */
const covered = ({ checkpoint, signed, published }) =>
  checkpoint
    ? `covered by the checkpoint of #${checkpoint}, ${signed || published ? 'proven' : 'neither signed nor published'}`
    : 'covered by no checkpoint';
const NOT_YOURS = { status: 403, message: "Whether the whole log is as it was written is the operator's to see." };
export const Integrity = view((_, self) => {
  const busy = self.once(() => signal(false));
  const found = proof.value;
  const now = async () => {
    busy.value = true;
    await prove(true);
    busy.value = false;
  };
  if (!about.value) return html`<${Loading}/>`;
  if (!about.value?.isOperator) return html`<${Failed} title="Integrity" error=${NOT_YOURS} />`;
  if (!found) return html`<${Loading}/>`;
  const good = found.ok === true;
  return html`
    <div class="head">
      <div class="grow"><h1>Integrity</h1></div>
      <div class="acts">
        <button class="btn pri" type="button" onClick=${now} aria-disabled=${busy.value}>
          ${busy.value ? 'Verifying…' : 'Verify now'}
        </button>
      </div>
    </div>
    <div class="sheet">
      <section>
        <h2>The log</h2>
        ${found.problem
          ? html`<p class="alert"><b>It could not be verified.</b> ${found.problem}</p>`
          : found.ok === null
            ? html`<p>It is large, so it is verified when you say so. ${counted(found.head ?? 0, 'event')}.</p>`
            : html`
                <p class=${`rec ${good ? 'ok' : 'no'}`}>
                  <${Shield} ok=${good} />
                  <b>${good ? 'As it was written' : 'Not as it was written'}</b> ${counted(
                    found.events ?? 0,
                    'event',
                  )} in ${counted(found.streams ?? 0, 'stream')},
                  to #${found.verifiedTo} of #${found.head}
                </p>
              `}
      </section>
      ${found.findings?.length
        ? html`
            <section>
              <h2>What was found</h2>
              ${found.findings.map(
                one => html`
                  <p class="alert">
                    ${one.position ? html`<${Position} at=${one.position} /> ` : null}
                    <b>${one.code}</b> ${one.problem}${one.stream
                      ? html` <span class="mono">${one.stream}</span>`
                      : null}
                  </p>
                `,
              )}
            </section>
          `
        : null}
      ${found.checkpoints
        ? html`
            <section>
              <h2>What it rests on</h2>
              <dl class="kv">
                <dt>Chains</dt>
                <dd>each event holds the hash of the one before it in its stream; all were hashed again</dd>
                <dt>Checkpoints</dt>
                <dd>
                  ${checkpoints(found.checkpoints)}
                </dd>
                <dt>Head</dt>
                <dd class="mono">${found.logHead?.hash}</dd>
                <dt>Erased</dt>
                <dd>${counted(found.erased ?? 0, 'payload')}</dd>
              </dl>
              ${found.erasures?.map(
                one => html`
                  <p class="small">
                    <${Position} at=${one.position} /> <${Time} ms=${one.time} dated=${true} /> ${one.by} erased
                    ${' '}${one.rows ? counted(one.rows, 'payload') : counted(one.files, 'file')} of
                    ${' '}<span class="mono">${one.stream}</span>${one.rule ? ` by the rule ${one.rule}` : ''}
                    ${one.reason ? `, “${one.reason}”` : ''}; ${covered(one)}
                  </p>
                `,
              )}
            </section>
            <section>
              <h2>What is not proven</h2>
              <ul class="dots">${found.unproven?.map(said => html`<li><${Said} text=${said} /></li>`)}</ul>
            </section>
            <section>
              <h2>Prove more</h2>
              <pre>intersession verify --export-head head.json
intersession verify --head head.json</pre>
              <p class="muted small">
                A head that is kept elsewhere proves that nothing before it was cut off or rewritten.
              </p>
            </section>
          `
        : null}
    </div>
  `;
});
