import { Argument, Command } from 'commander';
import { cordonableOf } from '../compose/drivers/driver-settings.ts';
import type { StoreDeps } from '../compose/stores/orchestrator.ts';
import { loadCatalog } from '../config/load.ts';
import { sellingPlatforms } from '../config/platforms.ts';
import type { Config } from '../config/schema.ts';
import { type CordonKind, type CordonRecord, cordonKinds } from '../orchestrator/model/cordon.ts';
import {
  type CordonDeps,
  cancelMaintenance,
  cordon,
  describe,
  type NamedSubject,
  planMaintenance,
  uncordon,
} from '../orchestrator/operate/actions/cordons.ts';
import { type Drained, drain } from '../orchestrator/operate/actions/drain.ts';
import {
  type CordonRow,
  listCordons,
  toCordonRow,
  toDrainedRow,
} from '../orchestrator/operate/views/actions.ts';
import { printLine, printTable } from '../runtime/print.ts';
import { localActor } from './local-actor.ts';
import { onDatabase } from './orchestrator-database.ts';
import { parseTime, parseTimeToCome } from './parse.ts';
import {
  type Column,
  fieldColumns,
  isData,
  type ListFlags,
  type OutputFlag,
  printData,
  printDone,
  printRecords,
  toTime,
  withList,
  withOutput,
} from './print-records.ts';

interface Flags extends OutputFlag {
  platform?: string;
  reason?: string;
  until?: string;
}

/** `berth cordon`: stops new placements on a region, an offer, a platform or a host. */
export function cordonCommand(): Command {
  return onSubject(new Command('cordon'), async (deps, subject, flags) => {
    const { reason = null, until } = flags;
    const set = await cordon(deps, localActor(), { subject, until: toEnd(deps, until), reason });
    const sentence = `Nothing new is placed on ${describe(set)} until ${endOf(set)}; running instances stay.`;
    printDone(flags, toCordonRow(set, deps.clock.now()), sentence);
  });
}

/** `berth uncordon`. */
export function uncordonCommand(): Command {
  const command = withOutput(onDatabase(new Command('uncordon'), (deps, ...args) => run(deps, args)));
  const run = async (deps: StoreDeps & { config: Config }, args: unknown[]) => {
    const [kind, name, flags] = args as [CordonKind, string, Flags];
    const ended = await uncordon(toDeps(deps), localActor(), toSubject(kind, name, flags));
    const rows = ended.map((one) => toCordonRow(one, deps.clock.now()));
    printDone(flags, rows, `${kind} ${name} takes new instances again while it has free units.`);
  };
  return withPlatform(withSubject(command));
}

/** `berth drain`: cordons, and shows what remains. */
export function drainCommand(): Command {
  return onSubject(new Command('drain'), async (deps, subject, flags) => {
    const { reason = null, until } = flags;
    const drained = await drain(deps, localActor(), { subject, until: toEnd(deps, until), reason });
    if (isData(flags)) return printData(flags, toDrainedRow(drained, deps.clock.now()));
    tellDrained(drained);
  });
}

/** `berth cordons`: current cordons and planned maintenance. */
export function cordonsCommand(): Command {
  const cordons = new Command('cordons');
  withList(
    onDatabase(cordons.command('ls', { isDefault: true }), async ({ store, clock }, flags: ListFlags) => {
      const all = await listCordons(store.read, clock.now());
      printRecords(all, columns, flags, 'Nothing is cordoned.');
    }),
  ).description('list cordons and planned maintenance');
  return cordons;
}

