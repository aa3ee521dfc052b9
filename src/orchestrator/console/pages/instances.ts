import { compareNames, sortNames } from '../../../contract/compare-names.ts';
import { instanceStatusSchema } from '../../../contract/instance.ts';
import {
  type Column,
  choice,
  count,
  cutName,
  given,
  html,
  live,
  named,
  table,
  withQuery,
} from '../../../operator-kit/console/parts.ts';
import { type InstanceRow, isAfter, listInstances } from '../../operate/views/instances.ts';
import type { Page } from '../deps.ts';
import { instanceLink, statusBadge } from '../instance-parts.ts';

const STATUSES = instanceStatusSchema.options.filter((status) => status !== 'DESTROYED');
const MAX_TEXT = 200;

/** Every instance that is not destroyed, with a text search and filters, page by page. */
export const instancesPage: Page = async ({ store: { read }, catalog, platforms }, { query, now }) => {
  const wanted = {
    q: query('q')?.slice(0, MAX_TEXT),
    status: STATUSES.find((status) => status === query('status')),
    offer: query('offer'),
    region: query('region'),
    platform: query('platform'),
    host: query('host'),
    account: query('account'),
    order: query('order') === 'oldest' ? ('oldest' as const) : undefined,
  };
  const after = query('after');
  const { instances, total, next } = await listInstances(read, {
    text: wanted.q,
    status: wanted.status,
    offerId: wanted.offer,
    region: wanted.region,
    platform: wanted.platform,
    host: wanted.host,
    accountId: wanted.account,
    order: wanted.order ?? 'newest',
    after: after !== undefined && isAfter(after) ? after : undefined,
  });
  const accounts = (await read.credentials.listAccounts()).toSorted((a, b) => compareNames(a.name, b.name));
  const names = new Map(accounts.map(({ id, name }) => [id, name]));
  const first = withQuery('/console/instances', wanted);
  const form = html`<form class="card filter" action="/console/instances">
<label class="field grow"><span>Id, name, owner ref, error or address</span><input type="search" name="q" value="${wanted.q ?? ''}"></label>
${choice('status', 'Status', STATUSES, wanted.status)}
${choice('offer', 'Offer', sortNames(catalog.offers.keys()), wanted.offer)}
${choice('region', 'Region', sortNames(catalog.regions.keys()), wanted.region)}
${platforms.size > 1 ? choice('platform', 'Platform', sortNames(platforms.keys()), wanted.platform) : ''}
${wanted.host === undefined ? '' : choice('host', 'Host', [wanted.host], wanted.host)}
${choice('account', 'Account', [...names.keys()], wanted.account, (id) => cutName(names.get(id) ?? id))}
${choice('order', 'Order', ['oldest'], wanted.order, () => 'oldest first', 'newest first')}
<button class="primary">Find</button>
<a class="button" href="/console/instances">Clear</a>
</form>`;
  const body = html`<div class="head"><h1>Instances</h1><span class="soft">${count(total)} found</span></div>
${form}
${live('instances', html`${table(columns, instances, 'No instances found.', now)}`)}
<nav class="pager" aria-label="Pages of the list">
${after === undefined ? '' : html`<a class="button" href="${first}">« First page</a>`}
${next === null ? '' : html`<a class="button" rel="next" href="${withQuery('/console/instances', { ...wanted, after: next })}">Next ${count(instances.length)} »</a>`}
</nav>`;
  return { title: 'Instances', body };
};

const columns: readonly Column<InstanceRow>[] = [
  { head: 'Status', cell: ({ status }) => statusBadge(status) },
  {
    head: 'Instance',
    cell: ({ id, name, error }) =>
      html`${instanceLink(id)}${name === null ? '' : html`<span class="why">${named(name)}</span>`}${
        error === null ? '' : html`<span class="why">${given(error)}</span>`
      }`,
  },
  {
    head: 'Offer and region',
    cell: ({ offer, region }) => html`<span class="nowrap">${offer}</span><span class="why">${region}</span>`,
  },
  {
    head: 'Where',
    cell: ({ platform, host }) =>
      html`${platform}${host === null ? '' : html`<span class="why nowrap">${named(host)}</span>`}`,
  },
  'account',
  'created_at',
  'updated_at',
];
