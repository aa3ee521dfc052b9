import type { Pool } from 'pg';
import { asFailure } from './postgres-error.ts';

/** More than the rows of one create. */
const PROOF_BYTES = 65_536;

/**
 * Takes new pages in the data and in the write-ahead log, and gives them back. Two servers that do so at once wait for
 * each other. EXTERNAL: what is compressed would take no room.
 *
 * @throws {PostgresFailure}
 */
export async function proveWrites(pool: Pool): Promise<void> {
  const client = await asFailure(pool.connect());
  let isBroken = true;
  try {
    await asFailure(
      client.query(
        `BEGIN;
         CREATE TABLE write_proof (filler text);
         ALTER TABLE write_proof ALTER filler SET STORAGE EXTERNAL;
         INSERT INTO write_proof VALUES (repeat('x', ${PROOF_BYTES}));
         DROP TABLE write_proof;
         COMMIT`,
      ),
    );
    isBroken = false;
  } finally {
    client.release(isBroken);
  }
}
