import { randomUUID } from 'node:crypto';
import { sql } from 'drizzle-orm';
import type { MarkName } from '../../orchestrator/model/marks.ts';
import type { ChangeNumbers } from '../queries/connection.ts';

const PRUNED: MarkName = 'changes_pruned_until';

/**
 * Transactions run one after another, so a change has the next number of its account. A file can be replaced unnoticed
 * while no process has it open. So each store gets a new epoch, unless one is given.
 */
export function changeNumbers(epoch: string = randomUUID()): ChangeNumbers {
  const last = (accountId: unknown) => sql`max(
    ifnull((SELECT max(i.changed_in) FROM instances AS i WHERE i.account_id = ${accountId}), 0),
    ifnull((SELECT max(v.changed_in) FROM volumes AS v WHERE v.account_id = ${accountId}), 0),
    ifnull((SELECT at FROM marks WHERE name = '${sql.raw(PRUNED)}'), 0))`;
  return {
    next: (accountId) => sql`${last(accountId)} + 1`,
    snapshot: (accountId) => sql`format('%d:%d:', ${last(accountId)} + 1, ${last(accountId)} + 1)`,
    epoch: sql`${epoch}`,
    keepAbove: async ({ db, marks }, number) =>
      void (await db
        .insert(marks)
        .values({ name: PRUNED, at: number })
        .onConflictDoUpdate({ target: marks.name, set: { at: sql`max(${marks.at}, excluded.at)` } })),
  };
}
