import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { TestUser } from '../support/marketplace.ts';
import { type OperatedMarket, startOperatedMarket } from './operated-market.fixture.ts';

let operated: OperatedMarket;
let kim: TestUser;
beforeEach(async () => {
  operated = await startOperatedMarket();
  kim = await operated.market.addUser('kim@example.com');
});
afterEach(() => operated[Symbol.asyncDispose]());

const order = { dry_run: false, reason: 'it attacks others' };

describe("an operator's order about a deployment", () => {
  it('shows its effect first, then terminates it before its minimum runtime, with mail and audit', async () => {
    const { market, ask, clock } = operated;
    const id = await operated.deployRunning(kim);
    expect((await ask(`/deployments/${id}/terminate`, {})).body).toMatchObject({
      id,
      owner: kim.email,
      status: 'running',
      done: false,
    });
    expect(await operated.statusOf(id)).toBe('running');
    expect((await ask(`/deployments/${id}/terminate`, { dry_run: false })).status).toBe(400);
    expect((await ask(`/deployments/${id}/terminate`, order)).body).toMatchObject({ done: true });
    expect(await operated.newestAudit()).toMatchObject({
      actor: 'mara',
      action: 'deployment.terminate',
      subject: id,
      detail: { reason: 'it attacks others' },
    });
    const ended = await market.store.read.deployments.byId(id);
    expect(ended).toMatchObject({ status: 'terminated', stoppedAt: clock.now() });
    await clock.advance(30_000);
    expect(market.sent).toMatchObject([
      { to: kim.email, text: expect.stringContaining('Reason: it attacks others') },
    ]);
    expect((await market.store.read.deployments.byId(id))?.cleanup).toBe('done');
    expect((await ask(`/deployments/${id}/terminate`, order)).text).toMatch(/is terminated: only what is/);
  });

  it('stops and restarts it as its user could', async () => {
    const { ask, clock, market } = operated;
    const id = await operated.deployRunning(kim);
    await ask(`/deployments/${id}/restart`, order);
    await clock.advance(2_000);
    expect((await market.store.read.deployments.byId(id))?.action).toMatchObject({
      kind: 'restart',
      by: 'mara',
      answer: 'accepted',
    });
    await clock.advance(120_000);
    expect((await ask(`/deployments/${id}/stop`, order)).body).toMatchObject({ done: true });
    // The next change waits for this one.
    expect((await ask(`/deployments/${id}/restart`, order)).text).toMatch(/is being stopped/);
    await clock.advance(60_000);
    expect(await operated.statusOf(id)).toBe('stopped');
    const resumed = await market.request('POST', `/api/deployments/${id}/resume`, { key: kim.key });
    expect(resumed.status).toBe(200);
  });

  it('is refused, also as a dry run, if it cannot be carried out', async () => {
    const { ask } = operated;
    const spot = await operated.deployRunning(kim, { offerId: 'gpu-spot', instanceType: 'SPOT' });
    const deploying = await operated.deploy(kim);
    for (const [path, status, text] of [
      [`/deployments/${spot}/stop`, 400, /stop/],
      [`/deployments/${deploying}/terminate`, 400, /is deploying: only what is running or stopped/],
      [`/deployments/${deploying}/stop`, 400, /Only a running deployment can be stopped/],
      ['/deployments/dep-none/stop', 404, /There is no deployment/],
      ['/volumes/vol-none/delete', 404, /There is no volume/],
    ] as const) {
      const reply = await ask(path, {});
      expect([path, reply.status, reply.text]).toEqual([path, status, expect.stringMatching(text)]);
    }
  });

  it('that the provider refuses is shown with the deployment', async () => {
    const { ask, clock, plain } = operated;
    const id = await operated.deployRunning(kim);
    plain.set(plain.instances.at(-1)?.id ?? '', { status: 'PROVISIONING' });
    expect((await ask(`/deployments/${id}/restart`, order)).status).toBe(200);
    await clock.advance(5_000);
    expect((await ask(`/deployments/${id}`)).body).toMatchObject({
      action: null,
      last_refusal: expect.stringContaining('provider-d'),
    });
  });

  it('is carried out once, if two operators order it at the same time', async () => {
    const { ask, market, clock } = operated;
    const id = await operated.deployRunning(kim);
    const replies = await Promise.all([1, 2].map(() => ask(`/deployments/${id}/terminate`, order)));
    expect(replies.map(({ status }) => status).toSorted()).toEqual([200, 400]);
    await clock.advance(10_000);
    expect(market.sent).toHaveLength(1);
  });
});

describe("an operator's order about a volume", () => {
  it('deletes it with mail and audit, but not while it is attached', async () => {
    const { ask, clock, market, plain } = operated;
    const id = await operated.deployRunning(kim);
    const volume = await operated.makeVolume(kim);
    const attach = { key: kim.key, body: { deploymentId: id } };
    await market.request('POST', `/api/volumes/${volume}/attach`, attach);
    expect((await ask(`/volumes/${volume}/delete`, {})).text).toMatch(/attached to an active deployment/);
    expect((await ask(`/volumes/${volume}/delete`, order)).status).toBe(400);
    await market.request('POST', `/api/volumes/${volume}/detach`, attach);
    expect((await ask(`/volumes/${volume}/delete`, {})).body).toMatchObject({
      done: false,
      owner: kim.email,
    });
    expect((await ask(`/volumes/${volume}/delete`, order)).body).toMatchObject({ id: volume, done: true });
    expect(await operated.newestAudit()).toMatchObject({ action: 'volume.delete', subject: volume });
    await clock.advance(60_000);
    expect((await market.store.read.volumes.byVolumeId(volume))?.status).toBe('deleted');
    expect(plain.volumes).toEqual([]);
    expect(operated.subjects()).toEqual(['Deleted by the operator: data']);
    expect((await ask(`/volumes/${volume}/delete`, {})).text).toMatch(/already deleted/);
  });
});
