import type Database from 'better-sqlite3';
import { vi } from 'vitest';
import { EmbeddedDatabase } from '../../../src/store/sqlite/embedded.ts';

/** A database of this process that finds no room for another page, as on a full disk: its writes are SQLITE_FULL. */
export interface FullDisk {
  begin(): void;
  end(): void;
}

/** The next database that is opened here has a disk of its own, which can be full. */
export function foreseeFullDisk(): FullDisk {
  let writer: Database.Database | undefined;
  const { transact } = EmbeddedDatabase.prototype;
  const spy = vi.spyOn(EmbeddedDatabase.prototype, 'transact');
  spy.mockImplementation(function <T>(
    this: EmbeddedDatabase,
    ...args: Parameters<typeof transact<T>>
  ): Promise<T> {
    writer = this.writer;
    spy.mockRestore();
    return transact.apply(this, args) as Promise<T>;
  } as typeof transact);
  const limitPages = (pages: number): void => {
    if (writer === undefined) throw new Error('no database was written to yet');
    writer.pragma(`max_page_count = ${pages}`);
  };
  // A limit below the size of the file is the size of the file.
  return { begin: () => limitPages(1), end: () => limitPages(1_000_000) };
}

/** Writes until there is no room in what is taken already. */
export async function fillUp(write: () => Promise<{ status: number }>): Promise<void> {
  for (let count = 0; count < 200; count++) if ((await write()).status === 503) return;
  throw new Error('there is still room');
}
