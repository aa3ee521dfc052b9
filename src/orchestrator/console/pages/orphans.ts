import {
  ago,
  badge,
  type Column,
  given,
  html,
  live,
  named,
  table,
} from '../../../operator-kit/console/parts.ts';
import { listOrphans, type Orphan } from '../../operate/views/alarms.ts';
import { remedyOf } from '../../operate/views/remedies.ts';
import type { Page } from '../deps.ts';

const ALARMS = {
  machine: 'orphan_machine',
  volume: 'orphan_volume',
  row_lost: 'row_lost',
  leftover: 'leftover',
} as const;

/** Resources with Berth's tag on a platform that no row owns. */
export const orphansPage: Page = async ({ store: { read } }, { now }) => {
  const orphans = await listOrphans(read);
  return {
    title: 'Orphans',
    body: html`<div class="head"><h1>Orphans</h1><span class="soft">machines and volumes on a platform with our tag, but without a row</span></div>
${live('orphans', table(columnsAt(now), orphans, 'No orphans: every machine and volume with our tag has a row.'))}`,
  };
};

function columnsAt(now: number): readonly Column<Orphan>[] {
  return [
    { head: 'What', cell: ({ kind }) => badge(kind === 'row_lost' ? 'lost row' : kind, 'wait') },
    { head: 'Name on the platform', cell: ({ ref }) => html`<code>${named(ref)}</code>` },
    { head: 'Platform', cell: ({ platform }) => given(platform) },
    { head: 'Since', cell: ({ since }) => ago(since, now) },
    {
      head: 'What to do',
      cell: ({ kind, text }) => html`${remedyOf(ALARMS[kind])}<span class="why">${given(text)}</span>`,
    },
  ];
}
