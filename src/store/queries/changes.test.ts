import { sql } from 'drizzle-orm';
import { expect, it, onTestFinished } from 'vitest';
import { accountId, instance } from '../../../test/support/rows/orchestrator-rows.ts';
import { orchestratorTables } from '../schema/orchestrator.ts';
import { sqlite } from '../schema/sqlite.ts';
import { changeNumbers } from '../sqlite/change-numbers.ts';
import { toConnection } from '../sqlite/connection.ts';
import { MemoryDatabase } from '../sqlite/memory.ts';
import { orchestratorFormat } from '../sqlite/orchestrator-format.ts';
import { changeReader } from './changes.ts';
import { instanceWriter } from './instances.ts';

it.each([
  [500, false],
  [501, true],
])(
  'a page that is cut beside %i open transactions cannot be followed by another: %s',
  async (count, isLost) => {
    const database = new MemoryDatabase(orchestratorFormat);
    onTestFinished(() => database.close());
    database.writer.pragma('foreign_keys = OFF');
    const numbers = changeNumbers('epoch');
    const open = Array.from({ length: count }, (_, index) => index + 1);
    const connection = toConnection(database.writer, orchestratorTables(sqlite), {
      ...numbers,
      // In PostgreSQL's format.
      snapshot: () => sql`${`1:2000:${open.join(',')}`}`,
    });
    await numbers.keepAbove?.(connection, 1_000);
    const instances = instanceWriter(connection, new Map());
    for (const id of ['a', 'b']) await instances.insert(instance(id));
    const changes = changeReader(connection);
    const after = { from: 0, afterId: '', open: [] };
    const cut = await changes.page({ accountId, after, limit: 1 });
    expect(cut).toMatchObject({ changes: [{ id: 'a' }], isCut: true, isLost });
    const whole = await changes.page({ accountId, after, limit: 2 });
    expect(whole).toMatchObject({ isCut: false, isLost: false });
    expect(whole.next.open.length).toBeLessThanOrEqual(500);
  },
);
