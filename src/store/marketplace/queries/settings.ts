import { eq } from 'drizzle-orm';
import type { SettingReader, SettingWriter } from '../../../marketplace/ports/store.ts';
import type { Connection } from './connection.ts';

export function settingReader({ db, tables: { settings } }: Connection): SettingReader {
  return {
    get: async (name) => (await db.select().from(settings).where(eq(settings.name, name)))[0]?.value ?? null,
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
