import { expect, it } from 'vitest';
import { BerthProcess } from '../support/processes/process.ts';

it('serves providers and the marketplace at one port, and ends cleanly', async () => {
  const flags = ['--port', '0', '--json', '--providers', 'b,d', '--marketplace'];
  await using process = new BerthProcess(['sandbox', ...flags]);
  const line = await process.waitForOutput((stdout) => /^\{.*\}$/m.exec(stdout)?.[0]);
  const { origin, providers, marketplace, control } = JSON.parse(line) as ReadyLine;
  expect(Object.keys(providers)).toEqual(['provider-b', 'provider-d']);
  for (const at of [...Object.values(providers), marketplace, control])
    expect(at.base_url.startsWith(`${origin}/`)).toBe(true);
  for (const provider of Object.values(providers))
    expect((await ask(provider, '/availability')).status).toBe(200);
  expect((await ask(marketplace, '/balance')).body).toMatchObject({ teams: [{ balance: 10_000 }] });
  expect((await ask(control, '/clock')).status).toBe(200);
  expect(await process.end()).toMatchObject({ code: 0, stderr: '' });
});

it('stops when standard input ends, with --stop-with-stdin', async () => {
  await using process = new BerthProcess(['sandbox', '--port', '0', '--json', '--stop-with-stdin']);
  const { code, stdout, stderr } = await process.ended;
  expect([code, stderr]).toEqual([0, '']);
  expect(JSON.parse(stdout)).toHaveProperty('providers');
});

interface ReadyLine {
  origin: string;
  control: { base_url: string; api_key: string };
  providers: Record<string, { base_url: string; api_key: string }>;
  marketplace: { base_url: string; api_key: string };
}

async function ask(at: { base_url: string; api_key: string }, path: string) {
  const reply = await fetch(`${at.base_url}${path}`, { headers: { authorization: `Bearer ${at.api_key}` } });
  return { status: reply.status, body: (await reply.json()) as unknown };
}
