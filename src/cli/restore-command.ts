import { resolve } from 'node:path';
import { Command } from 'commander';
import {
  markRestored,
  orchestratorStores,
  rehearseRestore,
  restore,
} from '../compose/stores/orchestrator.ts';
import { counted } from '../contract/counted.ts';
import { parseTimestamp } from '../operator-kit/parse.ts';
import { span, toTime } from '../operator-kit/views/values.ts';
import { Fatal } from '../ports/errors.ts';
import { systemClock } from '../runtime/system.ts';
import { auditBeside } from './audit-beside.ts';
import { onlyLocal, withContext } from './context/contexts.ts';
import { withDatabase } from './database.ts';
import { localActor } from './local-actor.ts';
import { loadFor } from './orchestrator-database.ts';
import { type OutputFlag, printDone, withOutput } from './print-records.ts';

interface Flags extends OutputFlag {
  inPlace?: true;
  rehearse?: true;
  takenAt?: string;
}

const NEXT =
  'Start `berth serve` with the same configuration: it compares the database with the platform, sells nothing meanwhile, and logs ' +
  'when it has finished. Keys that were revoked since the backup are valid again: `berth keys ls` shows them.';

/** `berth restore`: replaces the database by a backup, or marks one that other tools restored. */
export function restoreCommand(): Command {
  const command = withOutput(
    withDatabase(new Command('restore').argument('[backup]', 'a file of `berth backup`, or another copy')),
  )
    .option(
      '--rehearse',
      'try the backup beside the database: restore, check and open it, then remove the copy',
    )
    .option(
      '--in-place',
      'other tools have already restored the database: the first start compares it with the platform',
    )
    .option('--taken-at <time>', 'with --in-place: when the backup was taken, in RFC 3339; default: now');
  return withContext(command).action(
    onlyLocal(async (backup: string | undefined, flags: Flags) => {
      const { database } = loadFor(command);
      if ((backup === undefined) === (flags.inPlace === undefined))
        throw new Fatal(
          'Give the backup, or --in-place where the database is restored already: see `berth restore --help`.',
        );
      if (backup === undefined) await mark(database, flags);
      else if (flags.rehearse) await rehearse(database, resolve(backup), flags);
      else await putBack(database, resolve(backup), flags);
    }),
  );
}

async function putBack(database: string, backup: string, flags: OutputFlag): Promise<void> {
  const { takenAt, before } = await restoreAudited(database, backup);
  printDone(
    flags,
    { backup, taken_at: toTime(takenAt), before },
    `The database is restored from ${backup}, as of ${toTime(takenAt)}.`,
    ...(before === null ? [] : [`The previous database is ${before}: delete it when you no longer need it.`]),
    NEXT,
  );
}

async function rehearse(database: string, backup: string, flags: OutputFlag): Promise<void> {
  const begunAt = systemClock.now();
  const found = await rehearseRestore(database, backup, { now: begunAt, actor: localActor() });
  const { takenAt, instances, accounts, revokedSince } = found;
  const counts = Object.entries(instances).map(([status, count]) => `${count} ${status}`);
  printDone(
    flags,
    { backup, taken_at: toTime(takenAt), instances, accounts, revoked_since: revokedSince },
    `${backup} can be restored: it was checked and opened in ${span(systemClock.now() - begunAt)}, and the copy is removed.`,
    `It is of ${toTime(takenAt)}, with ${counted(accounts, 'account')} and these instances: ${counts.join(', ') || 'none'}.`,
    ...(revokedSince.length === 0
      ? []
      : [`Keys that were revoked since, and would be valid again: ${revokedSince.join(', ')}.`]),
  );
}

/** The audit row is written into the copy. The replaced database gets a row only if the restore was refused. */
async function restoreAudited(database: string, backup: string): Promise<ReturnType<typeof restore>> {
  try {
    return restore(database, backup, { now: systemClock.now(), actor: localActor() });
  } catch (error) {
    const action = { action: 'database.restore', subject: backup };
    return auditBeside({ stores: orchestratorStores, database }, action, () =>
      Promise.reject<ReturnType<typeof restore>>(error),
    );
  }
}

async function mark(database: string, flags: Flags): Promise<void> {
  const { takenAt: given } = flags;
  const now = systemClock.now();
  const takenAt = given === undefined ? now : parseTimestamp('--taken-at', given);
  if (takenAt > now)
    throw new Fatal(`--taken-at ${given}: that is in the future; give the time when the backup was taken.`);
  await markRestored(database, takenAt, localActor());
  printDone(flags, { taken_at: toTime(takenAt) }, NEXT);
}
