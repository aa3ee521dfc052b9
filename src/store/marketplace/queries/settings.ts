import { eq } from 'drizzle-orm';
import type { SettingReader, SettingWriter } from '../../../marketplace/model/store.ts';
import { often } from '../../queries/often.ts';
import type { Connection } from './connection.ts';

export function settingReader(connection: Connection): SettingReader {
  const {
    db,
    tables: { settings },
  } = connection;
  return {
    get: async (name) => {
      const [setting] = await often(connection, 'setting', { name }, (values) =>
        db.select().from(settings).where(eq(settings.name, values.name)),
      );
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
