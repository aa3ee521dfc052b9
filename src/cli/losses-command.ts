import { Command } from 'commander';
import { toReconcileOptions } from '../compose/orchestrator/options.ts';
import { platformsOf } from '../config/platforms.ts';
import type { Config } from '../config/schema.ts';
import { counted } from '../contract/counted.ts';
import { auditedLookup } from '../operators/audit.ts';
import {
  acceptLosses,
  type HeldInstance,
  type PlatformLosses,
  readLosses,
  thawPlatform,
} from '../orchestrator/operate/actions/losses.ts';
import type { LossCapOptions } from '../orchestrator/platform/options.ts';
import { Fatal } from '../ports/errors.ts';
import { printLine, printTable } from '../runtime/print.ts';
import { localActor } from './local-actor.ts';
import { onDatabase } from './orchestrator-database.ts';
import { withAcceptance } from './parse.ts';
import {
  isData,
  type ListFlags,
  type OutputFlag,
  printData,
  printDone,
  tellCut,
  toJsonTime,
  toTime,
  withList,
  withOutput,
} from './print-records.ts';

const MINUTE_MS = 60_000;

/** `berth losses`: machines that platforms lost, and the limits beyond which an operator decides. */
export function lossesCommand(): Command {
  const losses = new Command('losses');
  withList(
    onDatabase(
      losses.command('ls', { isDefault: true }),
      async ({ store: { read }, clock, config }, flags: ListFlags) => {
        const cap = toReconcileOptions(config).maxLosses;
        const all = await readLosses(read, cap, [...platformsOf(config).keys()], clock.now());
        const held = all.flatMap((platform) => platform.held);
        if (isData(flags)) return printData(flags, toJson(all, held.slice(0, flags.limit), cap));
        for (const platform of all) {
          if (all.length > 1) printLine(`Platform ${platform.platform}:`);
          tellCount(platform, cap);
          tellTrouble(platform);
        }
        tellHeld(held, all.length > 1, flags);
      },
    ),
  ).description('show how many instances ended as lost, the cap, and which are held');
  const accept = onDatabase(
    losses.command('accept').option('--platform <name>', 'which platform, if there are several'),
    async ({ store, clock, config }, flags: AcceptFlags) => {
      const action = { action: 'losses.accept', subject: flags.platform ?? '' };
      const platforms = await auditedLookup({ store, clock }, localActor(), action, () =>
        platformsNamed(config, flags.platform),
      );
      const until = await acceptLosses({ store, clock }, localActor(), { platforms, forMs: flags.for });
      printDone(
        flags,
        { platforms, accepted_until: toJsonTime(until) },
        `Losses are accepted until ${toTime(until)}: a running server ends, within a minute, the instances that the platform no longer has.`,
        'They stay ended, even if their machines turn up again. To stop accepting earlier: berth losses accept --for 1m',
      );
    },
  );
  withOutput(withAcceptance(accept)).description(
    'accept the losses: for the time of --for, instances whose machines the platform no longer has are ended',
  );
  return losses;
}

interface AcceptFlags extends OutputFlag {
  for: number;
  platform?: string;
}

/** `berth thaw`: accepts a platform's listing although machines are missing. */
export function thawCommand(): Command {
  const thaw = onDatabase(
    new Command('thaw').argument('<platform>', 'its name; `default` where it is the only one'),
    async ({ store, clock, config }, name: string, flags: AcceptFlags & { yes?: true }) => {
      const action = { action: 'platform.thaw', subject: name };
      const look = () => platformsNamed(config, name);
      const [platform = name] = flags.yes
        ? await auditedLookup({ store, clock }, localActor(), action, look)
        : look();
      const order = { platform, forMs: flags.for, isDone: flags.yes === true };
      const thawed = await thawPlatform({ store, clock }, localActor(), order);
      const { problems, effect, acceptedUntil } = thawed;
      if (isData(flags))
        return printData(flags, { platform, problems, effect, accepted_until: toJsonTime(acceptedUntil) });
      for (const problem of problems) printLine(problem);
      if (acceptedUntil === null) printLine(`A dry run; with --yes, ${effect}.`);
      else printLine(`Until ${toTime(acceptedUntil)} ${effect}.`);
    },
  ).option('--yes', 'do it; without this flag, say what would be done');
  return withOutput(withAcceptance(thaw));
}

/** @throws {Fatal} */
function platformsNamed(config: Config, given: string | undefined): string[] {
  const platforms = [...platformsOf(config).keys()].filter((name) => (given ?? name) === name);
  if (platforms.length === 0)
    throw new Fatal(
      `There is no platform ${given}: give one of ${[...platformsOf(config).keys()].join(', ')}.`,
    );
  return platforms;
}

function tellTrouble({ frozenSince, volumesDoubtedSince }: PlatformLosses): void {
  if (frozenSince !== null)
    printLine(
      `Since ${toTime(frozenSince)} the platform does not answer, or too many machines are missing from its listing: nothing is sold or ended. To see what is missing: berth alarms ls; only if it is really lost: berth losses accept`,
    );
  if (volumesDoubtedSince !== null)
    printLine(
      `Since ${toTime(volumesDoubtedSince)} too many volumes are missing: for an hour no deletion of a volume counts as confirmed. If they are really gone: berth losses accept`,
    );
}

function tellCount({ count, cap, acceptedUntil }: PlatformLosses, { windowMs }: LossCapOptions): void {
  printLine(
    `${counted(count, 'instance')} lost within ${counted(Math.round(windowMs / MINUTE_MS), 'minute')}; the cap is ${cap}.`,
  );
  if (acceptedUntil !== null) printLine(`Losses are accepted until ${toTime(acceptedUntil)}.`);
}

function tellHeld(held: readonly HeldInstance[], areSeveral: boolean, flags: ListFlags): void {
  if (held.length === 0) {
    printLine('No instance is held.');
    return;
  }
  printTable(
    ['HELD INSTANCE', 'STATUS', 'REGION', ...(areSeveral ? ['PLATFORM'] : [])],
    held
      .slice(0, flags.limit)
      .map(({ id, status, region, platform }) => [id, status, region, ...(areSeveral ? [platform] : [])]),
  );
  tellCut(held.length, flags);
  printLine('If they are really lost: berth losses accept');
}

/** Formats all losses as JSON. With several platforms, each has its losses under its name. */
function toJson(
  all: readonly PlatformLosses[],
  held: readonly HeldInstance[],
  { windowMs }: LossCapOptions,
): object {
  const areSeveral = all.length > 1;
  const told = all.map((one) => ({
    lost: one.count,
    allowed: one.cap,
    accepted_until: toJsonTime(one.acceptedUntil),
    platform_down_since: toJsonTime(one.frozenSince),
    volumes_doubted_since: toJsonTime(one.volumesDoubtedSince),
  }));
  return {
    ...(areSeveral
      ? { platforms: Object.fromEntries(told.map((telling, index) => [all[index]?.platform, telling])) }
      : told[0]),
    window_s: windowMs / 1000,
    held: held.map(({ id, status, region, platform }) => ({
      id,
      status,
      region,
      ...(areSeveral && { platform }),
    })),
  };
}
