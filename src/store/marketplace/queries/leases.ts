import { and, eq, gt, inArray, lte, or, sql } from 'drizzle-orm';
import type { LeaseWriter, SettingReader, SettingWriter } from '../../../marketplace/model/store.ts';
import type { LeaseRecord } from '../../../work/lease.ts';
import { FARTHEST_MS } from '../../../work/lease-time.ts';
import { prepared, preparedList } from '../../queries/prepared.ts';
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

interface Claim {
  holder: string;
  now: number;
  until: number;
  /** A lease that ends later was claimed with a clock that was wrong. */
  farthest: number;
}

const claimLeases = preparedList(
  ({ db, leases }: Connection, names, { holder, now, until, farthest }: Claim) =>
    db
      .insert(leases)
      .values(names.map((name) => ({ name, token: 1, holder, until })))
      .onConflictDoUpdate({
        target: leases.name,
        set: {
          token: sql`CASE WHEN ${leases.holder} = ${holder} THEN ${leases.token} ELSE ${leases.token} + 1 END`,
          holder,
          until,
        },
        setWhere:
          or(eq(leases.holder, holder), lte(leases.until, now), gt(leases.until, farthest)) ?? sql`false`,
      })
      .returning(),
);

const takenLeases = preparedList(
  ({ db, leases }: Connection, names, { holder, now, farthest }: Omit<Claim, 'until'>) =>
    db
      .select()
      .from(leases)
      .where(
        and(
          inArray(leases.name, names),
          or(eq(leases.holder, holder), and(gt(leases.until, now), lte(leases.until, farthest))),
        ),
      ),
);

const settingByName = prepared(({ db, settings }: Connection, { name }: { name: string }) =>
  db.select().from(settings).where(eq(settings.name, name)),
);

export function leaseWriter(connection: Connection): LeaseWriter {
  const { db, leases } = connection;
  return {
    claim: (names, holder, now, ttlMs) =>
      claimLeases(connection, names, { holder, now, until: now + ttlMs, farthest: now + FARTHEST_MS }),
    taken: (names, holder, now) =>
      takenLeases(connection, names, { holder, now, farthest: now + FARTHEST_MS }),
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
    put: (name, value) => upsert(connection, settings, ['name'], { name, value }),
  };
}
