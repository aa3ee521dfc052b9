import { and, desc, eq, inArray, type SQL } from 'drizzle-orm';
import type { SshKeyReader, SshKeyWriter } from '../../../marketplace/model/store.ts';
import type { Connection } from './connection.ts';

export function sshKeyReader({ db, tables: { sshKeys }, locking }: Connection): SshKeyReader {
  return {
    byId: async (id) => (await locking.rows(db.select().from(sshKeys).where(eq(sshKeys.id, id))))[0] ?? null,
    list: async ({ teamIds, userId }) => {
      const conditions: SQL[] = [inArray(sshKeys.teamId, [...teamIds]), eq(sshKeys.isTemporary, false)];
      if (userId !== undefined) conditions.push(eq(sshKeys.userId, userId));
      return db
        .select()
        .from(sshKeys)
        .where(and(...conditions))
        .orderBy(desc(sshKeys.createdAt), desc(sshKeys.id));
    },
  };
}

export function sshKeyWriter(connection: Connection): SshKeyWriter {
  const {
    db,
    tables: { sshKeys },
  } = connection;
  return {
    ...sshKeyReader(connection),
    insert: async (record) => void (await db.insert(sshKeys).values(record)),
    remove: async (id) => void (await db.delete(sshKeys).where(eq(sshKeys.id, id))),
  };
}
