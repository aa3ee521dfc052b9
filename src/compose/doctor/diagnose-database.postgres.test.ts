import { afterAll, beforeAll, expect, it } from 'vitest';
import { type PostgresServer, startPostgres } from '../../../test/support/databases/postgres.ts';
import type { Diagnosis } from '../../ports/diagnosis.ts';
import { systemClock } from '../../runtime/system.ts';
import { diagnoseDatabase } from './diagnose-database.ts';

let server: PostgresServer;
let url: string;
beforeAll(async () => {
  server = await startPostgres();
  url = await server.createDatabase();
});
afterAll(() => server[Symbol.asyncDispose]());

async function examine(aheadMs = 0): Promise<Map<string, Diagnosis>> {
  const findings = new Map<string, Diagnosis>();
  const clock = { now: () => systemClock.now() + aheadMs };
  for await (const finding of diagnoseDatabase(url, clock)) findings.set(finding.subject, finding);
  return findings;
}

it('reports a server that can lose commits as broken, and a durable one as ok', async () => {
  const [setting] = await server.query("SELECT current_setting('fsync') AS fsync", url);
  const found = (await examine()).get('database durability');
  expect(found?.verdict).toBe(setting?.['fsync'] === 'off' ? 'broken' : 'ok');
  if (found?.verdict === 'broken') expect(found.remedy).toContain('fsync = on');
});

it("reports a clock that differs from the database's", async () => {
  expect((await examine()).get('clock')?.verdict).toBe('ok');
  const ahead = (await examine(3_600_000)).get('clock');
  expect(ahead?.verdict).toBe('broken');
  expect(ahead?.finding).toContain("ahead of the database's");
});
