import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Catalog } from '../../src/orchestrator/catalog/catalog.ts';
import { startTestOrchestrator, type TestOrchestrator } from '../support/orchestrator.ts';
import { instanceRequest } from '../support/rows/requests.ts';

interface Offer {
  id: string;
  instance_type: string;
  available: boolean;
  regions: string[];
}
interface OfferList {
  configurations: Offer[];
}

describe('the catalog', () => {
  let orchestrator: TestOrchestrator;
  beforeAll(async () => {
    orchestrator = await startTestOrchestrator();
  });
  afterAll(async () => {
    await orchestrator[Symbol.asyncDispose]();
  });
  const offers = async (path: string) =>
    (await orchestrator.request<OfferList>('GET', path)).body.configurations;

  it('has every offer, deployable or not; /availability only what can be deployed, and where', async () => {
    const all = await offers('/configurations');
    const available = await offers('/availability');
    expect(all.map(({ id }) => id)).toEqual([...orchestrator.catalog.offers.keys()]);
    expect(available.map(({ id }) => id)).toEqual(all.filter((offer) => offer.available).map(({ id }) => id));
    for (const offer of available) {
      expect(offer.available).toBe(true);
      const listed = all.find(({ id }) => id === offer.id);
      expect({ ...offer, regions: null }).toEqual({ ...listed, regions: null });
      for (const region of offer.regions) expect(listed?.regions).toContain(region);
      expect(offer.regions.length).toBeGreaterThan(0);
      expect(offer.regions).not.toContain('ap-singapore');
    }
    expect(all.filter((offer) => !offer.available).length).toBeGreaterThanOrEqual(2);
    expect(all.find(({ id }) => id === 'rtx-pro-6000-1x')).toMatchObject({
      available: false,
      maintenance: true,
    });
    expect(all.some(({ regions }) => regions.includes('ap-singapore'))).toBe(true);
  });

  it('keeps an offer that is sold out, per region and then altogether, and has it back [sold-out-offer-kept]', async () => {
    const { catalog } = orchestrator;
    const few: Catalog = {
      ...catalog,
      offers: new Map(
        [...catalog.offers].map(([id, offer]) => [
          id,
          { ...offer, placements: offer.placements.map((placement) => ({ ...placement, units: 1 })) },
        ]),
      ),
    };
    await using small = await startTestOrchestrator({ catalog: few });
    const find = async (path: string) =>
      (await small.request<OfferList>('GET', path)).body.configurations.find(
        ({ id }) => id === 'h100-sxm-1x',
      );
    const buy = (region: string) =>
      small.request('POST', '/instances', {
        body: instanceRequest({ configuration_id: 'h100-sxm-1x', region }),
      });
    expect((await find('/availability'))?.regions).toEqual(['eu-frankfurt', 'us-ashburn']);
    const { body } = await buy('eu-frankfurt');
    expect((await find('/availability'))?.regions).toEqual(['us-ashburn']);
    expect(await find('/availability?region=eu-frankfurt')).toBeUndefined();
    expect((await find('/configurations'))?.available).toBe(true);
    await buy('us-ashburn');
    expect(await find('/availability')).toBeUndefined();
    expect(await find('/configurations')).toMatchObject({
      available: false,
      regions: ['eu-frankfurt', 'us-ashburn'],
    });
    const refused = await buy('us-ashburn');
    expect([refused.status, refused.body]).toMatchObject([409, { error: { code: 'capacity_unavailable' } }]);
    await small.request('DELETE', `/instances/${body['id']}`);
    await small.waitFor(String(body['id']), 'GONE');
    expect((await find('/availability'))?.regions).toEqual(['eu-frankfurt']);
  });

  it('is filtered by instance_type', async () => {
    for (const type of ['SPOT', 'DEDICATED', 'BARE_METAL', 'CLUSTER']) {
      const found = await offers(`/configurations?instance_type=${type}`);
      expect(found.length).toBeGreaterThan(0);
      expect(new Set(found.map((offer) => offer.instance_type))).toEqual(new Set([type]));
    }
    for (const bad of ['LAPTOP', 'spot', '', 'SPOT,DEDICATED', 'SPOT&instance_type=DEDICATED']) {
      const { status, body } = await orchestrator.request('GET', `/configurations?instance_type=${bad}`);
      expect([status, body]).toMatchObject([
        400,
        { error: { details: { issues: [{ path: 'instance_type' }] } } },
      ]);
    }
  });

  it('is filtered by region; a region that is none gives an empty list', async () => {
    const here = await offers('/availability?region=eu-helsinki');
    expect(here.length).toBeGreaterThan(0);
    for (const offer of here) expect(offer.regions).toContain('eu-helsinki');
    for (const region of ['mars', 'ap-singapore', '', 'hal-hel2-a', 'EU-HELSINKI'])
      expect(await offers(`/availability?region=${region}`)).toEqual([]);
    const { status, body } = await orchestrator.request('GET', '/instances?region=mars');
    expect([status, body]).toEqual([200, { instances: [] }]);
  });

  it('ignores region where ids are unique, whatever it is [region-ignored]', async () => {
    const { body } = await orchestrator.request('POST', '/instances', { body: instanceRequest() });
    const path = `/instances/${body['id']}`;
    for (const query of ['region=eu-frankfurt', 'region=mars', 'region=', 'region=a&region=b', 'other=1'])
      expect([query, (await orchestrator.request('GET', `${path}?${query}`)).status]).toEqual([query, 200]);
    expect((await orchestrator.request('DELETE', `${path}?region=a&region=b`)).status).toBe(200);
  });
});
