// What the hashes of a fork prove of its beginning, in words: that it is the one of the log that it was made of.
import { counted } from '../base/words.js';
import { proofs } from '../asking/about.js';

// Of the first cut between the two, where B is a fork: `{ok, events, why}`; null where nobody has looked yet,
// or may not.
/** @param {Answers.CompareAnswer} found @param {Both | null} both @param {string} other */
export function provenIn(found, both, other) {
  const proof = proofs.value[other];
  const cut = found.cuts[0];
  if (!other || !cut || !proof) return null;
  if (proof.problem) return { ok: false, events: '', why: proof.problem };
  if (proof.ok === null || proof.ok === undefined) return null;
  const shared = both?.b.steps.filter(step => step.position <= cut.position).length;
  const events = shared ? `${counted(shared, 'event')}, ` : '';
  const findings = Object.values(proof.counts ?? {}).reduce((sum, one) => sum + one, 0);
  return { ok: proof.ok, events, why: `${counted(findings, 'finding')}, see Integrity` };
}
