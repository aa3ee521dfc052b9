import { describe, expect, it } from 'vitest';
import { silentLog } from '../support/doubles/log.ts';
import { LISTED_MS, type Plan, startPlainOrchestrator } from '../support/plain-orchestrator.ts';
import { instanceRequest } from '../support/rows/requests.ts';

/** An offer of which the catalog has three units there. */
const scarce = { configuration_id: 'h100-sxm-1x', region: 'eu-frankfurt' };
const MINUTE_MS = 60_000;

async function startWith(
  units: number,
  plan?: Plan,
  options: Parameters<typeof startPlainOrchestrator>[1] = {},
) {
  const place = { offerId: 'h100-sxm-1x', datacenter: 'hal-fra1-b', units };
  const berth = await startPlainOrchestrator(plan, { ...options, room: [place] });
  const { orchestrator } = berth;
  const order = () => orchestrator.request('POST', '/instances', { body: instanceRequest(scarce) });
  return {
    berth,
    place,
    /** The statuses of so many creates at once, in order. */
    orderAtOnce: async (count: number) => {
      const replies = await Promise.all(Array.from({ length: count }, order));
      return replies.map(({ status }) => status).sort();
    },
    isOnSale: async () => {
      const path = '/availability?region=eu-frankfurt';
      const { body } = await orchestrator.request<{ configurations: { id: string }[] }>('GET', path);
      return body.configurations.some(({ id }) => id === scarce.configuration_id);
    },
    metric: async (name: string) => {
      const text = await (await orchestrator.admin.fetch('/metrics')).text();
      return Number(
        text
          .split('\n')
          .find((line) => line.startsWith(name))
          ?.split(' ')
          .at(-1),
      );
    },
  };
}

