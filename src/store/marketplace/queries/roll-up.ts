import { and, asc, eq, gt, inArray, lte, or, sql } from 'drizzle-orm';
import type { LedgerReader } from '../../../marketplace/model/ledger-store.ts';
import type { Connection } from './connection.ts';

const DAY_MS = 86_400_000;

/** Reads slices, and the lines into which they were merged. */
export function rollUpReader({
  db,
  segments,
  slices,
  locking,
}: Connection): Pick<LedgerReader, 'daysOf' | 'toRollUp' | 'sumSlices'> {
  return {
    daysOf: async (segmentId) => {
      const day = sql`((slice_end - 1) / ${sql.raw(String(DAY_MS))})`;
      const taken = sql`(
        SELECT slice_end, amount_micro_usd FROM slices WHERE segment_id = ${segmentId}
        UNION ALL SELECT slice_end, amount_micro_usd FROM day_lines WHERE segment_id = ${segmentId}) AS taken`;
      const found = await db
        .select({
          day: sql`${day}`.mapWith(Number),
          amountMicroUsd: sql`sum(amount_micro_usd)`.mapWith(Number),
        })
        .from(taken)
        .groupBy(day)
        .orderBy(day);
      return found.map((each) => ({ ...each, day: each.day * DAY_MS }));
    },
    toRollUp: async ({ until, periodMs, after, limit }) => {
      const period = sql.raw(String(Math.trunc(periodMs)));
      return db
        .select({ segmentId: slices.segmentId, sliceEnd: slices.sliceEnd })
        .from(slices)
        .innerJoin(segments, eq(segments.id, slices.segmentId))
        .where(
          and(
            lte(slices.sliceEnd, until),
            after &&
              or(
                gt(slices.sliceEnd, after.sliceEnd),
                and(eq(slices.sliceEnd, after.sliceEnd), gt(slices.segmentId, after.segmentId)),
              ),
            sql`(${segments.endedAt} IS NOT NULL
              OR ${segments.postedUntil} >= ((${slices.sliceEnd} - 1) / ${period} + 1) * ${period})`,
          ),
        )
        .orderBy(asc(slices.sliceEnd), asc(slices.segmentId))
        .limit(limit);
    },
    sumSlices: async ({ segmentIds, startsAt, endsAt }) => {
      const found = await locking.rows(
        db
          .select()
          .from(segments)
          .where(inArray(segments.id, [...segmentIds]))
          .orderBy(asc(segments.id)),
      );
      // The sums are read after locking, because another process may have merged some slices meanwhile.
      const sums = await db
        .select({
          segmentId: slices.segmentId,
          slices: sql`count(*)`.mapWith(Number),
          amountMicroUsd: sql`sum(${slices.amountMicroUsd})`.mapWith(Number),
          until: sql`max(${slices.sliceEnd})`.mapWith(Number),
          lineEnd: sql<number | null>`(SELECT max(line.slice_end) FROM day_lines AS line
            WHERE line.segment_id = slices.segment_id)`,
        })
        .from(slices)
        .where(
          and(
            inArray(slices.segmentId, [...segmentIds]),
            gt(slices.sliceEnd, startsAt),
            lte(slices.sliceEnd, endsAt),
          ),
        )
        .groupBy(slices.segmentId);
      const segmentOf = new Map(found.map((segment) => [segment.id, segment]));
      return sums.flatMap(({ segmentId, lineEnd, ...sum }) => {
        const segment = segmentOf.get(segmentId);
        return segment === undefined ? [] : [{ segment, from: Number(lineEnd ?? segment.startedAt), ...sum }];
      });
    },
  };
}
