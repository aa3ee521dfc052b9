import { badge, type Column, given, html, live, table } from '../../../operator-kit/console/parts.ts';
import { listOrphans, type Orphan } from '../../operate/views/orphans.ts';
import type { Page } from '../deps.ts';

/** Resources with Berth's tag on a platform that no row owns. */
export const orphansPage: Page = async ({ store: { read } }, { now }) => {
  const orphans = await listOrphans(read);
  return {
    title: 'Orphans',
    body: html`<div class="head"><h1>Orphans</h1><span class="soft">machines and volumes on a platform with our tag, but without a row</span></div>
${live('orphans', table(columns, orphans, 'No orphans: every machine and volume with our tag has a row.', now))}`,
  };
};

const columns: readonly Column<Orphan>[] = [
  { head: 'What', cell: ({ kind }) => badge(kind === 'row_lost' ? 'lost row' : kind, 'wait') },
  'ref',
  'platform',
  'since',
  { head: 'What to do', cell: ({ text }) => given(text) },
];
