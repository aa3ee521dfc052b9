import { mkdtempSync, rmSync } from 'node:fs';
import { hostname, tmpdir } from 'node:os';
import { join } from 'node:path';
import Database from 'better-sqlite3';
import { expect, it, onTestFinished } from 'vitest';
import { loadConfig } from '../../config/load.ts';
import { serveOrchestrator } from './orchestrator.ts';

it('the audit log has the start and the stop of each server [server-audited]', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'berth-audit-server-'));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  const file = join(folder, 'berth.db');
  const flags = { database: `sqlite:${file}`, port: '0', adminPort: '0', logLevel: 'silent' };
  const { config } = loadConfig({ flags, env: {} });
  const serving = await serveOrchestrator({ config, env: {} });
  await serving.stop();
  const database = new Database(file, { readonly: true });
  onTestFinished(() => void database.close());
  const rows = database.prepare('SELECT action, subject, source, outcome FROM audit ORDER BY id').all();
  const row = { subject: hostname(), source: 'server', outcome: 'done' };
  expect(rows).toEqual([
    { action: 'server.start', ...row },
    { action: 'server.stop', ...row },
  ]);
});
