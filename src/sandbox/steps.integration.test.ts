import { expect, it } from 'vitest';
import { createSandbox } from '../compose/sandbox/sandbox.ts';

const SSH_KEY =
  'ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIBVvbPHlyOu4Rzn6yIy3N+mIZLDBkd5yTJPYJVgSuSMK test@example.com';
const MINUTE_MS = 60_000;

it('a balance that ends with a step is noticed in it, and so is the end of its grace', async () => {
  await using sandbox = await createSandbox({ providers: ['b'], marketplace: { credit_usd: 0.03 } });
  const { clock, mails } = sandbox;
  const ask = async (path: string, init: RequestInit = {}) => {
    const authorization = `Bearer ${sandbox.defaultAccount.marketplace?.apiKey}`;
    const headers = { authorization, 'content-type': 'application/json' };
    const answer = await sandbox.fetch(`/api/deployments${path}`, { ...init, headers });
    return (await answer.json()) as { id: string; startedAt: string; status: string };
  };
  const offer = { provider: 'provider-b', offerId: 'b-cpu-4x16-spot', gpuCount: 0, region: 'us-ashburn' };
  const image = { operatingSystem: 'ubuntu-24.04', instanceType: 'SPOT', ssh_public_key: SSH_KEY };
  const { id } = await ask('', { method: 'POST', body: JSON.stringify({ ...offer, ...image }) });
  await clock.advance(15 * MINUTE_MS);
  const { startedAt } = await ask(`/${id}`);
  const seen: unknown[] = [];
  for (const minutes of [59, 60, 119, 120]) {
    await clock.advance(Date.parse(startedAt) + minutes * MINUTE_MS - clock.now());
    const isNoticed = mails.some(({ subject }) => subject.includes('used up'));
    seen.push([minutes, isNoticed, (await ask(`/${id}`)).status]);
  }
  expect(seen).toEqual([
    [59, false, 'running'],
    [60, true, 'running'],
    [119, true, 'running'],
    [120, true, 'terminated'],
  ]);
});
