import { mkdirSync, readdirSync, rmSync, statSync } from 'node:fs';
import { basename, join } from 'node:path';
import type { Backups } from '../../config/server-schema.ts';
import type { Alarms } from '../../operator-kit/alarms/alarms.ts';
import { type Clock, HOUR_MS } from '../../ports/clock.ts';
import type { Log } from '../../ports/log.ts';

/** After a failed copy, the next one is tried after this time at the latest. */
const RETRY_MS = HOUR_MS;

/** One copy in the folder. */
export interface Backup {
  file: string;
  takenAt: number;
  bytes: number;
}

/** Copies the database to a new file. @throws if it fails; then there is no file */
export type MakeBackup = (file: string) => Promise<unknown>;

interface Parts {
  backups: Backups;
  /** The name of the product, with which the names of its copies begin. */
  product: 'berth' | 'marketplace';
  clock: Pick<Clock, 'now'>;
  log: Pick<Log, 'info' | 'warn'>;
  make: MakeBackup;
  alarms: Pick<Alarms<'backup_failed'>, 'raise' | 'end' | 'server'>;
}

/** Undefined: there is no schedule. */
export function scheduledBackups({
  backups,
  make,
  ...parts
}: Omit<Parts, 'backups' | 'make'> & {
  backups: Backups | undefined;
  make: MakeBackup | undefined;
}): ScheduledBackups | undefined {
  return backups && make && new ScheduledBackups({ ...parts, backups, make });
}

/** Copies the database on a schedule, and deletes old copies. The folder says when the last one was made. */
export class ScheduledBackups {
  readonly #parts: Parts;
  #running: Promise<void> | undefined;
  #retryAt = Number.NEGATIVE_INFINITY;

  constructor(parts: Parts) {
    this.#parts = parts;
  }

  /** Makes a copy if one is due and none is being made. Never rejects. */
  async poll(): Promise<void> {
    const { backups, product, clock } = this.#parts;
    const now = clock.now();
    // After the clock was set back, a time that is further away than one retry means nothing.
    const isWaiting = now < this.#retryAt && this.#retryAt - now <= RETRY_MS;
    if (this.#running !== undefined || isWaiting) return;
    const newest = tryList(backups, product, now).at(-1);
    if (newest && isSane(newest, now) && now - newest.takenAt < backups.every_hours * HOUR_MS) return;
    this.#running = this.#copy(newest).finally(() => {
      this.#running = undefined;
    });
    await this.#running;
  }

  async #copy(newest: Backup | undefined): Promise<void> {
    const { backups, product, clock, log, make, alarms } = this.#parts;
    const alarm = { kind: 'backup_failed', subject: alarms.server } as const;
    const file = join(backups.folder, nameOf(product, clock.now()));
    try {
      mkdirSync(backups.folder, { recursive: true, mode: 0o700 });
      removeDrafts(backups.folder, product);
      await make(file);
      alarms.end(alarm);
      log.info({ file }, 'the database was backed up');
      const all = listBackups(backups.folder, product, clock.now());
      for (const old of all.slice(0, -backups.keep)) rmSync(old.file, { force: true });
    } catch (error) {
      this.#retryAt = clock.now() + RETRY_MS;
      const reason = error instanceof Error ? error.message : String(error);
      const last = newest === undefined ? 'there is none' : `the last one is ${basename(newest.file)}`;
      alarms.raise({
        ...alarm,
        platform: null,
        text: 'a scheduled backup failed: correct the cause in the details; it is tried again every hour',
        detail: `${last}; ${reason}`,
        fields: { cause: reason },
      });
    }
  }
}

/** Removes what killed copies left: only this server copies to the folder, and one copy at a time. */
function removeDrafts(folder: string, product: string): void {
  for (const name of readdirSync(folder))
    if (name.startsWith(`${product}-`) && /\.db\.part-\d+$/.test(name)) rmSync(join(folder, name));
}

function nameOf(product: string, at: number): string {
  return `${product}-${new Date(at).toISOString().replaceAll(/[-:]|\.\d+/g, '')}.db`;
}

const STAMP = /^(\d{4})(\d\d)(\d\d)T(\d\d)(\d\d)(\d\d)Z$/;

/**
 * The scheduled copies of a product in a folder, oldest first. A copy from the future was named by a wrong clock, and
 * comes before all others. @throws if the folder cannot be read
 */
function listBackups(folder: string, product: Parts['product'], now: number): Backup[] {
  const found = readdirSync(folder).flatMap((name) => {
    if (!name.startsWith(`${product}-`) || !name.endsWith('.db')) return [];
    const stamp = name.slice(product.length + 1, -'.db'.length);
    const takenAt = Date.parse(stamp.replace(STAMP, '$1-$2-$3T$4:$5:$6Z'));
    if (!STAMP.test(stamp) || Number.isNaN(takenAt)) return [];
    const file = join(folder, name);
    const bytes = statSync(file, { throwIfNoEntry: false })?.size;
    return bytes === undefined ? [] : [{ file, takenAt, bytes }];
  });
  return found.sort((a, b) => Number(isSane(a, now)) - Number(isSane(b, now)) || a.takenAt - b.takenAt);
}

/** Clocks are corrected by some seconds without a word. */
function isSane({ takenAt }: Backup, now: number): boolean {
  return takenAt <= now + HOUR_MS;
}

/** What tells of the last copy. Undefined: there is no schedule. */
export function lastBackupOf(
  backups: Backups | undefined,
  product: Parts['product'],
  clock: Pick<Clock, 'now'>,
): (() => Backup | null) | undefined {
  return backups && (() => tryList(backups, product, clock.now()).at(-1) ?? null);
}

/** Like {@link listBackups}. A folder that cannot be read has none: making the next copy tells why. */
function tryList({ folder }: Backups, product: Parts['product'], now: number): Backup[] {
  try {
    return listBackups(folder, product, now);
  } catch {
    return [];
  }
}
