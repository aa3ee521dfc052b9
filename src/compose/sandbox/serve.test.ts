import { join } from 'node:path';
import { expect, it } from 'vitest';
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
