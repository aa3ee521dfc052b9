import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, it, onTestFinished } from 'vitest';
import { packageRoot } from '../../config/package-root.ts';
import { serveSandbox } from './serve.ts';

it('loads a scenario file, and has run its steps when it is ready [sandbox-scenario-at-start]', async () => {
  const scenario = join(packageRoot(), 'fixtures/scenarios/stopped.yaml');
  const options = { scenario, clock: 'virtual' as const };
  const { sandbox, stop } = await serveSandbox(options, { host: '127.0.0.1', port: 0 });
  const { baseUrl, apiKey } = sandbox.provider('d');
  const response = await fetch(`${baseUrl}/instances`, { headers: { authorization: `Bearer ${apiKey}` } });
  expect(await response.json()).toMatchObject({ instances: [{ status: 'STOPPED' }] });
  await stop();
});

it('serves HTTPS, and writes the certificate of its CA to a file', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'berth-sandbox-'));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  const caFile = join(folder, 'ca.pem');
  const { origin, controlOrigin, sandbox, stop } = await serveSandbox({}, { port: 0, caFile });
  expect([origin, controlOrigin].map((url) => new URL(url).protocol)).toEqual(['https:', 'http:']);
  expect((await sandbox.control.info()).ca).toBe(readFileSync(caFile, 'utf8'));
  await stop();
  await expect(serveSandbox({}, { port: 0, caFile: join(folder, 'none', 'ca.pem') })).rejects.toThrow(
    /^--tls .*ca\.pem cannot be written: ENOENT/,
  );
});
