import { Command } from 'commander';
import { loadCatalog } from '../config/load.ts';
import { platformsOf, sellingPlatforms } from '../config/platforms.ts';
import { type PlacementView, readCapacity, saleByRows } from '../orchestrator/operate/views/capacity.ts';
import { listPlatforms, type PlatformView } from '../orchestrator/operate/views/platforms.ts';
import { createLog } from '../runtime/log.ts';
import { printLine } from '../runtime/print.ts';
import { onDatabase } from './orchestrator-database.ts';
import { isData, type OutputFlag, printData, printPart, withOutput } from './print-records.ts';

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
        printPart(placements.map(toPlacementRow));
        printPart(
          capacity.storage.map((one) => ({
            'storage of': one.region,
            gb: one.storage_gb,
            'taken gb': one.claimed_gb,
          })),
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

function toPlacementRow(row: KnownPlacement): object {
  return {
    offer: row.offer,
    region: row.region,
    platform: row.platform,
    units: row.units,
    room: row.is_counted ? (row.platform_units ?? 'no limit') : '?',
    taken: row.claimed,
    available: row.available ?? '?',
    why_not: row.unavailable.map(({ text }) => text).join(' '),
  };
}

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
        printPart(platforms.map(({ inventory: _inventory, hosts: _hosts, ...platform }) => platform));
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
  printPart(
    hosts.map(({ platform, host, state, detail, instances, ...has }) => ({
      platform,
      host,
      state,
      vcpu: formatShare(has.vcpus),
      memory_gb: formatShare(has.memory_gb),
      disk_gb: formatShare(has.disk_gb),
      instances: Object.entries(instances).map(([status, count]) => `${count} ${status}`),
      why: detail ?? '',
    })),
  );
  printPart(
    hosts.flatMap(({ platform, host, devices }) =>
      devices.map(({ id, type, state, ref, detail }) => ({
        platform,
        host,
        device: id,
        type,
        state,
        of: ref ?? '',
        why: detail ?? '',
      })),
    ),
  );
}

/** Formats the used share of a total. */
function formatShare(share: { total: number; taken: number } | null): string {
  return share === null ? '-' : `${share.taken}/${share.total}`;
}
