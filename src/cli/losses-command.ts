import { Command } from 'commander';
import { toReconcileOptions } from '../compose/options.ts';
import { DEFAULT_PLATFORM } from '../orchestrator/model/platform-resource.ts';
import type { Reader } from '../orchestrator/model/store.ts';
import { countLosses, type LossCount } from '../orchestrator/platform/loss-cap.ts';
import type { LossCapOptions } from '../orchestrator/platform/options.ts';
import { printLine, printTable } from '../runtime/print.ts';
import { onDatabase } from './orchestrator-database.ts';
import { withAcceptance } from './parse.ts';
import { type JsonFlag, printJson, toJsonTime, toTime, withJson } from './print-records.ts';

const MINUTE_MS = 60_000;

/** `berth losses`: what the platform took, and the cap beyond which an operator decides. */
export function lossesCommand(): Command {
  const losses = new Command('losses');
  withJson(
    onDatabase(losses, async ({ store, clock, config }, { json }: JsonFlag) => {
      const cap = toReconcileOptions(config).maxLosses;
      if (json) return printJson(await toJson(store.read, cap, clock.now()));
      tellCount(await countLosses(store.read, cap, clock.now(), { platform: DEFAULT_PLATFORM }), cap);
      tellHeld(await findHeld(store.read));
      const since = await store.read.marks.get('platform_down_since');
      if (since !== null)
        printLine(
          `Since ${toTime(since)} the platform does not answer, or its listing is not believed: nothing is sold or ended. The server's log says what is missing; only if that is really lost: berth losses accept`,
        );
      const doubtedSince = await store.read.marks.get('volumes_doubted_since');
      if (doubtedSince !== null)
        printLine(
          `Since ${toTime(doubtedSince)} too many volumes are missing: no deletion of a volume counts as proved for an hour. If they are really gone: berth losses accept`,
        );
    }),
  );
  const accept = onDatabase(losses.command('accept'), async ({ store, clock }, flags: { for: number }) => {
    const until = clock.now() + flags.for;
    await store.transact((tx) => tx.marks.put('losses_accepted_until', until));
    printLine(
      `Losses are accepted until ${toTime(until)}: a running server ends the instances that the platform no longer has within a minute.`,
    );
    printLine(
      'They stay ended, even if their machines turn up again. To stop accepting earlier: berth losses accept --for 1m',
    );
  });
  withAcceptance(accept).description(
    'accept the losses: for this long, instances that the platform no longer has are ended',
  );
  return losses;
}

function tellCount({ count, cap, acceptedUntil }: LossCount, { windowMs }: LossCapOptions): void {
  printLine(`${count} instances lost within ${Math.round(windowMs / MINUTE_MS)} minutes; the cap is ${cap}.`);
  if (acceptedUntil !== null) printLine(`Losses are accepted until ${toTime(acceptedUntil)}.`);
}

interface Held {
  id: string;
  status: string;
  region: string;
}

async function findHeld({ instances, work }: Pick<Reader, 'instances' | 'work'>): Promise<Held[]> {
  const held: Held[] = [];
  for (const record of await instances.list({}))
    if ((await work.of(record.id))?.isHeld === true) held.push(record);
  return held;
}

function tellHeld(held: readonly Held[]): void {
  if (held.length === 0) {
    printLine('No instance is held.');
    return;
  }
  printTable(
    ['HELD INSTANCE', 'STATUS', 'REGION'],
    held.map(({ id, status, region }) => [id, status, region]),
  );
  printLine('If they are really lost: berth losses accept');
}

/** All of it as JSON. */
async function toJson(read: Reader, cap: LossCapOptions, now: number) {
  const {
    count,
    cap: allowed,
    acceptedUntil,
  } = await countLosses(read, cap, now, { platform: DEFAULT_PLATFORM });
  return {
    lost: count,
    allowed,
    window_s: cap.windowMs / 1000,
    accepted_until: toJsonTime(acceptedUntil),
    held: (await findHeld(read)).map(({ id, status, region }) => ({ id, status, region })),
    platform_down_since: toJsonTime(await read.marks.get('platform_down_since')),
    volumes_doubted_since: toJsonTime(await read.marks.get('volumes_doubted_since')),
  };
}
