import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { newPublicKey } from '../../../test/support/doubles/ssh-keys.ts';
import { startServer } from '../../../test/support/http/wire.ts';
import { startTestOrchestrator } from '../../../test/support/orchestrator.ts';
import { runBerth } from '../../../test/support/processes/process.ts';

it('a process that waits for an instance lives until it is ONLINE [machine-wait]', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'berth-wait-'));
  await using berth = await startTestOrchestrator({ platform: { bootMs: [400, 500] } });
  await using api = await startServer(berth);
  writeFileSync(join(folder, 'account.key'), berth.key);
  writeFileSync(join(folder, 'id.pub'), newPublicKey('me'));
  const options = { cwd: folder, env: { BERTH_CONTEXTS: join(folder, 'contexts.yaml') } };
  const url = `http://127.0.0.1:${api.port}/v1`;
  await runBerth(['context', 'add', 'me', url, '--account-key-file', 'account.key'], options);
  const place = ['--offer', 'h100-sxm-1x', '--region', 'eu-frankfurt', '--key', 'id.pub', '--context', 'me'];
  const { code, stdout } = await runBerth(['instances', 'create', '--wait', '--json', ...place], options);
  expect(code).toBe(0);
  expect(JSON.parse(stdout)).toMatchObject({ status: 'ONLINE', endpoint: { host: '127.0.0.1' } });
  rmSync(folder, { recursive: true });
});
