import { and, asc, eq, gt, isNull, sql } from 'drizzle-orm';
import type { LedgerReader, UsedSegment } from '../../../marketplace/model/ledger-store.ts';
import type { Connection } from './connection.ts';
import { isLater } from './pages.ts';

function ofSubjects({ deployments, segments, volumes }: Connection) {
  return {
    providerId: sql<string>`coalesce(${deployments.providerId}, ${volumes.providerId})`,
    deployment: and(eq(segments.subjectKind, 'deployment'), eq(deployments.id, segments.subjectId)),
    volume: and(eq(segments.subjectKind, 'volume'), eq(volumes.id, segments.subjectId)),
  };
}

export async function usedSegments(
  connection: Connection,
  { since, isOpen, teamId, after, limit }: Parameters<LedgerReader['used']>[0],
): Promise<UsedSegment[]> {
  const { db, deployments, segments, volumes } = connection;
  const { id, subjectKind, startedAt, endedAt, rateMicroUsdPerHour, providerRateMicroUsdPerHour } = segments;
  const { providerId, deployment, volume } = ofSubjects(connection);
  const wanted = isOpen
    ? [isNull(endedAt), after && gt(id, after.id)]
    : [gt(endedAt, since), isLater(endedAt, id, after && { at: after.endedAt ?? since, id: after.id })];
  return db
    .select({
      ...{ id, subjectKind, startedAt, endedAt, rateMicroUsdPerHour, providerRateMicroUsdPerHour },
      providerId,
      confirmedUntil: deployments.observedAt,
    })
    .from(segments)
    .leftJoin(deployments, deployment)
    .leftJoin(volumes, volume)
    .where(and(...wanted, teamId === undefined ? undefined : eq(segments.teamId, teamId)))
    .orderBy(...(isOpen ? [asc(id)] : [asc(endedAt), asc(id)]))
    .limit(limit);
}

export async function burnByProvider(connection: Connection): ReturnType<LedgerReader['burnByProvider']> {
  const { db, deployments, segments, volumes } = connection;
  const { providerId, deployment, volume } = ofSubjects(connection);
  const sum = sql<number>`sum(${segments.rateMicroUsdPerHour})`.mapWith(Number);
  return db
    .select({ providerId, microUsdPerHour: sum })
    .from(segments)
    .leftJoin(deployments, deployment)
    .leftJoin(volumes, volume)
    .where(isNull(segments.endedAt))
    .groupBy(providerId)
    .orderBy(providerId);
}
