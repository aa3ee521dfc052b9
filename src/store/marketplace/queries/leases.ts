import { and, eq, gt, inArray, lte, or, sql } from 'drizzle-orm';
import type { LeaseWriter, SettingReader, SettingWriter } from '../../../marketplace/model/store.ts';
import type { LeaseRecord } from '../../../work/lease.ts';
import { FARTHEST_MS } from '../../../work/lease-time.ts';
import { prepared } from '../../queries/prepared.ts';
import { upsert } from '../../queries/rows.ts';
import type { Connection } from './connection.ts';

const heldLease = prepared(
  (
    { db, leases, locking }: Connection,
    { name, token, holder }: Pick<LeaseRecord, 'name' | 'token' | 'holder'>,
  ) =>
    locking.sharedRows(
      db
        .select({ token: leases.token })
        .from(leases)
        .where(and(eq(leases.name, name), eq(leases.token, token), eq(leases.holder, holder))),
    ),
);

const settingByName = prepared(({ db, settings }: Connection, { name }: { name: string }) =>
  db.select().from(settings).where(eq(settings.name, name)),
);

export function leaseWriter(connection: Connection): LeaseWriter {
  const { db, leases } = connection;
  return {
    claim: async (names, holder, now, ttlMs) =>
      db
        .insert(leases)
        .values(names.map((name) => ({ name, token: 1, holder, until: now + ttlMs })))
        .onConflictDoUpdate({
          target: leases.name,
          set: {
            token: sql`CASE WHEN ${leases.holder} = ${holder} THEN ${leases.token} ELSE ${leases.token} + 1 END`,
            holder,
            until: now + ttlMs,
          },
          setWhere:
            or(eq(leases.holder, holder), lte(leases.until, now), gt(leases.until, now + FARTHEST_MS)) ??
            sql`false`,
        })
        .returning(),
    taken: async (names, holder, now) =>
      db
        .select()
        .from(leases)
        .where(
          and(
            inArray(leases.name, [...names]),
            or(eq(leases.holder, holder), and(gt(leases.until, now), lte(leases.until, now + FARTHEST_MS))),
          ),
        ),
    // The rows stay, so that the next holder gets a greater token.
    release: async (names, holder) =>
      void (await db
        .update(leases)
        .set({ holder: '', until: 0 })
        .where(and(inArray(leases.name, [...names]), eq(leases.holder, holder)))),
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
  const { db, settings } = connection;
  const reader = settingReader(connection);
  return {
    ...reader,
    putIfAbsent: async (name, value) => {
      await db.insert(settings).values({ name, value }).onConflictDoNothing({ target: settings.name });
      return (await reader.get(name)) ?? value;
    },
    put: (name, value) => upsert(db, settings, ['name'], { name, value }),
  };
}
