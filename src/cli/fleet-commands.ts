import { Command } from 'commander';
import { loadCatalog } from '../config/load.ts';
import { platformsOf, sellingPlatforms } from '../config/platforms.ts';
import { listOrphans, type Orphan } from '../orchestrator/operate/views/alarms.ts';
import { type PlacementView, readCapacity, saleByRows } from '../orchestrator/operate/views/capacity.ts';
import { listPlatforms, type PlatformView } from '../orchestrator/operate/views/platforms.ts';
import { createLog } from '../runtime/log.ts';
import { printLine, printTable } from '../runtime/print.ts';
import { withActions } from './action-commands.ts';
import { onDatabase } from './orchestrator-database.ts';
import {
  type Column,
  fieldColumns,
  isData,
  type ListFlags,
  type OutputFlag,
  printData,
  printRecords,
  withList,
  withOutput,
} from './print-records.ts';

/**
 * `berth capacity`: shows sold and free units, and why an offer is unavailable, from the database, or with `--ask` also
 * from the drivers.
 */
export function capacityCommand(): Command {
  const capacity = new Command('capacity');
  withOutput(
    onDatabase(
      capacity.command('ls', { isDefault: true }),
      async ({ store: { read }, config, clock }, flags: OutputFlag & { ask?: true }) => {
        const catalog = loadCatalog(config.catalog, sellingPlatforms(config));
        const ports = { env: process.env, clock, log: createLog('error') };
        // Loads the drivers, which only --ask needs.
        const asking = flags.ask ? await import('../compose/drivers/ask-platforms.ts') : undefined;
        const asked = await asking?.askPlatforms(config, read, ports);
        const sale =
          asking === undefined || asked === undefined
            ? await saleByRows(read, platformsOf(config).keys())
            : await asking.saleByAnswers(read, asked);
        const capacity = await readCapacity(read, { catalog, sale, now: clock.now() });
        const isKnown = (platform: string): boolean => asked?.get(platform)?.isCounted === true;
        const placements = capacity.placements.map((row) => toKnown(row, isKnown(row.platform)));
        if (isData(flags)) return printData(flags, { ...capacity, placements });
        printRecords(placements, placementColumns, {});
        printTable(
          ['STORAGE OF', 'GB', 'TAKEN GB'],
          capacity.storage.map((one) => [one.region, String(one.storage_gb ?? '-'), String(one.claimed_gb)]),
        );
        for (const [platform, { problem, advice, isCounted }] of asked ?? []) {
          if (!isCounted) printLine(`${platform} was not counted: ${problem?.replace(/\.$/, '')}.`);
          if (advice !== undefined) printLine(advice);
        }
        if (asked === undefined)
          printLine(
            '? is known only to the platform: --ask asks it. A running server knows it, too: GET /operator/v1/capacity.',
          );
      },
    ),
  )
    .option('--ask', 'ask each driver for its free units now, from here')
    .description('list sold and free units, and why an offer has none available');
  return capacity;
}

/** A placement as far as it is known here. Null: only the platform knows it. */
type KnownPlacement = Omit<PlacementView, 'available'> & { available: number | null; is_counted: boolean };

/** What the rows sell may have no room on the platform; what they do not sell is never available. */
function toKnown(row: PlacementView, isCounted: boolean): KnownPlacement {
  return {
    ...row,
    available: isCounted || row.available === 0 ? row.available : null,
    is_counted: isCounted,
  };
}

const placementColumns: readonly Column<KnownPlacement>[] = [
  ...fieldColumns<KnownPlacement>({
    OFFER: 'offer',
    REGION: 'region',
    PLATFORM: 'platform',
    UNITS: 'units',
  }),
  {
    head: 'ROOM',
    key: 'platform_units',
    value: ({ platform_units: room, is_counted }) => (is_counted ? String(room ?? 'no limit') : '?'),
  },
  ...fieldColumns<KnownPlacement>({ TAKEN: 'claimed' }),
  {
    head: 'AVAILABLE',
    key: 'available',
    value: ({ available }) => String(available ?? '?'),
  },
  {
    head: 'WHY NOT',
    key: 'unavailable',
    value: ({ unavailable }) => unavailable.map(({ text }) => text).join(' '),
  },
];

