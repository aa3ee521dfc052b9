import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describePlans, type Sent } from '../plans.suite.ts';
import { orchestratorTables } from '../schema/orchestrator.ts';
import { sqlite } from '../schema/sqlite.ts';
import { toConnection } from './connection.ts';
import { openDatabase } from './open-database.ts';

/** Does not match a search in an index, a read of a whole index of live rows, or a statement's temporary table. */
const SCAN =
  /^SCAN (?:instances|volumes|attachments|claims|storage_claims|work|losses|tokens|idempotency)\b(?! USING (?:COVERING )?INDEX \w+_live_)/;

describePlans('the SQLite store', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'berth-plans-'));
  const database = openDatabase(join(folder, 'berth.db'));
  const sent: Sent[] = [];
  const prepare = database.prepare.bind(database);
  const recorded = ((text: string) => {
    sent.push({ text, values: [] });
    return prepare(text);
  }) as typeof database.prepare;
  return {
    bytes: 'blob',
    connect: () => {
      database.prepare = recorded;
      return toConnection(database, orchestratorTables(sqlite));
    },
    run: async (text) => void database.exec(text),
    takeSent: () => sent.splice(0),
    explain: async ({ text }) => {
      const placeholders = text.match(/\?/g)?.length ?? 0;
      const plan = prepare(`EXPLAIN QUERY PLAN ${text}`);
      return (plan.all(Array<null>(placeholders).fill(null)) as { detail: string }[]).map(
        ({ detail }) => detail,
      );
    },
    isScan: (line) => SCAN.test(line),
    close: async () => {
      database.close();
      rmSync(folder, { recursive: true });
    },
  };
});
