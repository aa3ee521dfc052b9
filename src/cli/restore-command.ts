import { resolve } from 'node:path';
import { Command } from 'commander';
import { markRestored, restore } from '../compose/open-store.ts';
import { Fatal } from '../ports/errors.ts';
import { printLine } from '../runtime/print.ts';
import { systemClock } from '../runtime/system.ts';
import { withDatabase } from './database.ts';
import { loadFor } from './orchestrator-database.ts';
import { type JsonFlag, printJson, toJsonTime, withJson } from './print-records.ts';

interface Flags extends JsonFlag {
  inPlace?: true;
  takenAt?: string;
}

const NEXT =
  'Start `berth serve` with the configuration as before: it compares the database with the platform, sells nothing meanwhile, and says ' +
  'when that is over. Keys that were revoked since the backup are valid again: `berth keys list` shows them.';

/** `berth restore`: puts a backup in the place of the database, or marks one that other tools restored. */
export function restoreCommand(): Command {
  return withJson(
    withDatabase(new Command('restore').argument('[backup]', 'a file of `berth backup`, or another copy')),
  )
    .option(
      '--in-place',
      'the database is restored already, by other tools: have the first start compare it with the platform',
    )
    .option('--taken-at <time>', 'with --in-place: what the database is as of, in RFC 3339; default: now')
    .action(async (backup: string | undefined, flags: Flags, command: Command) => {
      const { database } = loadFor(command);
      if ((backup === undefined) === (flags.inPlace === undefined))
        throw new Fatal(
          'Give the backup, or --in-place where the database is restored already: see `berth restore --help`.',
        );
      if (backup === undefined) await mark(database, flags);
      else putBack(database, resolve(backup), flags);
    });
}

function putBack(database: string, backup: string, { json }: JsonFlag): void {
  const { takenAt, before } = restore(database, backup, systemClock.now());
  if (json) {
    printJson({ backup, taken_at: toJsonTime(takenAt), before });
    return;
  }
  const of = takenAt === null ? '' : `, as of ${toJsonTime(takenAt)}`;
  printLine(`The database is the one of ${backup}${of}.`);
  if (before !== null) printLine(`What was there is ${before}: delete it when all is well.`);
  printLine(NEXT);
}

async function mark(database: string, { takenAt: given, json }: Flags): Promise<void> {
  const now = systemClock.now();
  const takenAt = given === undefined ? now : Date.parse(given);
  if (Number.isNaN(takenAt))
    throw new Fatal(`--taken-at ${given}: give a time such as 2026-01-31T04:00:00Z.`);
  if (takenAt > now) throw new Fatal(`--taken-at ${given}: that is to come; give when the backup was taken.`);
  await markRestored(database, takenAt);
  if (json) printJson({ taken_at: toJsonTime(takenAt) });
  else printLine(NEXT);
}
