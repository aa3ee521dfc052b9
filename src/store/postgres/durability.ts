import { createPool } from './pool.ts';

/** The settings that decide whether a commit survives a crash of the server's machine. */
export interface Durability {
  fsync: string;
  synchronous_commit: string;
  full_page_writes: string;
  /** Milliseconds since the epoch, by the server's clock. */
  now: number;
}

/** Reads the settings. @throws {Error} if the server does not answer */
export async function readDurability(url: string): Promise<Durability> {
  const pool = createPool(url, 1);
  try {
    const { rows } = await pool.query<Durability>(
      `SELECT current_setting('fsync') AS fsync, current_setting('synchronous_commit') AS synchronous_commit,
        current_setting('full_page_writes') AS full_page_writes,
        (extract(epoch FROM clock_timestamp()) * 1000)::float8 AS now`,
    );
    const [row] = rows;
    if (row === undefined) throw new Error('the server gave an empty answer');
    return row;
  } finally {
    await pool.end();
  }
}
