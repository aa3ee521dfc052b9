import { afterEach, expect, it } from 'vitest';
import { createSandbox } from '../../compose/sandbox.ts';

const zone = process.env['TZ'];
afterEach(() => {
  if (zone === undefined) delete process.env['TZ'];
  else process.env['TZ'] = zone;
});

/** The journal of a small life, as bytes. */
async function history(seed: number): Promise<string> {
  await using sandbox = await createSandbox({ seed, marketplace: true, providers: ['a', 'b'] });
  const { apiKey = '', baseUrl = '' } = sandbox.defaultAccount.marketplace ?? {};
  const send = async (method: string, path: string, body?: object) => {
    const reply = await sandbox.fetch(`${baseUrl}${path}`, {
      method,
      headers: { Authorization: `Bearer ${apiKey}`, 'Content-Type': 'application/json' },
      ...(body !== undefined && { body: JSON.stringify(body) }),
    });
    return (await reply.json()) as { id: string };
  };
  const { id } = await send('POST', '/deployments', {
    ...{ provider: 'provider-a', offerId: 'a-cpu-8x32', gpuCount: 0, region: 'us-dallas' },
    operatingSystem: 'ubuntu-24.04',
    ssh_public_key:
      'ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIKjItPiOeL00NyJ28Ghk86GWpCoScix4tTl/A/EOqSmM scenario@example.com',
  });
  await sandbox.clock.advance(90_000);
  await send('GET', `/deployments/${id}`);
  await send('DELETE', `/deployments/${id}`);
  await sandbox.clock.advance(30_000);
  return JSON.stringify(await sandbox.control.journal.entries());
}

it('the same seed gives the same journal, byte for byte: again, beside others, and in another time zone [sandbox-same-journal]', async () => {
  process.env['TZ'] = 'UTC';
  const first = await history(42);
  expect(JSON.parse(first).length).toBeGreaterThan(10);
  const beside = await Promise.all([history(42), history(43), history(42)]);
  expect([beside[0], beside[2]]).toEqual([first, first]);
  expect(beside[1]).not.toBe(first);
  process.env['TZ'] = 'Pacific/Chatham';
  expect(await history(42)).toBe(first);
});
