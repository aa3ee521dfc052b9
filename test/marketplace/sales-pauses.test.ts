import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { OfferPage } from '../../src/marketplace/contract/offer.ts';
import { newPublicKey } from '../support/doubles/ssh-keys.ts';
import { creating, type OperatedMarket, startOperatedMarket, storing } from './operated-market.fixture.ts';

let operated: OperatedMarket;
beforeEach(async () => {
  operated = await startOperatedMarket();
});
afterEach(() => operated[Symbol.asyncDispose]());

const pause = (body: object = {}) =>
  operated.ask('/providers/provider-d/sales/pause', { dry_run: false, reason: 'a fire', ...body });
const resume = (body: object = {}) =>
  operated.ask('/providers/provider-d/sales/resume', { dry_run: false, ...body });
const order = (body: object = {}) =>
  operated.market.request('POST', '/api/deployments', {
    body: { ...creating, ssh_public_key: newPublicKey(), ...body },
  });
const store = () => operated.market.request('POST', '/api/volumes', { body: storing });

async function listed(path = '/api/gpu-offers?limit=50') {
  const { body } = await operated.market.request<OfferPage>('GET', path);
  return {
    offers: body.data.flatMap(({ offers }) => offers.map(({ offerId }) => offerId)).toSorted(),
    inStock: body.data.reduce((sum, { totalAvailable }) => sum + totalAvailable, 0),
  };
}

describe('while the sales of a provider are paused', () => {
  it('nothing of it is listed or counted, and orders and new volumes are refused with the reason', async () => {
    const before = await listed();
    expect((await operated.ask('/providers/provider-d/sales/pause', {})).body).toMatchObject({ done: false });
    expect(await listed()).toEqual(before);
    expect((await pause({ reason: undefined })).status).toBe(400);
    expect((await pause()).body).toMatchObject({ provider: 'provider-d', region: null, done: true });
    expect(await operated.newestAudit()).toMatchObject({
      action: 'sales.pause',
      subject: 'provider-d',
      detail: { reason: 'a fire' },
    });
    expect(await listed()).toEqual({ offers: [], inStock: 0 });
    // Sold-out offers are listed here too.
    expect(await listed('/api/gpu-offers-with-reserved')).toEqual({ ...before, inStock: 0 });
    for (const reply of [await order(), await store()])
      expect(reply).toMatchObject({
        status: 400,
        body: {
          error: 'provider: sales of provider-d are paused: a fire',
          details: { reason: 'sales_paused' },
        },
      });
    expect((await operated.market.request('GET', '/api/volumes/regions?provider=provider-d')).body).toEqual({
      hasAnyOffers: false,
      regions: [],
    });
    expect((await resume()).body).toMatchObject({ done: true });
    expect(await listed()).toEqual(before);
    expect([(await order()).status, (await store()).status]).toEqual([201, 201]);
    expect((await resume()).status).toBe(404);
  });

  it('what runs goes on, starts again and is billed, and what was ordered before is delivered', async () => {
    const { market, clock } = operated;
    const id = await operated.deployRunning();
    const ordered = await operated.deploy();
    await pause();
    expect((await market.request('POST', `/api/deployments/${id}/pause`)).status).toBe(200);
    // 504: it was sent, and the machine boots.
    expect((await market.request('POST', `/api/deployments/${id}/resume`)).status).toBe(504);
    await clock.advance(60_000);
    expect(await operated.statusOf(id)).toBe('running');
    expect(await operated.statusOf(ordered)).toBe('running');
    const open = await market.store.read.ledger.openSegmentsOfTeam(market.user.teamId);
    expect(open.map(({ segment }) => segment.subjectId).toSorted()).toEqual([id, ordered].toSorted());
  });
});

it('a pause covers only its offer or its region, and ends by itself', async () => {
  const { ask, clock } = operated;
  const before = await listed();
  const until = new Date(clock.now() + 300_000).toISOString();
  expect((await pause({ offer: 'gpu-1', until })).status).toBe(200);
  expect((await listed()).offers).toEqual(before.offers.filter((id) => id !== 'gpu-1'));
  expect((await order()).text).toContain(`sales of gpu-1 in provider-d are paused until ${until}: a fire`);
  expect((await store()).status).toBe(201);
  expect((await pause({ region: 'eu-one', until })).status).toBe(200);
  expect((await order({ offerId: 'gpu-2' })).status).toBe(400);
  expect((await store()).text).toContain('region: sales of eu-one in provider-d are paused');
  expect((await ask('/providers/provider-d/sales/resume', { offer: 'gpu-1' })).text).toMatch(/is sold again/);
  expect((await ask('/sales-pauses')).body['pauses']).toHaveLength(2);
  for (const body of [{ offer: 'none' }, { region: 'none' }])
    expect((await pause(body)).text).toMatch(/has no none/);
  expect((await ask('/providers/none/sales/pause', {})).status).toBe(404);
  expect((await pause({ until: new Date(clock.now()).toISOString() })).status).toBe(400);
  await clock.advance(300_000);
  expect(await listed()).toEqual(before);
  expect((await ask('/sales-pauses')).body['pauses']).toEqual([]);
  expect((await order()).status).toBe(201);
});

it('the end of a pause names the wider and the narrower ones that go on', async () => {
  await pause();
  await pause({ region: 'eu-one' });
  await pause({ offer: 'gpu-1' });
  const planned = async (body: object) =>
    (await operated.ask('/providers/provider-d/sales/resume', body)).body['effect'];
  expect(await planned({})).toBe(
    'provider-d is sold again, except by the pause of gpu-1 in provider-d and of eu-one in provider-d',
  );
  expect(await planned({ region: 'eu-one' })).toBe(
    'eu-one in provider-d is sold again, except by the pause of provider-d and of gpu-1 in provider-d',
  );
});
