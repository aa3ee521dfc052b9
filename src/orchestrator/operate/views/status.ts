import { z } from 'zod';
import { counted } from '../../../contract/counted.ts';
import { defineView, type TextPart } from '../../../operator-kit/operation.ts';
import { timeOrNullSchema, toTime } from '../../../operator-kit/views/values.ts';
import type { Clock } from '../../../ports/clock.ts';
import { markOf } from '../../model/marks.ts';
import type { Reader, Store } from '../../model/store.ts';

/** A summary: instances, platforms, work and alarms. */
const statusViewSchema = z
  .object({
    instances: z.record(z.string(), z.int()).meta({ description: 'Number of instances by status.' }),
    platforms: z.array(
      z.object({
        platform: z.string(),
        down_since: timeOrNullSchema.meta({
          description: 'Since when it is not trusted and its transitions are frozen; null: it is trusted.',
        }),
      }),
    ),
    work: z.object({ open: z.int(), oldest_due_at: timeOrNullSchema }),
    units_taken: z.int(),
    storage_taken_gb: z.number(),
    alarms: z.object({ count: z.int(), unacknowledged: z.int() }),
  })
  .meta({ id: 'Status' });
type StatusView = z.infer<typeof statusViewSchema>;

async function readStatus(read: Reader, platforms: Iterable<string>): Promise<StatusView> {
  const [instances, work, claims, storage, alarms] = await Promise.all([
    read.instances.countByStatus(),
    read.work.backlog(),
    read.claims.use(),
    read.storageClaims.use(),
    read.alarms.list(),
  ]);
  return {
    instances: Object.fromEntries(instances.map(({ status, count }) => [status, count])),
    platforms: await Promise.all(
      [...platforms].map(async (platform) => ({
        platform,
        down_since: toTime(await read.marks.get(markOf(platform, 'platform_down_since'))),
      })),
    ),
    work: { open: work.count, oldest_due_at: toTime(work.oldestDueAt) },
    units_taken: claims.reduce((sum, { claimed }) => sum + claimed, 0),
    storage_taken_gb: storage.reduce((sum, { claimedGb }) => sum + claimedGb, 0),
    alarms: {
      count: alarms.length,
      unacknowledged: alarms.filter(({ acknowledgedBy }) => acknowledgedBy === null).length,
    },
  };
}

interface Deps {
  store: Pick<Store, 'read'>;
  clock: Pick<Clock, 'now'>;
  platforms: ReadonlyMap<string, unknown>;
}

/** The state for a terminal: tables and sentences. */
function describe({ instances, work, alarms, ...status }: StatusView, now: number): TextPart[] {
  const counts = Object.entries(instances).map(([name, count]) => ({ instances: name, count }));
  const { oldest_due_at: dueAt } = work;
  const word = dueAt !== null && Date.parse(dueAt) > now ? 'at' : 'since';
  const oldest = dueAt === null ? '' : `; the oldest is due ${word} ${dueAt}`;
  return [
    counts.length === 0 ? 'There is no instance.' : counts,
    status.platforms.map(({ platform, down_since: since }) => ({
      platform,
      healthy: since === null ? 'yes' : `no, since ${since}`,
    })),
    `Taken: ${counted(status.units_taken, 'unit')}, ${status.storage_taken_gb} GB of storage.`,
    `Open steps of work: ${work.open}${oldest}. See berth work ls.`,
    `Open alarms: ${alarms.count}, not acknowledged: ${alarms.unacknowledged}. See berth alarms ls.`,
  ];
}

export const statusView = defineView({
  name: 'getStatus',
  tag: 'Views',
  path: '/status',
  summary: 'Overall state and open alarms',
  description: 'As `berth status` shows it.',
  reply: ['The state of the whole installation.', statusViewSchema],
  commands: [{ name: 'status', toText: (status, _input, now) => describe(status, now) }],
  read: ({ store, platforms }: Deps) => readStatus(store.read, platforms.keys()),
});
