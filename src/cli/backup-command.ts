import { execFile } from 'node:child_process';
import { resolve } from 'node:path';
import { promisify } from 'node:util';
import { Command, Option } from 'commander';
import type { MakeBackup } from '../compose/server/backups.ts';
import { backUp, type Stores } from '../compose/stores/stores.ts';
import type { AuditedStore } from '../operator-kit/audit.ts';
import type { Actor } from '../operator-kit/model.ts';
import { toTime } from '../operator-kit/views/values.ts';
import { HOUR_MS } from '../ports/clock.ts';
import { systemClock } from '../runtime/system.ts';
import { auditBeside } from './audit-beside.ts';
import { onlyLocal, withContext } from './context/contexts.ts';
import { withDatabase } from './database.ts';
import { localActor } from './local-actor.ts';
import { type OutputFlag, printDone, withOutput } from './print-records.ts';

interface Flags extends OutputFlag {
  /** A server makes this copy. */
  scheduled?: true;
}

const SCHEDULE: Actor = { name: 'schedule', source: 'server', address: null };

/** Copies the database, even while its server writes to it. */
export function backupCommand<Store extends AuditedStore & { close(): Promise<void> }>(
  product: 'berth' | 'marketplace',
  stores: Stores<Store>,
  load: (command: Command) => { database: string },
): Command {
  const command = withOutput(
    withDatabase(new Command('backup').argument('<file>', 'the copy; it must not exist yet'), product),
  ).addOption(new Option('--scheduled').hideHelp());
  return withContext(command).action(
    onlyLocal(async (file: string, flags: Flags) => {
      const { database } = load(command);
      const target = resolve(file);
      const takenAt = systemClock.now();
      const action = { action: 'database.backup', subject: target };
      const actor = flags.scheduled ? SCHEDULE : localActor();
      const bytes = await auditBeside({ stores, database, actor }, action, () =>
        backUp(stores, database, target, takenAt),
      );
      const time = toTime(takenAt);
      const sentence = `The database as of ${time} is in ${target} (${bytes} bytes). Keep it as secret as the database.`;
      printDone(flags, { file: target, bytes, taken_at: time }, sentence);
    }),
  );
}

/** Longer than any copy takes. */
const LONGEST_MS = 6 * HOUR_MS;

/** Makes copies in a process of their own: a copy takes seconds, during which this process must answer. */
export function backupsInProcess(command: readonly string[], database: string): MakeBackup {
  const [script = ''] = process.argv.slice(1);
  return async (file) => {
    const args = [script, ...command, file, '--database', database, '--scheduled', '--json'];
    try {
      await promisify(execFile)(process.execPath, args, { timeout: LONGEST_MS });
    } catch (error) {
      const { stderr = '', signal } = error as { stderr?: string; signal?: string | null };
      const said = stderr
        .trim()
        .split('\n')
        .at(-1)
        ?.replace(/^berth: /, '');
      throw new Error(said || `the process that copied the database was ended by ${signal}`, {
        cause: error,
      });
    }
  };
}
