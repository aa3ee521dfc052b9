import { sortNames } from '../../../contract/compare-names.ts';
import { actionForm, actionPath } from '../../../operator-kit/console/action-pages.ts';
import {
  ago,
  badge,
  type Column,
  clockTime,
  given,
  type Html,
  html,
  live,
  named,
  table,
  withQuery,
} from '../../../operator-kit/console/parts.ts';
import { type CordonRecord, cordonKinds, isActive, isOver } from '../../model/cordon.ts';
import {
  cancelMaintenance,
  cordon,
  MAX_HOURS,
  planMaintenance,
  uncordon,
} from '../../operate/actions/cordons.ts';
import { reload } from '../../operate/actions/reload.ts';
import type { Page } from '../deps.ts';

/** The cordons, and the form that adds one. */
export const cordonsPage: Page = async ({ store: { read }, catalog, platforms }, { query, now, session }) => {
  const cordons = (await read.cordons.list()).filter((cordon) => !isOver(cordon, now));
  return {
    title: 'Cordons',
    body: html`<div class="head"><h1>Cordons and maintenance</h1>
<span class="soft">nothing new is placed there; running instances are not affected; clients see maintenance, not cordons</span></div>
${live('cordons', table(columnsAt(now, session.csrf), cordons, 'No cordons and no planned maintenance.'))}
<form class="card" action="/console${actionPath(cordon.name)}"><h2>Cordon something</h2>
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
)}`,
  };
};

function columnsAt(now: number, csrf: string): readonly Column<CordonRecord>[] {
  return [
    {
      head: 'What',
      cell: ({ isMaintenance }) =>
        badge(isMaintenance ? 'maintenance' : 'cordon', isMaintenance ? 'busy' : 'wait'),
    },
    {
      head: 'Of',
      cell: ({ kind, name, platform }) =>
        html`${kind} <strong>${named(name)}</strong>${platform === null || platform === name ? '' : html` <span class="soft">of ${platform}</span>`}`,
    },
    {
      head: 'Since',
      cell: (one) => (isActive(one, now) ? ago(one.since, now) : html`begins ${ago(one.since, now)}`),
    },
    { head: 'Until', cell: ({ until }) => (until === null ? 'removed by hand' : clockTime(until)) },
    { head: 'Why', cell: ({ reason }) => given(reason) },
    { head: 'By', cell: ({ by }) => named(by) },
    { head: 'End it', cell: (one) => endForm(one, csrf) },
  ];
}

function endForm({ id, kind, name, platform, isMaintenance }: CordonRecord, csrf: string): Html {
  return isMaintenance
    ? actionForm(cancelMaintenance, csrf, { maintenanceId: id })
    : actionForm(uncordon, csrf, { kind, name, platform: kind === 'platform' ? null : platform });
}

/** A link to the form above, filled in. */
export function cordonLink(kind: string, name: string, platform?: string): Html {
  return html`<a href="${withQuery('/console/cordons', { kind, name, platform })}">cordon</a>`;
}
