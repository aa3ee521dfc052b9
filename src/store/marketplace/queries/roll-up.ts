import { and, asc, eq, gt, lte, or, sql } from 'drizzle-orm';
import type { LedgerReader } from '../../../marketplace/model/store.ts';
import type { Connection } from './connection.ts';

const DAY_MS = 86_400_000;

/** What slices are, and what was made of them. */
export function rollUpReader({
  db,
  tables: { dayLines, segments, slices },
}: Connection): Pick<LedgerReader, 'daysOf' | 'toRollUp' | 'sumOfSlices'> {
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
    sumOfSlices: async (segmentId, startsAt, endsAt) => {
      const [sum] = await db
        .select({
          slices: sql`count(*)`.mapWith(Number),
          amountMicroUsd: sql`coalesce(sum(${slices.amountMicroUsd}), 0)`.mapWith(Number),
          until: sql`coalesce(max(${slices.sliceEnd}), 0)`.mapWith(Number),
          from: sql`(SELECT coalesce(max(${dayLines.sliceEnd}), (
              SELECT started_at FROM segments WHERE id = ${segmentId}))
            FROM day_lines WHERE segment_id = ${segmentId})`.mapWith(Number),
        })
        .from(slices)
        .where(
          and(eq(slices.segmentId, segmentId), gt(slices.sliceEnd, startsAt), lte(slices.sliceEnd, endsAt)),
        );
      return sum === undefined || sum.slices === 0 ? null : sum;
    },
  };
}
