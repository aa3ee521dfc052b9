import { expect, it } from 'vitest';
import { createSandbox } from '../compose/sandbox/sandbox.ts';

const MINUTE_MS = 60_000;

it('the marketplace shows how much of a volume its provider reports to be used, at most 15 minutes old', async () => {
  await using sandbox = await createSandbox({ providers: ['a'], marketplace: true });
  const { clock, faults } = sandbox;
  const authorization = `Bearer ${sandbox.defaultAccount.marketplace?.apiKey}`;
  const ask = async (path: string, body?: object) => {
    const init = { headers: { authorization, 'content-type': 'application/json' } };
    const sent = body === undefined ? init : { ...init, method: 'POST', body: JSON.stringify(body) };
    return (await sandbox.fetch(`/api/volumes${path}`, sent)).json() as Promise<Record<string, unknown>>;
  };
  const wanted = { name: 'data', sizeInGb: 10, provider: 'provider-a', region: 'us-dallas' };
  const { volumeId } = await ask('', wanted);
  const used = async (afterMinutes: number) => {
    await clock.advance(afterMinutes * MINUTE_MS);
    const one = await ask(`/${volumeId}`);
    const listed = (await ask(''))['volumes'] as Record<string, unknown>[];
    expect(listed.map((volume) => volume['usedCapacityBytes'])).toEqual([one['usedCapacityBytes']]);
    return one['usedCapacityBytes'];
  };
  expect(await used(6)).toBe(0);
  const { volumes } = sandbox.provider('a').platform;
  for (const { spec } of volumes.all()) volumes.use(spec.ref, 4_000_000_000);
  expect(await used(6)).toBe(4_000_000_000);
  await faults.arm('http-500', { route: 'GET /x/volumes/usage', times: 'sticky' });
  expect(await used(8)).toBe(4_000_000_000);
  expect(await used(8)).toBeUndefined();
});
