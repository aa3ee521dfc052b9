import Database from 'better-sqlite3';
import type { Clock, Timer } from '../../../ports/clock.ts';
import type { AttachmentRecord, MachineRecord, StoredFile, VolumeRecord } from './records.ts';
import { takeStateLock } from './state-file.ts';
import { UnitHistory } from './unit-history.ts';

/** How long after a machine's end its traces leave the journal. */
const TRUNCATE_AFTER_MS = 10_000;

const schema = `
  CREATE TABLE IF NOT EXISTS records (kind TEXT, id TEXT, body TEXT NOT NULL, PRIMARY KEY (kind, id)) WITHOUT ROWID;
  CREATE TABLE IF NOT EXISTS files (disk TEXT, path TEXT, body TEXT NOT NULL, bytes INTEGER NOT NULL, PRIMARY KEY (disk, path)) WITHOUT ROWID;
`;

/**
 * The platform's memory: a SQLite file that survives `kill -9`. Each write is on the disk when it
 * returns; records are read from memory, files from the database.
 */
export class SimulatorState {
  readonly #db: Database.Database;
  readonly #unlock: () => void;
  readonly #clock: Pick<Clock, 'setTimer'>;
  #truncation: Timer | undefined;
  #isClosed = false;
  readonly machines: Records<MachineRecord>;
  readonly units: UnitHistory;
  readonly volumes: Records<VolumeRecord>;
  readonly attachments: Records<AttachmentRecord>;

  /** @throws {StateInUse} if another process uses the file. */
  constructor(file: string, clock: Clock) {
    this.#clock = clock;
    this.#unlock = takeStateLock(file);
    try {
      this.#db = openDatabase(file);
    } catch (error) {
      this.#unlock();
      throw error;
    }
    const units = new UnitHistory(this.#db);
    this.units = units;
    this.machines = new Records(this.#db, 'machine', (before, after) =>
      units.record(before, after, clock.now()),
    );
    this.volumes = new Records(this.#db, 'volume');
    this.attachments = new Records(this.#db, 'attachment');
    // An earlier process may have been killed before it came to that.
    this.#truncateJournal();
  }

  /**
   * The write-ahead log still has the pages of what was deleted as they were: it is emptied some seconds later, so
   * that what a machine held is in no file. While another program reads the file, it is tried again.
   */
  #planTruncation(): void {
    if (this.#isClosed) return;
    this.#truncation ??= this.#clock.setTimer(TRUNCATE_AFTER_MS, () => {
      this.#truncation = undefined;
      if (!this.#truncateJournal()) this.#planTruncation();
    });
  }

  #truncateJournal(): boolean {
    const timeout = Number(this.#db.pragma('busy_timeout', { simple: true }));
    try {
      this.#db.pragma('busy_timeout = 0');
      return this.#db.pragma('wal_checkpoint(TRUNCATE)', { simple: true }) === 0;
    } catch {
      return false;
    } finally {
      this.#db.pragma(`busy_timeout = ${timeout}`);
    }
  }

  /** All or nothing: a throw inside undoes every write, and the records in memory are read again. */
  transaction(work: () => void): void {
    try {
      this.#db.transaction(work)();
    } catch (error) {
      for (const records of [this.machines, this.volumes, this.attachments]) records.load();
      throw error;
    }
  }

  readFile(disk: string, path: string): StoredFile | undefined {
    const row = this.#db.prepare('SELECT body FROM files WHERE disk = ? AND path = ?').get(disk, path);
    return row === undefined ? undefined : parseBody(row);
  }

  /** Every path of the disk that begins with `prefix`, in order. */
  listPaths(disk: string, prefix: string): string[] {
    const rows = this.#db
      .prepare('SELECT path FROM files WHERE disk = ? AND substr(path, 1, ?) = ? ORDER BY path')
      .all(disk, prefix.length, prefix) as { path: string }[];
    return rows.map(({ path }) => path);
  }

  writeFile(disk: string, path: string, file: StoredFile): void {
    this.#db
      .prepare('INSERT OR REPLACE INTO files (disk, path, body, bytes) VALUES (?, ?, ?, ?)')
      .run(disk, path, JSON.stringify(file), Buffer.byteLength(file.content));
  }

  deleteFile(disk: string, path: string): void {
    this.#db.prepare('DELETE FROM files WHERE disk = ? AND path = ?').run(disk, path);
  }

  usedBytes(disk: string): number {
    const row = this.#db
      .prepare('SELECT coalesce(sum(bytes), 0) AS used FROM files WHERE disk = ?')
      .get(disk);
    return (row as { used: number }).used;
  }

  countFiles(disk: string): number {
    const row = this.#db.prepare('SELECT count(*) AS files FROM files WHERE disk = ?').get(disk);
    return (row as { files: number }).files;
  }

  deleteDisk(disk: string): void {
    this.#db.prepare('DELETE FROM files WHERE disk = ?').run(disk);
    this.#planTruncation();
  }

  close(): void {
    this.#truncation?.cancel();
    this.#isClosed = true;
    this.#db.close();
    this.#unlock();
  }
}

function openDatabase(file: string): Database.Database {
  const db = new Database(file);
  try {
    db.pragma('journal_mode = WAL');
    db.pragma('synchronous = FULL');
    // What was on the disk of a destroyed machine is overwritten.
    db.pragma('secure_delete = ON');
    db.exec(schema);
    return db;
  } catch (error) {
    db.close();
    throw error;
  }
}

/** The records of one kind: a map that writes through. */
class Records<T> {
  readonly #db: Database.Database;
  readonly #kind: string;
  readonly #onChange: (before: T | undefined, after: T | undefined) => void;
  #byId = new Map<string, T>();

  /** `onChange` is called in the transaction that writes the change. */
  constructor(
    db: Database.Database,
    kind: string,
    onChange: (before: T | undefined, after: T | undefined) => void = () => undefined,
  ) {
    this.#db = db;
    this.#kind = kind;
    this.#onChange = onChange;
    this.load();
  }

  load(): void {
    const rows = this.#db.prepare('SELECT id, body FROM records WHERE kind = ?').all(this.#kind) as {
      id: string;
    }[];
    this.#byId = new Map(rows.map((row) => [row.id, parseBody<T>(row)]));
  }

  /** @throws {Error} after `close`: what is in memory then is no answer any more. */
  get(id: string): T | undefined {
    this.#mustBeOpen();
    return this.#byId.get(id);
  }

  all(): T[] {
    this.#mustBeOpen();
    return [...this.#byId.values()];
  }

  put(id: string, record: T): void {
    this.#db.transaction(() => {
      this.#onChange(this.#byId.get(id), record);
      this.#db
        .prepare('INSERT OR REPLACE INTO records (kind, id, body) VALUES (?, ?, ?)')
        .run(this.#kind, id, JSON.stringify(record));
    })();
    this.#byId.set(id, record);
  }

  delete(id: string): void {
    this.#db.transaction(() => {
      this.#onChange(this.#byId.get(id), undefined);
      this.#db.prepare('DELETE FROM records WHERE kind = ? AND id = ?').run(this.#kind, id);
    })();
    this.#byId.delete(id);
  }

  #mustBeOpen(): void {
    if (!this.#db.open) throw new Error('the simulator is closed');
  }
}

function parseBody<T>(row: unknown): T {
  return JSON.parse((row as { body: string }).body) as T;
}