/** `berth maintenance`: windows that the catalog announces to clients. */
export function maintenanceCommand(): Command {
  const maintenance = new Command('maintenance');
  onSubject(maintenance.command('plan'), async (deps, subject, flags: Flags & { from?: string }) => {
    const { reason = null, until, from } = flags;
    const since = from === undefined ? deps.clock.now() : parseTime('--from', from, deps.clock.now());
    const end = until === undefined ? null : parseTime('--until', until, deps.clock.now());
    const planned = await planMaintenance(deps, localActor(), { subject, since, until: end, reason });
    printDone(
      flags,
      toCordonRow(planned, deps.clock.now()),
      `${planned.id}: maintenance of ${describe(planned)} from ${toTime(planned.since)} until ${endOf(planned)}. Clients see it in extras.berth.maintenance_windows; nothing new is placed there during it, and running instances stay.`,
    );
  })
    .option('--from <time>', 'when it begins: 30m, 2h or 7d from now, or a time; default: now')
    .description('announce maintenance; nothing new is placed there during it');
  withOutput(
    onDatabase(
      maintenance.command('cancel <id>'),
      async ({ store, clock }, id: string, flags: OutputFlag) => {
        const ended = await cancelMaintenance({ store, clock }, localActor(), id);
        const sentence = `The maintenance of ${describe(ended)} has ended or is cancelled.`;
        printDone(flags, toCordonRow(ended, clock.now()), sentence);
      },
    ),
  ).description('end a maintenance window, or cancel a planned one');
  withList(
    onDatabase(maintenance.command('ls'), async ({ store, clock }, flags: ListFlags) => {
      const windows = (await listCordons(store.read, clock.now())).filter(({ maintenance }) => maintenance);
      printRecords(windows, columns, flags, 'No maintenance is planned.');
    }),
  ).description('list planned and current maintenance');
  return maintenance;
}

type OnSubject<F> = (deps: CordonDeps, subject: NamedSubject, flags: F) => Promise<void>;

function onSubject<F extends Flags>(command: Command, body: OnSubject<F>): Command {
  const whole = onDatabase(withSubject(command), (deps, kind: CordonKind, name: string, flags: F) =>
    body(toDeps(deps), toSubject(kind, name, flags), flags),
  );
  return withOutput(withPlatform(whole))
    .option('--reason <text>', 'why; clients see the reason of maintenance')
    .option('--until <time>', 'when it ends: 30m, 2h or 7d from now, or a time; default: when it is removed');
}

function withSubject(command: Command): Command {
  return command
    .addArgument(new Argument('<kind>', 'what').choices(cordonKinds))
    .argument('<name>', 'its name');
}

function withPlatform(command: Command): Command {
  return command.option('--platform <name>', 'which platform, if there are several');
}

function toDeps({ config, ...deps }: StoreDeps & { config: Config }): CordonDeps {
  const catalog = loadCatalog(config.catalog, sellingPlatforms(config));
  return { ...deps, sold: cordonableOf(config, catalog) };
}

function toSubject(kind: CordonKind, name: string, { platform }: Flags): NamedSubject {
  return { kind, name, ...(platform !== undefined && { platform }) };
}

function toEnd({ clock }: Pick<CordonDeps, 'clock'>, until: string | undefined): number | null {
  return until === undefined ? null : parseTimeToCome('--until', until, clock.now());
}

const endOf = ({ until, isMaintenance }: CordonRecord): string => {
  if (until !== null) return toTime(until);
  return isMaintenance ? 'it is cancelled' : 'the cordon is removed';
};

const columns: readonly Column<CordonRow>[] = fieldColumns<CordonRow>(
  {
    KIND: 'kind',
    NAME: 'name',
    PLATFORM: 'platform',
    SINCE: 'since',
    UNTIL: 'until',
    STANDS: 'stands',
    MAINTENANCE: 'maintenance',
    BY: 'by',
    REASON: 'reason',
    ID: 'id',
  },
  ['reason'],
);

function tellDrained({ cordon: set, isEmpty, byStatus, instances }: Drained): void {
  printLine(`Nothing new is placed on ${describe(set)} until ${endOf(set)}.`);
  if (isEmpty) {
    printLine('No machine is left there.');
    return;
  }
  const counts = Object.entries(byStatus).map(([status, count]) => `${count} ${status}`);
  printLine(`Still there: ${counts.join(', ')}. Berth does not stop machines of tenants:`);
  printTable(
    ['INSTANCE', 'STATUS', 'ACCOUNT', 'OFFER', 'REGION', 'HOST'],
    instances.map(({ id, status, accountId, offerId, region, host }) => [
      id,
      status,
      accountId,
      offerId,
      region,
      host ?? '-',
    ]),
  );
  printLine('Ask again with the same command. To end one yourself: berth instances rm <id>');
}
