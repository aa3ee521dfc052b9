import { and, count, eq, ne, type SQL, sql, sum } from 'drizzle-orm';
import type {
  ClaimReader,
  ClaimWriter,
  StorageClaimReader,
  StorageClaimWriter,
} from '../../orchestrator/model/claims.ts';
import type { Connection } from './connection.ts';
import { prepared } from './prepared.ts';
import { upsert } from './rows.ts';

const claimsOfInstance = prepared(({ db, claims }: Connection, { instanceId }: { instanceId: string }) =>
  db.select().from(claims).where(eq(claims.instanceId, instanceId)),
);

type Claim = Parameters<ClaimWriter['take']>[0];

/** Returns a row if a unit was free and the instance held none. */
const insertClaim = prepared(
  ({ db, claims }: Connection, { instanceId, offerId, region, capacity }: Claim) => {
    const isThere = and(eq(claims.offerId, offerId), eq(claims.region, region));
    const taken = db.select({ count: count() }).from(claims).where(isThere);
    return db
      .insert(claims)
      .select(sql`SELECT ${instanceId}, ${offerId}, ${region} WHERE ${taken} < ${capacity}`)
      .onConflictDoNothing()
      .returning({ instanceId: claims.instanceId });
  },
);

const deleteClaim = prepared(({ db, claims }: Connection, { instanceId }: { instanceId: string }) =>
  db.delete(claims).where(eq(claims.instanceId, instanceId)).returning(),
);

export function claimReader(connection: Connection): ClaimReader {
  const { db, claims, instances, work } = connection;
  return {
    held: async () => {
      const rows = await db
        .select({
          ownerRef: instances.ownerRef,
          platform: instances.platform,
          status: instances.status,
          offerId: claims.offerId,
          region: claims.region,
          hold: work.kind,
        })
        .from(claims)
        .innerJoin(instances, eq(instances.id, claims.instanceId))
        .leftJoin(work, and(eq(work.resourceId, instances.id), eq(work.kind, 'hold')));
      return rows.map(({ hold, ...claim }) => ({ ...claim, isKept: hold !== null }));
    },
    use: async () =>
      db
        .select({ offerId: claims.offerId, region: claims.region, claimed: count() })
        .from(claims)
        .groupBy(claims.offerId, claims.region),
    ofFailed: async () =>
      db
        .select({ offerId: claims.offerId, region: claims.region, claimed: count() })
        .from(instances)
        .innerJoin(claims, eq(claims.instanceId, instances.id))
        .where(eq(instances.status, 'ERROR'))
        .groupBy(claims.offerId, claims.region),
    isHeldBy: async (instanceId) => {
      const held = await claimsOfInstance(connection, { instanceId });
      return held.length > 0;
    },
  };
}

/** Free capacity is computed from the claims and never stored, so it cannot drift. */
export function claimWriter(connection: Connection): ClaimWriter {
  const { locking } = connection;
  const reader = claimReader(connection);
  return {
    ...reader,
    take: async ({ instanceId, offerId, region, capacity }) => {
      // Two transactions that count at once would both find the last unit free. The lock makes them take turns.
      await locking.name(`placement ${JSON.stringify([offerId, region])}`);
      const inserted = await insertClaim(connection, { instanceId, offerId, region, capacity });
      return inserted.length > 0 || reader.isHeldBy(instanceId);
    },
    release: async (instanceId) => (await deleteClaim(connection, { instanceId })).length === 1,
  };
}

/** Storage is summed in whole MB, so that a rounding error does not refuse a volume that fits exactly. */
function toMb(gb: number): number {
  return Math.ceil(Math.round(gb * 1e6) / 1e3);
}

export function toGb(mb: number): number {
  return mb / 1e3;
}

export function storageClaimReader({ db, storageClaims }: Connection): StorageClaimReader {
  return {
    use: async () => {
      const sums = await db
        .select({ region: storageClaims.region, mb: sum(storageClaims.mb) })
        .from(storageClaims)
        .groupBy(storageClaims.region);
      return sums.map(({ region, mb }) => ({ region, claimedGb: toGb(Number(mb ?? 0)) }));
    },
    heldBy: async (volumeId) => {
      const [found] = await db.select().from(storageClaims).where(eq(storageClaims.volumeId, volumeId));
      return toGb(found?.mb ?? 0);
    },
  };
}

/** Free storage is computed from the claims, like free units. */
export function storageClaimWriter(connection: Connection): StorageClaimWriter {
  const { db, storageClaims, locking } = connection;
  const sumOf = async (condition: SQL | undefined): Promise<number> => {
    const [found] = await db
      .select({ mb: sum(storageClaims.mb) })
      .from(storageClaims)
      .where(condition);
    return Number(found?.mb ?? 0);
  };
  return {
    ...storageClaimReader(connection),
    take: async ({ volumeId, region, gb, capacityGb }) => {
      const mb = toMb(gb);
      if (capacityGb !== null) {
        await locking.name(`storage ${JSON.stringify(region)}`);
        const others = await sumOf(
          and(eq(storageClaims.region, region), ne(storageClaims.volumeId, volumeId)),
        );
        if (others + mb > Math.floor(capacityGb * 1e3)) return false;
      }
      await upsert(connection, storageClaims, ['volumeId'], { volumeId, region, mb });
      return true;
    },
    release: async (volumeId) =>
      (await db.delete(storageClaims).where(eq(storageClaims.volumeId, volumeId)).returning()).length === 1,
  };
}
