import { describe, expect, it } from 'vitest';
import type { Configuration } from '../../src/contract/configuration.ts';
import type { BerthExtras } from '../../src/contract/extensions.ts';
import type { Actor } from '../../src/operator-kit/model.ts';
import type { Catalog } from '../../src/orchestrator/catalog/catalog.ts';
import type { ObservedHost } from '../../src/orchestrator/model/inventory.ts';
import type { PlatformDriver } from '../../src/orchestrator/model/platform-driver.ts';
import { cordon, planMaintenance, uncordon } from '../../src/orchestrator/operate/actions/cordons.ts';
import { withOverrides } from '../../src/ports/with-overrides.ts';
import { systemRandom } from '../../src/runtime/system.ts';
import { LISTED_MS, type Plan, startPlainOrchestrator } from '../support/plain-orchestrator.ts';
import { instanceRequest } from '../support/rows/requests.ts';

const actor: Actor = { name: 'ann', source: 'cli', address: null };
/** An offer with three units there, and others elsewhere. */
const scarce = { configuration_id: 'h100-sxm-1x', region: 'eu-frankfurt' };
const UNITS = 3;
/** A count holds for ten minutes. */
const COUNT_IS_OLD_MS = 11 * 60_000;

const answersNothing: Plan = ({ method }) => (method === 'list' ? 'unknown' : 'none');

async function start(options: Parameters<typeof startPlainOrchestrator>[1] = {}) {
  const berth = await startPlainOrchestrator(() => 'none', options);
  const { orchestrator, clock } = berth;
  const { store, catalog } = orchestrator;
  const platforms = new Map([['default', { placesOnHosts: true }]]);
  const deps = { store, clock, random: systemRandom, catalog, platforms };
  const subject = { kind: 'offer', name: scarce.configuration_id } as const;
  const detailsOf = ({ status, body }: { status: number; body: Record<string, unknown> }): unknown =>
    status === 409 ? (body['error'] as { details?: object }).details : status;
  return {
    berth,
    /** `details` of a refused create, or the status of one that was accepted. */
    order: async () => detailsOf(await berth.post('/instances', instanceRequest(scarce))),
    startOf: async (id: string) => detailsOf(await berth.post(`/instances/${id}/start`)),
    /** What the lists say of the offer in the region; undefined: it can be deployed there. */
    shown: async () => {
      const { body } = await orchestrator.request<{ configurations: Configuration[] }>(
        'GET',
        '/configurations',
      );
      const offer = body.configurations.find(({ id }) => id === scarce.configuration_id);
      const berthExtras = offer?.extras?.['berth'] as BerthExtras | undefined;
      return berthExtras?.unavailable?.find(({ region }) => region === scarce.region)?.reason;
    },
    stopped: async () => {
      const id = await berth.create(scarce);
      await berth.passUntil(`/instances/${id}`, 'ONLINE');
      await berth.post(`/instances/${id}/stop`);
      await berth.passUntil(`/instances/${id}`, 'STOPPED');
      return id;
    },
    close: () => cordon.perform(deps, actor, subject),
    maintain: () => planMaintenance.perform(deps, actor, subject),
    open: () => uncordon.perform(deps, actor, subject),
  };
}

function refused(reason: string) {
  return { ...scarce, reason };
}

describe('the reason of a 409 capacity_unavailable', () => {
  it('is sold_out where all units are taken, for a start too [unavailable-sold-out]', async () => {
    const { berth, order, startOf, shown, stopped } = await start();
    await using _ = berth;
    const id = await stopped();
    expect(await shown()).toBeUndefined();
    for (let count = 0; count < UNITS; count++) await berth.create(scarce);
    expect([await shown(), await order(), await startOf(id)]).toEqual([
      'sold_out',
      refused('sold_out'),
      refused('sold_out'),
    ]);
  });

  it('is platform_silent while the platform does not answer and units are left, and sold_out where none is [unavailable-silent]', async () => {
    const { berth, order, startOf, shown, stopped } = await start();
    await using _ = berth;
    const id = await stopped();
    berth.setPlan(answersNothing);
    await berth.clock.advance(LISTED_MS);
    expect([await shown(), await order(), await startOf(id)]).toEqual([
      'platform_silent',
      refused('platform_silent'),
      refused('platform_silent'),
    ]);
    berth.setPlan(() => 'none');
    await berth.clock.advance(LISTED_MS);
    for (let count = 0; count < UNITS; count++) await berth.create(scarce);
    berth.setPlan(answersNothing);
    await berth.clock.advance(LISTED_MS);
    expect([await shown(), await order()]).toEqual(['sold_out', refused('sold_out')]);
  });

  it('is platform_silent where a host that may have room does not answer the count, or the count is old [unavailable-silent-host]', async () => {
    const none = { offerId: scarce.configuration_id, datacenter: 'hal-fra1-b', units: 0 };
    const host: ObservedHost = { host: 'n1', state: 'open' };
    let isCounted = true;
    const wrapDriver = (driver: PlatformDriver): PlatformDriver =>
      withOverrides(driver, {
        inventory: async () =>
          isCounted
            ? { answer: 'counted', free: [none], hosts: [host] }
            : { answer: 'unknown', reason: 'it does not answer' },
      });
    const { berth, order, shown } = await start({ wrapDriver });
    await using _ = berth;
    expect([await shown(), await order()]).toEqual(['sold_out', refused('sold_out')]);
    host.state = 'silent';
    await berth.clock.advance(LISTED_MS);
    expect([await shown(), await order()]).toEqual(['platform_silent', refused('platform_silent')]);
    host.state = 'open';
    await berth.clock.advance(LISTED_MS);
    expect(await shown()).toBe('sold_out');
    isCounted = false;
    await berth.clock.advance(COUNT_IS_OLD_MS);
    expect([await shown(), await order()]).toEqual(['platform_silent', refused('platform_silent')]);
  });

  it('is maintenance or withheld where the operator closed the offer, silent or not [unavailable-closed]', async () => {
    const { berth, order, startOf, shown, stopped, close, maintain, open } = await start();
    await using _ = berth;
    const id = await stopped();
    await close();
    expect([await shown(), await order(), await startOf(id)]).toEqual([
      'withheld',
      refused('withheld'),
      refused('withheld'),
    ]);
    await open();
    await maintain();
    expect([await shown(), await order()]).toEqual(['maintenance', refused('maintenance')]);
    berth.setPlan(answersNothing);
    await berth.clock.advance(LISTED_MS);
    expect([await shown(), await order()]).toEqual(['maintenance', refused('maintenance')]);
  });

  it('is withheld where the catalog drains the region', async () => {
    const { berth, order, shown } = await start({ changeCatalog: drained });
    await using _ = berth;
    expect([await shown(), await order()]).toEqual(['withheld', refused('withheld')]);
  });
});

function drained(catalog: Catalog): Catalog {
  const regions = [...catalog.regions].map(
    ([token, region]) => [token, { ...region, drained: true }] as const,
  );
  return { ...catalog, regions: new Map(regions) };
}
