import { sortNames } from '../../../contract/compare-names.ts';
import { actionForm, actionPath } from '../../../operator-kit/console/action-pages.ts';
import type { PageRequest } from '../../../operator-kit/console/deps.ts';
import { type Html, html, withQuery } from '../../../operator-kit/console/parts.ts';
import { cordonKinds } from '../../model/cordon.ts';
import { cordon, MAX_HOURS, planMaintenance } from '../../operate/actions/cordons.ts';
import { reload } from '../../operate/actions/reload.ts';
import type { ConsoleDeps } from '../deps.ts';

/** The form that adds a cordon, and the one that reloads the catalog. */
export function cordonForm({ catalog, platforms }: ConsoleDeps, { query, session }: PageRequest): Html {
  return html`<form class="card" action="/console${actionPath(cordon.name)}"><h2>Cordon something</h2>
<div class="row">
<label class="field"><span>What</span><select name="kind">${cordonKinds.map((kind) =>
    kind === query('kind') ? html`<option selected>${kind}</option>` : html`<option>${kind}</option>`,
  )}</select></label>
<label class="field grow"><span>Its name</span><input name="name" required value="${query('name') ?? ''}" list="names"></label>
<datalist id="names">${[
    ...sortNames(catalog.offers.keys()),
    ...sortNames(catalog.regions.keys()),
    ...sortNames(platforms.keys()),
  ].map((name) => html`<option value="${name}"></option>`)}</datalist>
${
  platforms.size > 1
    ? html`<label class="field"><span>On which platform</span><select name="platform"><option value="">each</option>${sortNames(
        platforms.keys(),
      ).map((name) =>
        name === query('platform') ? html`<option selected>${name}</option>` : html`<option>${name}</option>`,
      )}</select></label>`
    : ''
}
<label class="field"><span>For how many hours</span><input name="hours" type="number" min="0.1" max="${MAX_HOURS}" step="any" placeholder="until removed"></label>
<label class="field grow"><span>Why</span><input name="reason" maxlength="200"></label>
<button class="primary">Preview cordon</button>
<button formaction="/console${actionPath(planMaintenance.name)}">Preview maintenance</button>
</div></form>
${actionForm(
  reload,
  session.csrf,
  {},
  {
    className: 'card',
    content: html`<h2>Prices and catalog</h2>
<p>Reloads the catalog on every server within seconds. If it contains an error, all of it is refused and the old catalog stays in use.</p>`,
  },
)}`;
}

/** A link to the form above, filled in. */
export function cordonLink(kind: string, name: string, platform?: string): Html {
  return html`<a href="${withQuery('/console/cordons', { kind, name, platform })}">cordon</a>`;
}
