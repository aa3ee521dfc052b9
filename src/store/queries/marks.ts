import { and, count, eq, gte } from 'drizzle-orm';
import type { MarkName, MarkReader, MarkWriter } from '../../orchestrator/model/marks.ts';
import type {
  InstallationReader,
  InstallationWriter,
  LossReader,
  LossWriter,
} from '../../orchestrator/model/store.ts';
import type { Connection } from './connection.ts';
import { prepared } from './prepared.ts';
import { upsert } from './rows.ts';

const markByName = prepared(({ db, marks }: Connection, { name }: { name: MarkName }) =>
  db.select().from(marks).where(eq(marks.name, name)),
);

// In a transaction, each of these reads locks its name until the end, so that decisions based on it stay valid.

export function markReader(connection: Connection): MarkReader {
  return {
    get: async (name) => {
      await connection.locking.name(`mark ${name}`);
      const [mark] = await markByName(connection, { name });
      return mark?.at ?? null;
    },
  };
}

export function markWriter(connection: Connection): MarkWriter {
  const { db, marks } = connection;
  return {
    ...markReader(connection),
    put: (name, at) => upsert(connection, marks, ['name'], { name, at }),
    remove: async (name) => (await db.delete(marks).where(eq(marks.name, name)).returning())[0]?.at ?? null,
  };
}

export function installationReader({ db, installation, locking }: Connection): InstallationReader {
  return {
    get: async () => {
      await locking.name('installation');
      const { id, platform } = installation;
      return (await db.select({ id, platform }).from(installation))[0] ?? null;
    },
  };
}

export function installationWriter(connection: Connection): InstallationWriter {
  const { installation } = connection;
  return {
    ...installationReader(connection),
    put: (values) => upsert(connection, installation, ['only'], { only: 1, ...values }),
  };
}

export function lossReader({ db, instances, losses, locking }: Connection): LossReader {
  return {
    includes: async (instanceId) =>
      (await db.select().from(losses).where(eq(losses.instanceId, instanceId))).length > 0,
    countSince: async (time, { platform, host }) => {
      await locking.name('losses');
      const isThere = host === undefined ? undefined : eq(instances.host, host);
      const [found] = await db
        .select({ count: count() })
        .from(losses)
        .innerJoin(instances, eq(instances.id, losses.instanceId))
        .where(and(gte(losses.at, time), eq(instances.platform, platform), isThere));
      return found?.count ?? 0;
    },
  };
}

export function lossWriter(connection: Connection): LossWriter {
  const { losses } = connection;
  return {
    ...lossReader(connection),
    add: (loss) => upsert(connection, losses, ['instanceId'], loss),
  };
}
