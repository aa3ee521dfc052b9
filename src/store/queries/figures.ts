import { and, asc, eq, gte, inArray, lt, sql } from 'drizzle-orm';
import type { FigureReader, FigureWriter } from '../../operator-kit/model.ts';
import type { operatorTables } from '../schema/operators.ts';
import type { Connection as AnyConnection } from './connection.ts';
import { upsert } from './rows.ts';

/** A connection to the database of either product. */
type Connection = AnyConnection<ReturnType<typeof operatorTables>>;

export function figureReader({ db, figures }: Connection): FigureReader {
  return {
    list: async ({ step, series, subject, from, until }) =>
      db
        .select()
        .from(figures)
        .where(
          and(
            eq(figures.step, step),
            gte(figures.at, from),
            lt(figures.at, until),
            eq(figures.series, series),
            subject === undefined ? undefined : eq(figures.subject, subject),
          ),
        )
        .orderBy(asc(figures.at), asc(figures.subject)),
  };
}

export function figureWriter(connection: Connection): FigureWriter {
  const { db, figures, locking } = connection;
  return {
    ...figureReader(connection),
    lock: () => locking.name('figures'),
    claimSample: async (of) => {
      const marked = await db
        .insert(figures)
        .values({ step: 'sample', ...of, rows: [] })
        .onConflictDoNothing()
        .returning({ at: figures.at });
      return marked.length > 0;
    },
    put: (record) => upsert(connection, figures, ['step', 'at', 'series', 'subject'], record),
    prune: async (step, before, limit) => {
      const key = sql`(${figures.at}, ${figures.series}, ${figures.subject})`;
      const { at, series, subject } = figures;
      const oldest = db
        .select({ at, series, subject })
        .from(figures)
        .where(and(eq(figures.step, step), lt(at, before)))
        .orderBy(asc(at), asc(series), asc(subject))
        .limit(limit);
      await db.delete(figures).where(and(eq(figures.step, step), inArray(key, oldest)));
    },
  };
}