/** `berth platforms`: shows their health and their hosts, from the database, or with `--ask` from the drivers. */
export function platformsCommand(): Command {
  const all = new Command('platforms');
  withOutput(
    onDatabase(
      all.command('ls', { isDefault: true }),
      async ({ store: { read }, config, clock }, flags: OutputFlag & { ask?: true }) => {
        const ports = { env: process.env, clock, log: createLog('error') };
        // Loads the drivers, which no other command here needs.
        const { askPlatforms } = flags.ask ? await import('../compose/drivers/ask-platforms.ts') : {};
        const asked = await askPlatforms?.(config, read, ports);
        const platforms = await listPlatforms(read, asked ?? platformsOf(config));
        if (isData(flags)) return printData(flags, platforms);
        printRecords(platforms, platformColumns, {});
        printHosts(platforms);
        for (const { platform, inventory } of platforms)
          for (const limit of inventory?.limited_by ?? []) printLine(`${platform} is limited by ${limit}`);
        for (const [platform, { problem, advice }] of asked ?? []) {
          if (problem !== undefined) printLine(`${platform} lists no hosts: ${problem.replace(/\.$/, '')}.`);
          if (advice !== undefined) printLine(advice);
        }
      },
    ),
  )
    .option('--ask', 'ask each driver for its hosts and their devices now, from here')
    .description('list the platforms: their health and their hosts');
  return all;
}

function printHosts(platforms: readonly PlatformView[]): void {
  const hosts = platforms.flatMap(({ platform, hosts }) => hosts.map((host) => ({ platform, ...host })));
  printTable(
    ['PLATFORM', 'HOST', 'STATE', 'VCPU', 'MEMORY GB', 'DISK GB', 'INSTANCES', 'WHY'],
    hosts.map((one) => [
      one.platform,
      one.host ?? '-',
      one.state ?? '-',
      formatShare(one.vcpus),
      formatShare(one.memory_gb),
      formatShare(one.disk_gb),
      toText(one.instances),
      one.detail ?? '',
    ]),
  );
  const devices = hosts.flatMap(({ platform, host, devices }) =>
    devices.map(({ id, type, state, ref, detail }) => [
      platform,
      host ?? '-',
      id,
      type,
      state,
      ref ?? '',
      detail ?? '',
    ]),
  );
  if (devices.length > 0) printTable(['PLATFORM', 'HOST', 'DEVICE', 'TYPE', 'STATE', 'OF', 'WHY'], devices);
}

/** Formats the used share of a total. */
function formatShare(share: { total: number; taken: number } | null): string {
  return share === null ? '-' : `${share.taken}/${share.total}`;
}

const platformColumns = fieldColumns<PlatformView>({
  PLATFORM: 'platform',
  DRIVER: 'driver',
  'DOWN SINCE': 'down_since',
  'VOLUMES DOUBTED SINCE': 'volumes_doubted_since',
  'RESTORED FROM': 'restored_from',
});

function toText(counts: Readonly<Record<string, number>>): string {
  return Object.entries(counts)
    .map(([status, count]) => `${count} ${status}`)
    .join(', ');
}

/** `berth orphans`: machines and volumes that no row owns, and rows that were lost. */
export function orphansCommand(): Command {
  const orphans = new Command('orphans');
  withList(
    onDatabase(orphans.command('ls', { isDefault: true }), async ({ store: { read } }, flags: ListFlags) => {
      printRecords(await listOrphans(read), orphanColumns, flags, 'There is no orphan.');
    }),
  ).description(
    'list machines and volumes without a row that owns them, rows that were lost, and leftover parts of either',
  );
  return withActions(orphans);
}

const orphanColumns = fieldColumns<Orphan>({
  KIND: 'kind',
  REF: 'ref',
  PLATFORM: 'platform',
  SINCE: 'since',
  TEXT: 'text',
});
