// What is known of the log as a whole: who looks, what they may do, and whether it is as it was written.
import { batch, computed, signal } from '../base/drawing.js';
import { ofKind, short } from '../base/words.js';
import { route } from './address.js';
import { ask, follow, inside, known, whenIdle } from './api.js';

/** @type {Signal<Answers.AboutAnswer | null>} */
export const about = signal(null);
/** @type {Signal<string | null>} */
export const problem = signal(null);

export async function begin() {
  const found = await ask('about');
  batch(() => {
    about.value = found;
    problem.value = null;
  });
  known();
  follow(found.head ?? 0);
  prove();
}
// What a log's verification said, for the log itself ('') and each fork that is looked at.
/** @type {Signal<Record<string, Answers.IntegrityAnswer>>} */
export const proofs = signal({});
const asking = new Set();
export function unproven() {
  asking.clear();
  proofs.value = {};
  prove();
}
export async function prove(now = false, fork = inside.fork) {
  if (!about.peek()?.isOperator || (asking.has(fork) && !now)) return;
  asking.add(fork);
  let found;
  try {
    if (!now) await whenIdle();
    found = await ask('integrity', { verify: now || undefined, fork });
  } catch (error) {
    found = { problem: /** @type {Error} */ (error).message };
  }
  proofs.value = { ...proofs.peek(), [fork]: found };
}
export const proof = computed(() => proofs.value[route.value.query.get('fork') ?? ''] ?? null);
/** @param {string} code */
export const endName = code => about.peek()?.ends[code] ?? ofKind(code);
/** @param {string} reason */
export const archivalName = reason => about.peek()?.archivals[reason] ?? ofKind(reason);
/** @param {string} state */
export const deliveryName = state => about.peek()?.deliveryStates[state] ?? ofKind(state);
// What is otherwise in a fork, in words.
/** @param {Answers.ForkEdit} edit */
export const editName = ({ kind, key = '', value = '' }) => {
  const as = value === 'recorded' ? 'as recorded' : `by ${value}`;
  if (kind === 'agent') return `${key === '*' ? 'everybody' : key} answers ${as}`;
  if (kind === 'set') return `${key} = ${value}`;
  if (kind === 'inject') return `said to ${short(key)}: “${value}”`;
  return `${about.peek()?.edits[kind] ?? kind}${value ? `: “${value}”` : ''}`;
};
export const speakers = computed(() => about.value?.speakers ?? []);
