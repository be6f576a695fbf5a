// Whether what is shown is as it was written: of the log, of a fork, or of both where they are compared.
import { html, view } from '../base/drawing.js';
import { counted } from '../base/words.js';
import { proofs, prove } from '../asking/about.js';
import { here, href, link, route } from '../asking/address.js';
import { Shield } from '../parts/icons.js';

// The logs that the page shows: the log itself, a fork of it, or both where they are compared.
function logsShown() {
  const { page, query } = route.value;
  if (page === 'diff' && query.get('other')) return ['', query.get('other') ?? ''];
  return [query.get('fork') ?? ''];
}
/** @param {Answers.IntegrityAnswer} found */
const isBad = found => Boolean(found.problem) || found.ok === false;
/** @param {Answers.IntegrityAnswer} found */
const isOpen = found => found.ok === null || found.ok === undefined;
/** @param {{ look: string, ok?: boolean, said: string, on?: string }} given */
const Proof = ({ look, ok, said, on }) => html`
  <a class=${`proof ${look}`} ...${link(href('integrity'))}>
    <${Shield} ok=${ok} />
    <b>${said}</b>
    <span class="on">${on}</span>
  </a>
`;
/** @param {Answers.IntegrityAnswer} found */
function proofOfBad(found) {
  const positions = (found.findings ?? []).flatMap(one => one.position ?? []);
  const counts = Object.values(found.counts ?? {}).reduce((sum, one) => sum + one, 0);
  const said = positions.length ? `Not verified past #${Math.min(...positions) - 1}` : 'Not verified';
  return html`<${Proof} look="no" said=${said} on=${found.problem ?? counted(counts, 'finding')} />`;
}
export const ProofBadge = view(() => {
  const logs = logsShown();
  for (const fork of logs) prove(false, fork);
  const found = logs.map(fork => proofs.value[fork]);
  const bad = found.find(one => one && isBad(one));
  if (bad) return proofOfBad(bad);
  if (found.some(one => !one)) return null;
  if (found.some(isOpen)) return html`<${Proof} look="" said="Not verified yet" />`;
  if (logs.length > 1) return html`<${Proof} look="ok" ok said="Verified, both" on="the log and the fork" />`;
  if (logs[0]) return html`<${Proof} look="ok" ok said="Verified, both" on="prefix and own events" />`;
  const at = route.value.page === 'run' ? here.value : null;
  const behind = at && at <= (found[0].verifiedTo ?? 0);
  const on = `${behind ? `#${at}` : `to #${found[0].verifiedTo}`}, by the chain`;
  return html`<${Proof} look="ok" ok said=${behind ? 'Verified to here' : 'Verified'} on=${on} />`;
});
