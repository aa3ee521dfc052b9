import {
  badge,
  type Column,
  count,
  html,
  live,
  shareBar,
  table,
  withQuery,
} from '../../../operator-kit/console/parts.ts';
import { type PlacementView, readCapacity } from '../../operate/views/capacity.ts';
import type { Page } from '../deps.ts';

/** Each offer in each of its regions: its units, the taken units, and why none can be sold. */
export const capacityPage: Page = async (deps, { query, now }) => {
  const { placements, storage } = await readCapacity(deps.store.read, { ...deps, now });
  const onlyUnavailable = query('show') === 'unavailable';
  const unavailable = placements.filter(({ available }) => available === 0);
  return {
    title: 'Capacity',
    body: html`<div class="head"><h1>Capacity</h1>
<span class="soft">${count(unavailable.length)} of ${count(placements.length)} places cannot be sold now</span>
${
  onlyUnavailable
    ? html`<a class="button" href="/console/capacity">Show all</a>`
    : html`<a class="button" href="/console/capacity?show=unavailable">Show only these</a>`
}</div>
${live('capacity', table(columns, onlyUnavailable ? unavailable : placements, 'No offers.'))}
${live(
  'storage',
  html`<h2>Storage for volumes</h2>${table(
    [
      'region',
      {
        head: 'GB in the catalog',
        cell: ({ storage_gb }) => (storage_gb === null ? 'no limit' : count(storage_gb)),
        isNumber: true,
      },
      'claimed_gb',
      'without_row_gb',
    ],
    storage,
    'No region sells volumes.',
  )}`,
)}`,
  };
};

const columns: readonly Column<PlacementView>[] = [
  {
    head: 'Offer and region',
    cell: ({ offer, region }) =>
      html`<a class="nowrap" href="${withQuery('/console/instances', { offer, region })}">${offer}</a><span class="why nowrap">${region} · <a href="${withQuery('/console/cordons', { kind: 'offer', name: offer })}">cordon</a></span>`,
  },
  'platform',
  {
    head: 'Units',
    cell: ({ claimed, available, units }) =>
      shareBar(
        [
          { kind: 'a', value: claimed, name: 'taken' },
          { kind: 'c', value: Math.max(0, units - claimed), name: 'not taken' },
        ],
        `${claimed} of ${units} used, ${available} available`,
      ),
  },
  { head: 'In the catalog', cell: ({ units }) => count(units), isNumber: true },
  {
    head: 'Platform capacity',
    cell: ({ platform_units }) => (platform_units === null ? 'no limit' : count(platform_units)),
    isNumber: true,
  },
  {
    head: 'Taken',
    cell: ({ claimed, without_row }) =>
      without_row === 0 ? count(claimed) : `${claimed} + ${without_row} without a row`,
    isNumber: true,
  },
  'available',
  {
    head: 'Why not',
    cell: ({ unavailable }) =>
      unavailable.length === 0
        ? ''
        : unavailable.map(
            ({ reason, text }) =>
              html`<div>${badge(reason, reason === 'sold_out' ? 'none' : 'wait')}<span class="why">${text}</span></div>`,
          ),
  },
];
