import { and, eq, ne, type SQL, sum } from 'drizzle-orm';
import type { StorageClaimReader, StorageClaimWriter } from '../../orchestrator/model/store.ts';
import type { Connection } from './connection.ts';

/** Sums are kept in whole MB: what fits exactly is not refused for a rounding error. */
function toMb(gb: number): number {
  return Math.ceil(Math.round(gb * 1e6) / 1e3);
}

export function toGb(mb: number): number {
  return mb / 1e3;
}

export function storageClaimReader({ db, tables: { storageClaims } }: Connection): StorageClaimReader {
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

/** As with units, what is free is counted from the claims, never kept beside them. */
export function storageClaimWriter(connection: Connection): StorageClaimWriter {
  const {
    db,
    tables: { storageClaims },
    locking,
  } = connection;
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
      await db
        .insert(storageClaims)
        .values({ volumeId, region, mb })
        .onConflictDoUpdate({ target: storageClaims.volumeId, set: { region, mb } });
      return true;
    },
    release: async (volumeId) =>
      (await db.delete(storageClaims).where(eq(storageClaims.volumeId, volumeId)).returning()).length === 1,
  };
}
