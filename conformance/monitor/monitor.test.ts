import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import type { Transport } from '../http/transport.ts';
import {
  BUDGET_USD,
  configOf,
  failing,
  spendByDay,
  untilRented,
  watchFor,
  worldOf,
} from './month.fixture.ts';
import { dayOf, MS_PER_DAY } from './spending.ts';

const HOUR_MS = 3_600_000;
const often = configOf({ reads: { mean_hours: 2 } });

describe('restarts', () => {
  it('a machine that a monitor left is destroyed at the next start, and its cost counts', async () => {
    const { world, clock, reference, start } = worldOf();
    const first = await start();
    await untilRented(world);
    expect(await first.abandon()).toBe(1);
    await clock.sleep(2 * HOUR_MS);
    const second = await start();
    await clock.sleep(HOUR_MS / 4);
    expect(reference.left()).not.toContain('i-00001');
    const [spent = 0] = [...second.monitor.state().spentToday.values()];
    const real = spendByDay(reference, clock.wall());
    const today = real.get(dayOf(clock.wall())) ?? 0;
    expect(today).toBeGreaterThan(0);
    expect(spent).toBeGreaterThanOrEqual(today - 0.0001);
    expect(spent).toBeLessThanOrEqual(BUDGET_USD * 2);
    await second.stop();
  });

  it('a second monitor on one state is refused, until the first has ended', async () => {
    const { world, reference, start } = worldOf();
    const first = await start();
    await untilRented(world);
    await expect((await start()).stop()).rejects.toThrow(/cannot be held .*: end the other monitor/);
    expect(await first.stop()).toBe(0);
    const second = await start();
    await world.days(0.5);
    expect(second.monitor.certificates()[0]?.probes.reads).toBeGreaterThan(0);
    expect(await second.stop()).toBe(0);
    expect(reference.left()).toEqual([]);
  });

  it('a stop destroys the machine first', async () => {
    const { world, reference, start } = worldOf();
    const running = await start();
    await untilRented(world);
    expect(await running.stop()).toBe(0);
    expect(reference.left()).toEqual([]);
  });
});

it('a provider that never answers is not certified, and holds nothing up', async () => {
  const { world, start } = worldOf({
    network: (usual, clock): Transport => ({
      ...usual,
      async send(_request, { timeoutMs, signal }) {
        await clock.sleep(timeoutMs, signal).catch(() => {});
        return signal?.aborted === true
          ? { failure: 'interrupted', message: 'it was interrupted', totalMs: timeoutMs }
          : { failure: 'timeout', message: `No answer within ${timeoutMs} ms.`, totalMs: timeoutMs };
      },
    }),
  });
  const { monitor, stop } = await start({ config: often });
  await world.days(3);
  const [certificate] = monitor.certificates();
  expect(certificate?.status).toBe('revoked');
  expect(certificate?.answered).toMatchObject({ good: 0, share: 0 });
  expect(await stop()).toBe(0);
});

it('while probes cannot be stored the published certificate is withheld', async () => {
  const { world, clock, folder, start } = worldOf();
  let isFull = false;
  const state = failing(await world.openState(), (method) =>
    isFull && method === 'addProbe' ? 'the disk is full' : undefined,
  );
  const config = { ...often, enough: { days: 0, reads: 1, machines: 0 }, publish_dir: `${folder}/published` };
  const { stop } = await start({ state, config, budgetUsd: 0.01 });
  const published = () => JSON.parse(readFileSync(`${folder}/published/providers/provider.json`, 'utf8'));
  await clock.sleep(MS_PER_DAY);
  expect(published()).toMatchObject({ status: 'certified' });
  isFull = true;
  await clock.sleep(3 * MS_PER_DAY);
  expect(published()).toMatchObject({
    status: 'not enough',
    because: [expect.stringMatching(/^the last probe was on /)],
  });
  await stop();
});

it('a budget of one cent buys nothing, says so once a day, and still reads', async () => {
  const { certificate, alerts, spent } = await watchFor(2, { id: 'provider' }, { budgetUsd: 0.01 });
  expect(spent.size).toBe(0);
  expect(certificate.probes.reads).toBeGreaterThan(3);
  const said = alerts.filter(({ kind }) => kind === 'cannot buy');
  expect(said.length).toBeGreaterThan(0);
  expect(said.length).toBeLessThanOrEqual(3);
  expect(said[0]?.text).toMatch(/the cheapest offer is cpu-small for \$0\.02 an hour, .*\$0\.01 is left/);
});

it('a machine whose price is raised while it runs is ended early, and nothing more is bought that day', async () => {
  const { certificate, spent, running } = await watchFor(3, {
    id: 'provider',
    behave: (rules, clock) => ({
      ...rules,
      pricePerHour: (instance) =>
        rules.pricePerHour(instance) * (clock.wall() - instance.createdAtMs > 10 * 60_000 ? 20 : 1),
    }),
  });
  expect(running).toEqual([]);
  expect(certificate.probes.machines).toBeLessThanOrEqual(4);
  expect(certificate.priced.good).toBe(0);
  // The reference books the first price: 0.02 an hour, for less than half an hour.
  expect(Math.max(...spent.values())).toBeLessThan(0.02);
});

it('instances of others with names like those of the monitor are left alone', async () => {
  const { world, clock, reference, start } = worldOf();
  const running = await start();
  await untilRented(world);
  const { baseUrl, apiKeys } = reference.options;
  const headers = { authorization: `Bearer ${apiKeys[0]}` };
  const limits = { timeoutMs: 30_000, maxBodyBytes: 1_000_000 };
  const list = await reference.transport.send(
    { method: 'GET', url: `${baseUrl}/instances`, headers },
    limits,
  );
  const own = 'body' in list ? String(JSON.parse(list.body).instances[0].name) : '';
  const created = await reference.transport.send(
    {
      method: 'POST',
      url: `${baseUrl}/instances`,
      headers: { ...headers, 'content-type': 'application/json' },
      body: JSON.stringify({
        configuration_id: 'cpu-small',
        region: 'eu-north',
        ssh_keys: [reference.ssh.newKeyPair('other').publicKey],
        name: `${own.slice(0, -8)}00000000`,
      }),
    },
    limits,
  );
  const id = 'body' in created ? String(JSON.parse(created.body).id) : '';
  await clock.sleep(MS_PER_DAY);
  await running.stop();
  expect(reference.left()).toEqual([id]);
});
