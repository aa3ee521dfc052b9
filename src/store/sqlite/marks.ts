import { count, eq, gte } from 'drizzle-orm';
import type {
  InstallationReader,
  InstallationWriter,
  LossReader,
  LossWriter,
  MarkReader,
  MarkWriter,
} from '../../orchestrator/ports/store.ts';
import type { Db } from './db.ts';
import { installation, losses, marks } from './schema.ts';

export function markReader(db: Db): MarkReader {
  return { get: async (name) => db.select().from(marks).where(eq(marks.name, name)).get()?.at ?? null };
}

export function markWriter(db: Db): MarkWriter {
  return {
    ...markReader(db),
    put: async (name, at) =>
      void db
        .insert(marks)
        .values({ name, at })
        .onConflictDoUpdate({ target: marks.name, set: { at } })
        .run(),
    remove: async (name) => db.delete(marks).where(eq(marks.name, name)).returning().get()?.at ?? null,
  };
}

export function installationReader(db: Db): InstallationReader {
  return {
    get: async () =>
      db.select({ id: installation.id, platform: installation.platform }).from(installation).get() ?? null,
  };
}

export function installationWriter(db: Db): InstallationWriter {
  return {
    ...installationReader(db),
    put: async (values) =>
      void db
        .insert(installation)
        .values({ only: 1, ...values })
        .onConflictDoUpdate({ target: installation.only, set: values })
        .run(),
  };
}

export function lossReader(db: Db): LossReader {
  return {
    countSince: async (time) =>
      db.select({ count: count() }).from(losses).where(gte(losses.at, time)).get()?.count ?? 0,
  };
}

export function lossWriter(db: Db): LossWriter {
  return {
    ...lossReader(db),
    add: async (loss) =>
      void db
        .insert(losses)
        .values(loss)
        .onConflictDoUpdate({ target: losses.instanceId, set: { at: loss.at } })
        .run(),
  };
}
