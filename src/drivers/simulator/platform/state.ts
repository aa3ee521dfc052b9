import Database from 'better-sqlite3';
import type { WriterMarks } from '../../../orchestrator/model/platform-driver.ts';
import type { Stored } from '../../../platform-model/platform.ts';
import type { AttachmentRecord, MachineRecord, VolumeRecord } from '../../../platform-model/records.ts';
import type { Storage } from '../../../platform-model/rules.ts';
import type { HostKey } from '../../kit/host-key.ts';
import type { StoredFile } from '../guest/guest.ts';
import { takeStateLock } from './state-file.ts';

interface WriterRecord {
  key: string;
  text: string;
}

const schema = `
  CREATE TABLE IF NOT EXISTS records (kind TEXT, id TEXT, body TEXT NOT NULL, PRIMARY KEY (kind, id)) WITHOUT ROWID;
  CREATE TABLE IF NOT EXISTS files (disk TEXT, path TEXT, body TEXT NOT NULL, bytes INTEGER NOT NULL, PRIMARY KEY (disk, path)) WITHOUT ROWID;
`;

/**
 * The platform's state in a SQLite file. Each change writes one record and has reached the operating system when it
 * returns, so it survives `kill -9`. After a power failure the file is intact but may lack the last changes; an
 * orchestrator sees those machines as lost.
 */
export class SimulatorState implements Storage<SimulatedMachine> {
  readonly #db: Database.Database;
  readonly #unlock: () => void;
  readonly writer: WriterMarks = {
    read: async (key) => [this.#all<WriterRecord>('writer').find((one) => one.key === key)?.text ?? ''],
    write: async (key, text) => this.#write('writer', key, { key, text } satisfies WriterRecord),
  };

  /**
   * `image`: initial content of a state in memory, from {@link image}.
   *
   * @throws {InUse} if another process uses the file
   */
  constructor(file: string, image?: Buffer) {
    this.#unlock = takeStateLock(file);
    try {
      this.#db = openDatabase(image ?? file);
    } catch (error) {
      this.#unlock();
      throw error;
    }
  }

  /** The state that an earlier process left. Deletes files that a guest wrote while its machine was being removed. */
  load(): Stored<SimulatedMachine> {
    this.#db.exec(`DELETE FROM files WHERE disk LIKE 'machine/%'
      AND substr(disk, 9) NOT IN (SELECT id FROM records WHERE kind = 'machine')`);
    return {
      machines: this.#all<SimulatedMachine>('machine'),
      volumes: this.#all<VolumeRecord>('volume'),
      attachments: this.#all<AttachmentRecord>('attachment'),
    };
  }

  machine(before: SimulatedMachine | undefined, after: SimulatedMachine | undefined): void {
    this.#db.transaction(() => {
      this.#write('machine', (after ?? before)?.spec.ref, after);
      if (before !== undefined && after === undefined) this.deleteDisk(rootDisk(before.spec.ref));
    })();
  }

  volume(before: VolumeRecord | undefined, after: VolumeRecord | undefined): void {
    this.#db.transaction(() => {
      this.#write('volume', (after ?? before)?.spec.ref, after);
      if (before !== undefined && after === undefined) this.deleteDisk(volumeDisk(before.spec.ref));
    })();
  }

  attachment(before: AttachmentRecord | undefined, after: AttachmentRecord | undefined): void {
    const { volume, machine } = (after ?? before) as AttachmentRecord;
    this.#write('attachment', `${volume}/${machine}`, after);
  }

  #all<T>(kind: string): T[] {
    return this.#db
      .prepare('SELECT body FROM records WHERE kind = ?')
      .all(kind)
      .map(parseBody<T>);
  }

  #write(kind: string, id: string | undefined, record: object | undefined): void {
    if (record === undefined) this.#db.prepare('DELETE FROM records WHERE kind = ? AND id = ?').run(kind, id);
    else
      this.#db
        .prepare('INSERT OR REPLACE INTO records (kind, id, body) VALUES (?, ?, ?)')
        .run(kind, id, JSON.stringify(record));
  }

  readFile(disk: string, path: string): StoredFile | undefined {
    const row = this.#db.prepare('SELECT body FROM files WHERE disk = ? AND path = ?').get(disk, path);
    return row === undefined ? undefined : parseBody(row);
  }

  /** All paths of the disk, sorted. */
  listPaths(disk: string): string[] {
    const rows = this.#db.prepare('SELECT path FROM files WHERE disk = ? ORDER BY path').all(disk);
    return (rows as { path: string }[]).map(({ path }) => path);
  }

  writeFile(disk: string, path: string, file: StoredFile): void {
    this.#db
      .prepare('INSERT OR REPLACE INTO files (disk, path, body, bytes) VALUES (?, ?, ?, ?)')
      .run(disk, path, JSON.stringify(file), Buffer.byteLength(file.content));
  }

  deleteFile(disk: string, path: string): void {
    this.#db.prepare('DELETE FROM files WHERE disk = ? AND path = ?').run(disk, path);
  }

  /** The bytes of all files, each with `perFile` bytes besides its content. */
  usedBytes(disk: string, perFile = 0): number {
    const row = this.#db
      .prepare('SELECT coalesce(sum(bytes + ?), 0) AS used FROM files WHERE disk = ?')
      .get(perFile, disk);
    return (row as { used: number }).used;
  }

  usedBytesOfVolume(ref: string): number {
    return this.usedBytes(volumeDisk(ref));
  }

  /** Deletes the files in /run, which is in memory as on any Linux. */
  forgetMemory(disk: string): void {
    this.#db.prepare("DELETE FROM files WHERE disk = ? AND path LIKE '/run/%'").run(disk);
  }

  deleteDisk(disk: string): void {
    this.#db.prepare('DELETE FROM files WHERE disk = ?').run(disk);
  }

  image(): Buffer {
    return this.#db.serialize();
  }

  close(): void {
    this.#db.close();
    this.#unlock();
  }
}

function openDatabase(file: string | Buffer): Database.Database {
  const db = new Database(file);
  try {
    db.pragma('journal_mode = WAL');
    // In WAL mode with NORMAL, only checkpoints wait for the disk; commits do not.
    db.pragma('synchronous = NORMAL');
    db.exec(schema);
    return db;
  } catch (error) {
    db.close();
    throw error;
  }
}

function parseBody<T>(row: unknown): T {
  return JSON.parse((row as { body: string }).body) as T;
}

export interface SimulatedMachine extends MachineRecord {
  /** Whether its SSH server ever listens. */
  sshListens: boolean;
  /** Assigned at the first boot. */
  sshPort: number | null;
  sshHostKey: Pick<HostKey, 'privateKey' | 'fingerprint'>;
  /** When cloud-init finishes the first boot. Null if that boot has not completed. */
  cloudInitUntil: number | null;
  runcmdDone: number;
}

/** The storage name of a machine's root disk. */
export const rootDisk = (machine: string): string => `machine/${machine}`;
export const volumeDisk = (volume: string): string => `volume/${volume}`;
