// A fork made again, from its comparison: the same cut and edits, so and so many times, to see how it comes out.
import { html } from '../base/drawing.js';
import { about } from '../asking/about.js';
import { Icon } from '../parts/icons.js';
import { open } from '../parts/window.js';
import { forkedOften } from './fork-many.js';
import { HowOften, WhoAnswers, agentsOf } from './forking.js';
import { can } from './rights.js';

// What the fork was asked for with: an edit that replaces an answer names that answer as the place, all others the cut.
const REPLACING = ['reply', 'message', 'skip', 'drop'];
/** @param {{ a: Answers.ComparedAnswer, cut: Answers.CutAnswer }} given */
function askedAgain({ a, cut }) {
  const edits = cut.edits.filter(edit => edit.kind !== 'agent');
  const at = edits.find(edit => REPLACING.includes(edit.kind))?.place || String(cut.position);
  return { run: a.run, at, edits: edits.map(({ kind, key = '', value = '' }) => ({ kind, key, value })) };
}

/** @param {{ found: Answers.CompareAnswer & { cut: Answers.CutAnswer } }} given */
export const AgainButton = ({ found }) => {
  if (!can('forks.make')) return null;
  const again = () => {
    open.value = {
      title: 'Run B again',
      button: 'Make the forks',
      done: given => forkedOften({ ...askedAgain(found), ...agentsOf(given) }, Number(given.times)),
      body: html`
        <p>
          B's cut and what is otherwise in it are made anew, each time as a fork of its own, and a table says how
          often it came out how. <b>Nothing of a fork reaches anybody.</b>
        </p>
        <${WhoAnswers} who=${about.value?.readOnly ? 'stop' : 'live'} />
        <${HowOften} times="5" />
      `,
    };
  };
  return html`
    <button class="btn" type="button" onClick=${again}><${Icon} name="branch" />Run B again</button>
  `;
};
