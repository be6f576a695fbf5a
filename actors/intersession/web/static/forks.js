// The forks of a log: where each was cut, what is otherwise in it, how it came out; and how one is made.
import { effect, html, signal, view } from './lib.js';
import { ask } from './api.js';
import { about, href, link, queried, route, setQuery } from './state.js';
import { Failed, Icon, Loading, Position, Time, copy, open } from './parts.js';
import { capital } from './words.js';

const shell = text => `'${String(text).replaceAll("'", "'\\''")}'`;
const said = edit => `${edit.kind}${edit.key ? ` ${edit.key}` : ''}${edit.value ? `: ${edit.value}` : ''}`;
const outcome = one => [one.state, one.turns === null || one.turns === undefined ? '' : `${one.turns} turns`, one.end, one.close].filter(Boolean).join(', ').replaceAll('_', ' ');

export const Forks = view((_, self) => {
  const state = self.once(() => {
    const made = { found: signal(null), error: signal(null) };
    self.onEnd(effect(() => { const run = route.value.query.get('run'); ask('forks', { run }).then(found => { made.found.value = found; made.error.value = null; }, error => { made.error.value = error; }); }));
    return made;
  });
  const found = state.found.value;
  if (state.error.value) return html`<${Failed} error=${state.error.value}/>`;
  if (!found) return html`<${Loading}/>`;
  return html`<div class="head"><div class="grow ttl"><h1>Forks</h1><span class="muted">${found.forks.length}${found.from ? `, this log is itself one of ${found.from.logId.slice(0, 8)} at #${found.from.position}` : ''}</span></div>${queried('run') ? html`<button type="button" class="chip on" onClick=${() => setQuery({ run: '' })}>of run ${queried('run').slice(0, 8)} ×</button>` : null}</div>
    ${found.forks.length ? html`<table class="list"><caption class="vh">Forks, the newest first</caption><colgroup><col class="w-small"/><col class="w-stream"/><col class="w-words"/><col class="w-end"/><col class="w-end"/><col class="w-began"/></colgroup>
      <thead><tr><th scope="col">Fork</th><th scope="col">Of run</th><th scope="col">Cut</th><th scope="col">What is otherwise</th><th scope="col">How it came out</th><th scope="col" class="num">Made</th></tr></thead><tbody>${found.forks.map(fork => html`<tr key=${fork.id}>
        <td><button type="button" class="num-link" title="Copy the command that opens it" onClick=${() => copy(`intersession debug ${shell(fork.file)}`, 'Command')}>${fork.id.slice(0, 8)}</button></td><td>${fork.parent === about.value.logId ? html`<a class="link mono" ...${link(href('run', fork.run, { at: fork.place.position }))}>${fork.run.slice(0, 8)}</a>` : html`<span class="mono muted">${fork.run.slice(0, 8)}</span>`}</td><td>${capital(fork.place.text)} <${Position} at=${fork.place.position}/></td><td>${fork.edits.length ? fork.edits.map(said).join('; ') : 'nothing'}</td><td>${outcome(fork.outcome)}</td><td class="num mono"><${Time} ms=${fork.timeMs}/></td></tr>`)}</tbody></table>`
    : html`<div class="empty"><h2>No forks of ${queried('run') ? 'this run' : 'this log'} yet</h2><p class="muted">A fork is a log of its own that begins as this one did, up to a place. The recorded run is not touched, and nothing of a fork reaches anybody.</p><pre>intersession fork RUN --at RUN@turn:2</pre></div>`}`;
});

export const ForkButton = ({ run, at, store }) => (about.value.isOperator ? html`<button class="btn pri" type="button" onClick=${() => { open.value = { title: 'Fork here', button: 'Copy the command', done: () => copy(`intersession fork ${run.id} --at ${at}${store}`, 'Command'),
  body: html`<p>All that this run touches is copied as it stood after #${at}, to a log of its own. The recorded run is not touched, and <b>nothing of the fork reaches anybody</b>.</p><pre>intersession fork ${run.id.slice(0, 8)} --at ${at}</pre><p><a class="link" ...${link(href('forks', '', { run: run.id }))}>Forks of this run</a></p>` }; }}><${Icon} name="fork"/>Fork here</button>` : null);
