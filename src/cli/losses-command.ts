import { Command } from 'commander';
import { toReconcileOptions } from '../compose/options.ts';
import { platformsOf } from '../config/platforms.ts';
import { markOf, type Reader } from '../orchestrator/model/store.ts';
import { countLosses, type LossCount } from '../orchestrator/platform/loss-cap.ts';
import type { LossCapOptions } from '../orchestrator/platform/options.ts';
import { Fatal } from '../ports/errors.ts';
import { printLine, printTable } from '../runtime/print.ts';
import { onDatabase } from './orchestrator-database.ts';
import { withAcceptance } from './parse.ts';
import { type JsonFlag, printJson, toJsonTime, toTime, withJson } from './print-records.ts';

const MINUTE_MS = 60_000;

/** `berth losses`: what the platforms took, and the caps beyond which an operator decides. */
export function lossesCommand(): Command {
  const losses = new Command('losses');
  withJson(
    onDatabase(losses, async ({ store: { read }, clock, config }, { json }: JsonFlag) => {
      const cap = toReconcileOptions(config).maxLosses;
      const platforms = [...platformsOf(config).keys()];
      const held = await findHeld(read);
      if (json) return printJson(await toJson(read, platforms, cap, held, clock.now()));
      for (const platform of platforms) {
        if (platforms.length > 1) printLine(`Platform ${platform}:`);
        tellCount(await countLosses(read, cap, clock.now(), { platform }), cap);
        await tellTrouble(read, platform);
      }
      tellHeld(held, platforms.length > 1);
    }),
  );
  const accept = onDatabase(
    losses
      .command('accept')
      .option('--platform <name>', 'of several platforms, the one whose losses they are'),
    async ({ store, clock, config }, flags: { for: number; platform?: string }) => {
      const platforms = [...platformsOf(config).keys()].filter((name) => (flags.platform ?? name) === name);
      if (platforms.length === 0)
        throw new Fatal(`There is no platform ${flags.platform}: name one of the configuration.`);
      const until = clock.now() + flags.for;
      await store.transact(async (tx) => {
        for (const platform of platforms)
          await tx.marks.put(markOf(platform, 'losses_accepted_until'), until);
      });
      printLine(
        `Losses are accepted until ${toTime(until)}: a running server ends the instances that the platform no longer has within a minute.`,
      );
      printLine(
        'They stay ended, even if their machines turn up again. To stop accepting earlier: berth losses accept --for 1m',
      );
    },
  );
  withAcceptance(accept).description(
    'accept the losses: for this long, instances that the platform no longer has are ended',
  );
  return losses;
}

async function tellTrouble({ marks }: Pick<Reader, 'marks'>, platform: string): Promise<void> {
  const since = await marks.get(markOf(platform, 'platform_down_since'));
  if (since !== null)
    printLine(
      `Since ${toTime(since)} the platform does not answer, or its listing is not believed: nothing is sold or ended. The server's log says what is missing; only if that is really lost: berth losses accept`,
    );
  const doubtedSince = await marks.get(markOf(platform, 'volumes_doubted_since'));
  if (doubtedSince !== null)
    printLine(
      `Since ${toTime(doubtedSince)} too many volumes are missing: no deletion of a volume counts as proved for an hour. If they are really gone: berth losses accept`,
    );
}

function tellCount({ count, cap, acceptedUntil }: LossCount, { windowMs }: LossCapOptions): void {
  printLine(`${count} instances lost within ${Math.round(windowMs / MINUTE_MS)} minutes; the cap is ${cap}.`);
  if (acceptedUntil !== null) printLine(`Losses are accepted until ${toTime(acceptedUntil)}.`);
}

interface Held {
  id: string;
  status: string;
  region: string;
  platform: string;
}

async function findHeld({ instances, work }: Pick<Reader, 'instances' | 'work'>): Promise<Held[]> {
  const held: Held[] = [];
  for (const record of await instances.list({}))
    if ((await work.of(record.id))?.isHeld === true) held.push(record);
  return held;
}

function tellHeld(held: readonly Held[], areSeveral: boolean): void {
  if (held.length === 0) {
    printLine('No instance is held.');
    return;
  }
  printTable(
    ['HELD INSTANCE', 'STATUS', 'REGION', ...(areSeveral ? ['PLATFORM'] : [])],
    held.map(({ id, status, region, platform }) => [id, status, region, ...(areSeveral ? [platform] : [])]),
  );
  printLine('If they are really lost: berth losses accept');
}

/** All of it as JSON: of several platforms, what each has lost under its name. */
async function toJson(
  read: Reader,
  platforms: readonly string[],
  cap: LossCapOptions,
  held: readonly Held[],
  now: number,
) {
  const told = await Promise.all(
    platforms.map(async (platform) => {
      const { count, cap: allowed, acceptedUntil } = await countLosses(read, cap, now, { platform });
      return {
        lost: count,
        allowed,
        accepted_until: toJsonTime(acceptedUntil),
        platform_down_since: toJsonTime(await read.marks.get(markOf(platform, 'platform_down_since'))),
        volumes_doubted_since: toJsonTime(await read.marks.get(markOf(platform, 'volumes_doubted_since'))),
      };
    }),
  );
  const areSeveral = platforms.length > 1;
  return {
    ...(areSeveral
      ? { platforms: Object.fromEntries(told.map((telling, index) => [platforms[index], telling])) }
      : told[0]),
    window_s: cap.windowMs / 1000,
    held: held.map(({ id, status, region, platform }) => ({
      id,
      status,
      region,
      ...(areSeveral && { platform }),
    })),
  };
}