describe('what the platform has room for', () => {
  it('is all that is sold, however many units the catalog has [inventory-limits-creates]', async () => {
    const { berth, orderAtOnce, isOnSale, metric } = await startWith(2);
    await using _ = berth;
    expect(await isOnSale()).toBe(true);
    expect(await orderAtOnce(5)).toEqual([201, 201, 409, 409, 409]);
    expect(await isOnSale()).toBe(false);
    await berth.clock.advance(LISTED_MS);
    expect(await isOnSale()).toBe(false);
    expect(await metric('berth_platform_units_free{offer="h100-sxm-1x"}')).toBe(0);
    expect(berth.platform.machines.size).toBe(2);
  });

  it('is nothing: the operator reads which limit on which host, in the log once a minute; the client does not [inventory-refusals]', async () => {
    const obstacles = ['kvm-1: it has 11 GB of free disk, but 20 are needed'];
    const warnings: { reason?: string }[] = [];
    const { berth, orderAtOnce } = await startWith(0, undefined, {
      log: { ...silentLog, warn: (fields) => void warnings.push(fields) },
      wrapDriver: (driver) => ({
        ...driver,
        inventory: async () => {
          const count = await driver.inventory?.();
          if (count?.answer !== 'counted') throw new Error('it does not count');
          return { ...count, free: count.free.map((one) => ({ ...one, obstacles })) };
        },
      }),
    });
    await using _ = berth;
    const refused = () => warnings.filter(({ reason }) => reason === 'sold_out');
    expect(await orderAtOnce(3)).toEqual([409, 409, 409]);
    const where = { offer: 'h100-sxm-1x', region: 'eu-frankfurt', platform: 'default' };
    expect(refused()).toMatchObject([{ ...where, claimed: 0, units: 3, platformUnits: 0, obstacles }]);
    await berth.clock.advance(MINUTE_MS);
    const reply = await berth.orchestrator.request('POST', '/instances', { body: instanceRequest(scarce) });
    expect([refused().length, JSON.stringify(reply.body)]).toEqual([2, expect.not.stringContaining('kvm-1')]);
    const operator = await berth.orchestrator.addOperator('ann');
    const { body } = await berth.orchestrator.operate(operator, '/capacity');
    expect(JSON.stringify(body)).toContain(`The catalog has 3. Limits: ${obstacles[0]}.`);
  });

  it('is more than the catalog has: no more than its units are sold', async () => {
    const { berth, orderAtOnce } = await startWith(10);
    await using _ = berth;
    expect(await orderAtOnce(5)).toEqual([201, 201, 201, 409, 409]);
    await berth.clock.advance(LISTED_MS);
    expect(await orderAtOnce(1)).toEqual([409]);
  });

  it('vanishes while a host is cordoned, and returns with it [inventory-cordon]', async () => {
    const { berth, place, orderAtOnce, isOnSale } = await startWith(3);
    await using _ = berth;
    const id = await berth.create(scarce);
    await berth.passUntil(`/instances/${id}`, 'ONLINE');
    place.units = 0;
    await berth.clock.advance(LISTED_MS);
    expect(await isOnSale()).toBe(false);
    expect(await orderAtOnce(2)).toEqual([409, 409]);
    expect((await berth.read(`/instances/${id}`))['status']).toBe('ONLINE');
    place.units = 3;
    await berth.clock.advance(LISTED_MS);
    expect(await isOnSale()).toBe(true);
    expect(await orderAtOnce(3)).toEqual([201, 201, 409]);
  });

  it('is not sold twice while a machine is ordered and not made yet [inventory-in-flight]', async () => {
    const { berth, orderAtOnce } = await startWith(2, ({ method }) =>
      method === 'create' ? 'hang' : 'none',
    );
    await using _ = berth;
    expect(await orderAtOnce(1)).toEqual([201]);
    await berth.clock.advance(LISTED_MS);
    expect(berth.platform.machines.size).toBe(0);
    expect(await orderAtOnce(3)).toEqual([201, 409, 409]);
  });

  it('is not sold twice while a host is silent and a machine, which no host has yet, is ordered [inventory-in-flight-beside-silence]', async () => {
    const { berth, orderAtOnce } = await startWith(1, ({ method }) =>
      method === 'create' ? 'hang' : 'none',
    );
    await using _ = berth;
    const { driver } = berth.platform;
    const { list, inventory } = driver;
    driver.list = async () => {
      const listing = await list.call(driver);
      return listing.answer === 'listed'
        ? { ...listing, hosts: { answered: ['n1'], silent: ['n2'] } }
        : listing;
    };
    // A driver that does not name the machines that it counted.
    driver.inventory = async (avoidHosts) => {
      const counted = await inventory?.call(driver, avoidHosts);
      return counted?.answer === 'counted'
        ? { answer: 'counted', free: counted.free }
        : { answer: 'unknown', reason: 'it does not count' };
    };
    expect(await orderAtOnce(1)).toEqual([201]);
    await berth.clock.advance(LISTED_MS);
    expect(await orderAtOnce(2)).toEqual([409, 409]);
  });

  it('is sold again as soon as an instance of it is gone', async () => {
    const { berth, orderAtOnce } = await startWith(1);
    await using _ = berth;
    const id = await berth.create(scarce);
    await berth.passUntil(`/instances/${id}`, 'ONLINE');
    await berth.clock.advance(LISTED_MS);
    expect(await orderAtOnce(1)).toEqual([409]);
    await berth.orchestrator.request('DELETE', `/instances/${id}`);
    await berth.passUntil(`/instances/${id}`, 'GONE');
    expect(await orderAtOnce(2)).toEqual([201, 409]);
  });

  it('is taken from the last count for ten minutes while the platform cannot count, then it is nothing [inventory-unknown]', async () => {
    const { berth, isOnSale, orderAtOnce, metric } = await startWith(3);
    await using _ = berth;
    berth.setPlan(({ method }) => (method === 'inventory' ? 'unknown' : 'none'));
    await berth.clock.advance(9 * MINUTE_MS);
    expect(await isOnSale()).toBe(true);
    expect(await orderAtOnce(1)).toEqual([201]);
    await berth.clock.advance(2 * MINUTE_MS);
    expect(await isOnSale()).toBe(false);
    expect(await orderAtOnce(1)).toEqual([409]);
    expect(await metric('berth_inventory_age_seconds')).toBeGreaterThan(600);
    berth.setPlan(() => 'none');
    await berth.clock.advance(LISTED_MS);
    expect(await orderAtOnce(1)).toEqual([201]);
    expect(await metric('berth_inventory_age_seconds')).toBeLessThan(60);
  });

  it('sells nothing that it limits before the first count', async () => {
    const { berth, isOnSale } = await startWith(3, ({ method }) =>
      method === 'inventory' ? 'fail-before' : 'none',
    );
    await using _ = berth;
    expect(await isOnSale()).toBe(false);
    berth.setPlan(() => 'none');
    await berth.clock.advance(LISTED_MS);
    expect(await isOnSale()).toBe(true);
  });
});
