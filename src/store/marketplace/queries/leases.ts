import { and, eq, gt, lte, or, sql } from 'drizzle-orm';
import type { LeaseWriter, SettingReader, SettingWriter } from '../../../marketplace/model/store.ts';
import type { LeaseRecord } from '../../../work/lease.ts';
import { prepared } from '../../queries/prepared.ts';
import type { Connection } from './connection.ts';

/**
 * No lease is this long, in milliseconds. One that ends later was taken while a clock was wrong and counts as
 * expired, so that nothing waits for ever.
 */
const FARTHEST_MS = 2 * 60 * 60 * 1000;

const claimLease = prepared(
  (
    { db, tables: { leases } }: Connection,
    values: { name: string; holder: string; now: number; until: number; farthest: number },
  ) =>
    db
      .insert(leases)
      .values({ name: values.name, token: 1, holder: values.holder, until: values.until })
      .onConflictDoUpdate({
        target: leases.name,
        set: {
          token: sql`CASE WHEN ${leases.holder} = ${values.holder} THEN ${leases.token} ELSE ${leases.token} + 1 END`,
          holder: values.holder,
          until: values.until,
        },
        setWhere:
          or(
            eq(leases.holder, values.holder),
            lte(leases.until, values.now),
            gt(leases.until, values.farthest),
          ) ?? sql`false`,
      })
      .returning(),
);

const heldLease = prepared(
  (
    { db, tables: { leases }, locking }: Connection,
    { name, token, holder }: Pick<LeaseRecord, 'name' | 'token' | 'holder'>,
  ) =>
    locking.sharedRows(
      db
        .select({ token: leases.token })
        .from(leases)
        .where(and(eq(leases.name, name), eq(leases.token, token), eq(leases.holder, holder))),
    ),
);

const settingByName = prepared(({ db, tables: { settings } }: Connection, { name }: { name: string }) =>
  db.select().from(settings).where(eq(settings.name, name)),
);

export function leaseWriter(connection: Connection): LeaseWriter {
  const {
    db,
    tables: { leases },
  } = connection;
  return {
    claim: async (name, holder, now, ttlMs) => {
      const asked = { name, holder, now, until: now + ttlMs, farthest: now + FARTHEST_MS };
      const [lease] = await claimLease(connection, asked);
      return lease ?? null;
    },
    // The row stays, so that the next holder gets a greater token.
    release: async (name, holder) =>
      void (await db
        .update(leases)
        .set({ holder: '', until: 0 })
        .where(and(eq(leases.name, name), eq(leases.holder, holder)))),
    isHeld: async ({ name, token, holder }) => {
      const [held] = await heldLease(connection, { name, token, holder });
      return held !== undefined;
    },
    releaseAll: async () => void (await db.update(leases).set({ holder: '', until: 0 })),
  };
}

export function settingReader(connection: Connection): SettingReader {
  return {
    get: async (name) => {
      const [setting] = await settingByName(connection, { name });
      return setting?.value ?? null;
    },
  };
}

export function settingWriter(connection: Connection): SettingWriter {
  const {
    db,
    tables: { settings },
  } = connection;
  const reader = settingReader(connection);
  return {
    ...reader,
    putIfAbsent: async (name, value) => {
      await db.insert(settings).values({ name, value }).onConflictDoNothing({ target: settings.name });
      return (await reader.get(name)) ?? value;
    },
    put: async (name, value) =>
      void (await db
        .insert(settings)
        .values({ name, value })
        .onConflictDoUpdate({ target: settings.name, set: { value } })),
  };
}
