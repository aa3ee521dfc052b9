import { z } from 'zod';
import { timestampSchema } from '../../../contract/values.ts';
import { defineView } from '../../../operator-kit/operation.ts';
import { toTime } from '../../../operator-kit/views/values.ts';
import type { Reader, Store } from '../../model/store.ts';

/** A resource on a platform without an owning row, or a resource whose row was lost. */
const orphanSchema = z
  .object({
    kind: z.enum(['machine', 'volume', 'row_lost', 'leftover']).meta({
      description: '`leftover`: parts, such as disks or ports, whose machine or volume is missing.',
    }),
    ref: z.string().meta({ description: 'Its name on the platform.' }),
    platform: z.string().nullable(),
    since: timestampSchema,
    text: z.string(),
  })
  .meta({ id: 'Orphan' });
export type Orphan = z.infer<typeof orphanSchema>;

const orphanListSchema = z.object({ orphans: z.array(orphanSchema) }).meta({ id: 'OrphanList' });

const orphanKinds = {
  orphan_machine: 'machine',
  orphan_volume: 'volume',
  row_lost: 'row_lost',
  leftover: 'leftover',
} as const;

/** Lists orphans. Each is an alarm while the platform shows it. */
async function listOrphans(read: Pick<Reader, 'alarms'>): Promise<Orphan[]> {
  return (await read.alarms.list()).flatMap(({ kind, subject, platform, since, text }) =>
    isOrphan(kind) ? [{ kind: orphanKinds[kind], ref: subject, platform, since: toTime(since), text }] : [],
  );
}

function isOrphan(kind: string): kind is keyof typeof orphanKinds {
  return kind in orphanKinds;
}

interface Deps {
  store: Pick<Store, 'read'>;
}

export const orphansView = defineView({
  name: 'listOrphans',
  tag: 'Views',
  path: '/orphans',
  summary: 'Machines and volumes without a row, rows that were lost, and leftover parts',
  description: 'Each has an open alarm as long as the platform shows it.',
  reply: ['The orphans.', orphanListSchema],
  commands: [
    {
      name: 'orphans ls',
      description:
        'list machines and volumes without a row that owns them, rows that were lost, and leftover parts of either',
      list: {},
    },
  ],
  list: {
    rows: 'orphans',
    title: 'Orphans',
    about: 'machines and volumes on a platform with our tag, but without a row',
    none: 'There is no orphan.',
    columns: [{ field: 'kind', kind: 'state', tone: () => 'wait' }, 'ref', 'platform', 'since', 'text'],
  },
  read: async ({ store }: Deps) => ({ orphans: await listOrphans(store.read) }),
});
