import { getTableColumns, sql } from 'drizzle-orm';
import type { ChangePosition, ChangeReader } from '../../orchestrator/model/store.ts';
import type { ResourceKind } from '../../orchestrator/model/work.ts';
import type { Connection, Tables } from './connection.ts';
import { prepared } from './prepared.ts';

// The row of each instance and volume has the number of its last change, so the rows are the list of changes.
// PostgreSQL numbers a change by its transaction's id. Ids follow the order of BEGIN, not of COMMIT, so a position also
// lists the transactions that were open. See docs/decisions/0031-changes.md.

/**
 * Maximum open transactions in a position. With more, some changes are listed again. A truncated page could then repeat
 * forever, so the position counts as lost.
 */
const MOST_OPEN = 500;

/** The columns of an instance's record. */
export function instanceColumns(instances: Tables['instances']) {
  const { changedIn, ...columns } = getTableColumns(instances);
  return columns;
}

/** The columns of a volume's record. */
export function volumeColumns(volumes: Tables['volumes']) {
  const { changedIn, version, ...columns } = getTableColumns(volumes);
  return columns;
}

interface PageValues {
  accountId: string;
  from: number;
  afterId: string;
  open: number[];
  limit: number;
}

const pageOfChanges = prepared(
  (
    { db, instances, volumes, changes }: Connection,
    { accountId, from, afterId, open, limit }: PageValues,
  ) => {
    /** One query for each range of the index: a single one with OR might read all rows of the account. */
    const listed = (kind: ResourceKind, table: Tables['instances'] | Tables['volumes']) => {
      const range = sql`(changed_in, id) > (${from}, ${afterId})`;
      const known = changes.isBelowEnd && sql` AND ${changes.isBelowEnd(sql`changed_in`)}`;
      const select = sql`SELECT '${sql.raw(kind)}' AS kind, id, version, changed_in FROM ${table} WHERE account_id = ${accountId} AND `;
      const earlier = changes.isAmong && sql` UNION ALL ${select} ${changes.isAmong(sql`changed_in`, open)}`;
      return sql`${select} ${range} ${known} ${earlier}`;
    };
    const page = sql`(${listed('instance', instances)} UNION ALL ${listed('volume', volumes)} ORDER BY changed_in, id LIMIT ${limit}) AS page`;
    return db
      .select({
        epoch: sql<string>`${changes.epoch}`,
        snapshot: sql<string>`${changes.snapshot(accountId)}`,
        kind: sql<ResourceKind | null>`page.kind`,
        id: sql<string>`page.id`,
        version: sql<number>`page.version`.mapWith(Number),
        changedIn: sql<number>`page.changed_in`.mapWith(Number),
      })
      .from(sql`(SELECT 1) AS one`)
      .leftJoin(page, sql`true`)
      .orderBy(sql`page.changed_in`, sql`page.id`);
  },
);

export function changeReader(connection: Connection): ChangeReader {
  return {
    page: async ({ accountId, after, limit }) => {
      const { from, afterId, open } = after ?? { from: 0, afterId: '', open: [] };
      const rows = await pageOfChanges(connection, {
        accountId,
        from,
        afterId,
        open: [...open],
        limit: after === null ? 0 : limit + 1,
      });
      const { epoch = '', snapshot = '' } = rows[0] ?? {};
      const found = rows.filter(({ kind }) => kind !== null);
      const listed = found.slice(0, limit);
      const end = endOf(snapshot);
      const last = found.length > limit ? listed.at(-1) : undefined;
      const next = last === undefined ? atEnd(end) : atLast(last, end);
      return {
        epoch,
        changes: listed.map(({ kind, id, version }) => ({ kind: kind as ResourceKind, id, version })),
        next,
        isCut: last !== undefined,
        isLost: from > end.from || next.open.length > MOST_OPEN,
      };
    },
  };
}

type End = Pick<ChangePosition, 'from' | 'open'>;

/** The changes that a statement saw: all before `from`, except those of open transactions. */
function endOf(snapshot: string): End {
  const [, end = '', open = ''] = snapshot.split(':');
  return { from: Number(end), open: open === '' ? [] : open.split(',').map(Number) };
}

function atEnd({ from, open }: End): ChangePosition {
  return { from: open[MOST_OPEN] ?? from, afterId: '', open: open.slice(0, MOST_OPEN) };
}

/** The position after the last change of a truncated page. Later changes were not seen, open or not. */
function atLast({ changedIn, id }: { changedIn: number; id: string }, { open }: End): ChangePosition {
  return { from: changedIn, afterId: id, open: open.filter((number) => number < changedIn) };
}
