import { Command } from 'commander';
import { platformsOf } from '../config/platforms.ts';
import { markOf, type Reader } from '../orchestrator/model/store.ts';
import { printLine, printTable } from '../runtime/print.ts';
import { onDatabase } from './orchestrator-database.ts';
import { type JsonFlag, printJson, toJsonTime, toTime, withJson } from './print-records.ts';

/** `berth status`: what there is and what stands wrong, on one screen. */
export function statusCommand(): Command {
  return withJson(
    onDatabase(new Command('status'), async ({ store: { read }, config }, { json }: JsonFlag) => {
      const status = await readStatus(read, [...platformsOf(config).keys()]);
      if (json) printJson(toJson(status));
      else tell(status);
    }),
  );
}

interface Status {
  instances: { status: string; count: number }[];
  platforms: { platform: string; downSince: number | null }[];
  work: { count: number; oldestDueAt: number | null };
  units: { taken: number; storageGb: number };
  alarms: { count: number; unacknowledged: number };
}

async function readStatus(read: Reader, platforms: readonly string[]): Promise<Status> {
  const [instances, work, claims, storage, alarms] = await Promise.all([
    read.instances.countByStatus(),
    read.work.backlog(),
    read.claims.use(),
    read.storageClaims.use(),
    read.alarms.list(),
  ]);
  return {
    instances,
    platforms: await Promise.all(
      platforms.map(async (platform) => ({
        platform,
        downSince: await read.marks.get(markOf(platform, 'platform_down_since')),
      })),
    ),
    work,
    units: {
      taken: claims.reduce((sum, { claimed }) => sum + claimed, 0),
      storageGb: storage.reduce((sum, { claimedGb }) => sum + claimedGb, 0),
    },
    alarms: {
      count: alarms.length,
      unacknowledged: alarms.filter(({ acknowledgedBy }) => acknowledgedBy === null).length,
    },
  };
}

function toJson({ instances, platforms, work, units, alarms }: Status) {
  return {
    instances: Object.fromEntries(instances.map(({ status, count }) => [status, count])),
    platforms: platforms.map(({ platform, downSince }) => ({ platform, down_since: toJsonTime(downSince) })),
    work: { open: work.count, oldest_due_at: toJsonTime(work.oldestDueAt) },
    units_taken: units.taken,
    storage_taken_gb: units.storageGb,
    alarms,
  };
}

function tell({ instances, platforms, work, units, alarms }: Status): void {
  printTable(
    ['INSTANCES', 'COUNT'],
    instances.map(({ status, count }) => [status, String(count)]),
  );
  printTable(
    ['PLATFORM', 'CAN BE TRUSTED'],
    platforms.map(({ platform, downSince }) => [
      platform,
      downSince === null ? 'yes' : `no, since ${toTime(downSince)}`,
    ]),
  );
  printLine(`Taken: ${units.taken} units, ${units.storageGb} GB of storage.`);
  const oldest = work.oldestDueAt === null ? '' : `; the oldest is due since ${toTime(work.oldestDueAt)}`;
  printLine(`Open steps of work: ${work.count}${oldest}. See berth work ls.`);
  printLine(
    `Alarms that stand: ${alarms.count}, not acknowledged: ${alarms.unacknowledged}. See berth alarms ls.`,
  );
}
