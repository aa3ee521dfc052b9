import Database from 'better-sqlite3';
import type { TestOrchestrator } from '../orchestrator.ts';

/** What a request may leave behind: the rows of each table, and what the platform holds. */
export interface Residue {
  rows: Record<string, number>;
  machines: number;
  volumes: number;
}

const TABLES = ['instances', 'claims', 'work', 'volumes', 'attachments', 'idempotency', 'tokens'];

/** Looks into the database file itself, beside the store. */
export async function residueOf({ databasePath, simulator }: TestOrchestrator): Promise<Residue> {
  const db = new Database(databasePath, { readonly: true });
  try {
    const rows = TABLES.map((table) => [
      table,
      Number(db.prepare(`SELECT count(*) FROM ${table}`).pluck().get()),
    ]);
    return {
      rows: Object.fromEntries(rows),
      machines: listed(await simulator.list()),
      volumes: simulator.volumes === undefined ? 0 : listed(await simulator.volumes.list()),
    };
  } finally {
    db.close();
  }
}

function listed(listing: { answer: 'listed'; items: unknown[] } | { answer: 'unknown' }): number {
  if (listing.answer === 'unknown') throw new Error('the simulator does not know what it has');
  return listing.items.length;
}
