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

/** `berth capacity`: shows sold and free units, and why an offer is unavailable. */
export function capacityCommand(): Command {
  const capacity = new Command('capacity');
  withOutput(
    onDatabase(
      capacity.command('ls', { isDefault: true }),
      async ({ store: { read }, config, clock }, flags: OutputFlag) => {
        const platforms = platformsOf(config).keys();
        const catalog = loadCatalog(config.catalog, sellingPlatforms(config));
        const sale = await saleByRows(read, platforms);
        const capacity = await readCapacity(read, { catalog, sale, now: clock.now() });
        if (isData(flags)) return printData(flags, capacity);
        printRecords(capacity.placements, placementColumns, {});
        printTable(
          ['STORAGE OF', 'GB', 'TAKEN GB'],
          capacity.storage.map((one) => [one.region, String(one.storage_gb ?? '-'), String(one.claimed_gb)]),
        );
        printLine(
          'These figures are from the database and the catalog. A running server also has the counts of the platforms:',
        );
        printLine('GET /operator/v1/capacity on its admin listener.');
      },
    ),
  ).description('list sold and free units, and why an offer has none available');
  return capacity;
}

const placementColumns: readonly Column<PlacementView>[] = [
  ...fieldColumns<PlacementView>({
    OFFER: 'offer',
    REGION: 'region',
    PLATFORM: 'platform',
    UNITS: 'units',
    TAKEN: 'claimed',
    AVAILABLE: 'available',
  }),
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
