import { asc, eq, lt } from 'drizzle-orm';
import type { CordonReader, CordonWriter } from '../../orchestrator/model/cordon.ts';
import type { Connection } from './connection.ts';
import { prepared, preparedWrite } from './prepared.ts';

const allCordons = prepared(({ db, cordons }: Connection, _values: object) =>
  db.select().from(cordons).orderBy(asc(cordons.since), asc(cordons.id)),
);

const removeEnded = preparedWrite(({ db, cordons }: Connection, { time }: { time: number }) =>
  db.delete(cordons).where(lt(cordons.until, time)),
);

export function cordonReader(connection: Connection): CordonReader {
  return { list: () => allCordons(connection, {}) };
}

export function cordonWriter(connection: Connection): CordonWriter {
  const { db, cordons } = connection;
  return {
    ...cordonReader(connection),
    insert: async (cordon) => void (await db.insert(cordons).values(cordon)),
    remove: async (id) => void (await db.delete(cordons).where(eq(cordons.id, id))),
    removeEndedBefore: (time) => removeEnded(connection, { time }),
  };
}
