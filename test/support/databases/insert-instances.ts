import Database from 'better-sqlite3';
import type { InstanceStatus } from '../../../src/contract/instance.ts';
import type { TestOrchestrator } from '../orchestrator.ts';
import { instanceRequest } from '../rows/requests.ts';

/** Copies the row of an instance beside the store, so that the orchestrator has not seen the copies: as after a restart. */
export async function insertInstances(
  { databasePath, request }: TestOrchestrator,
  count: number,
  status: InstanceStatus = 'ONLINE',
): Promise<string[]> {
  const { body } = await request('POST', '/instances', { body: instanceRequest() });
  const db = new Database(databasePath, { timeout: 0 });
  const columns = db.prepare<[], string>("SELECT name FROM pragma_table_info('instances')").pluck().all();
  const changed: Record<string, string> = {
    id: "printf('inst-%032d', number)",
    owner_ref: "printf('berth-inst-%032d', number)",
    status: ':status',
  };
  const insert = db
    .prepare<object, string>(
      `WITH RECURSIVE numbers(number) AS (SELECT 1 UNION ALL SELECT number + 1 FROM numbers WHERE number < :count)
      INSERT INTO instances (${columns.join(', ')})
      SELECT ${columns.map((column) => changed[column] ?? column).join(', ')} FROM numbers, instances WHERE id = :id
      RETURNING id`,
    )
    .pluck();
  for (;;)
    try {
      const ids = insert.all({ count, status, id: body['id'] });
      db.close();
      return ids;
    } catch (error) {
      if ((error as { code?: string }).code !== 'SQLITE_BUSY') throw error;
      await new Promise(setImmediate);
    }
}
