import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { setMember } from '../../src/marketplace/teams/members.ts';
import { setMemberRights } from '../../src/marketplace/teams/teams.ts';
import { changeUser } from '../../src/marketplace/teams/users.ts';
import { newPublicKey } from '../support/doubles/ssh-keys.ts';
import type { TestUser } from '../support/marketplace.ts';
import { creating, type OperatedMarket, startOperatedMarket, storing } from './operated-market.fixture.ts';

let operated: OperatedMarket;
let kim: TestUser;
beforeEach(async () => {
  operated = await startOperatedMarket({ options: { minimumRuntimeMinutes: 0 } });
  kim = await operated.market.addUser('kim@example.com');
});
afterEach(() => operated[Symbol.asyncDispose]());

const order = { dry_run: false, reason: 'stolen cards' };
const ROUND_MS = 60_000;

describe('a suspended user', () => {
  it('is refused with the reason, except reads, terminate, detach and delete', async () => {
    const { market, ask } = operated;
    const [one, two] = [await operated.deployRunning(kim), await operated.deployRunning(kim)];
    const volume = await operated.makeVolume(kim);
    const spare = await operated.makeVolume(kim);
    const by = { key: kim.key };
    const attach = { ...by, body: { deploymentId: one } };
    await market.request('POST', `/api/volumes/${volume}/attach`, attach);
    const sshKey = await market.request('POST', '/api/ssh-keys', {
      ...by,
      body: { name: 'k', publicKey: newPublicKey() },
    });
    expect((await ask(`/users/${kim.email}/suspend`, order)).body).toMatchObject({
      deployments: 2,
      done: true,
    });
    const changes: [string, string, object?][] = [
      ['POST', '/api/deployments', { ...creating, ssh_public_key: newPublicKey() }],
      ['POST', '/api/volumes', storing],
      ['POST', '/api/ssh-keys', { name: 'n', publicKey: newPublicKey() }],
      ['PATCH', `/api/deployments/${one}`, { name: 'new' }],
      ['POST', `/api/deployments/${one}/pause`],
      ['POST', `/api/deployments/${one}/resume`],
      ['POST', `/api/deployments/${one}/restart`],
      ['PATCH', `/api/volumes/${volume}`, { name: 'new' }],
      ['POST', `/api/volumes/${volume}/attach`, { deploymentId: two }],
    ];
    for (const [method, path, body] of changes) {
      const reply = await market.request(method, path, { ...by, body });
      expect([method, path, reply.status, reply.body['code'], reply.text]).toEqual([
        method,
        path,
        403,
        'FORBIDDEN',
        expect.stringContaining('Your account is suspended: stolen cards.'),
      ]);
    }
    const allowed: [string, string, object?][] = [
      ['GET', '/api/deployments'],
      ['GET', `/api/deployments/${one}/can-terminate`],
      ['GET', `/api/volumes/${volume}`],
      ['GET', '/api/balance'],
      ['GET', '/api/gpu-offers'],
      ['POST', `/api/volumes/${volume}/detach`, { deploymentId: one }],
      ['DELETE', `/api/volumes/${spare}`],
      ['DELETE', `/api/ssh-keys/${sshKey.body['id']}`],
      ['DELETE', `/api/deployments/${one}`],
    ];
    for (const [method, path, body] of allowed)
      expect([path, (await market.request(method, path, { ...by, body })).status]).toEqual([path, 200]);
    expect((await market.request('GET', '/api/providers', { key: null })).status).toBe(200);
    expect(await operated.statusOf(two)).toBe('running');
  });

  it('is mailed, audited, listed, and works again once restored', async () => {
    const { market, ask, clock } = operated;
    expect((await ask(`/users/${kim.email}/suspend`, { dry_run: false })).status).toBe(400);
    expect(await operated.newestAudit()).toMatchObject({ action: 'user.suspend', outcome: 'refused' });
    expect((await ask(`/users/${kim.email}/suspend`, {})).body).toMatchObject({
      done: false,
      suspended: false,
    });
    expect((await ask(`/users/${kim.email}/restore`, { dry_run: false })).status).toBe(400);
    await ask(`/users/${kim.email}/suspend`, order);
    expect(await operated.newestAudit()).toMatchObject({
      actor: 'mara',
      action: 'user.suspend',
      subject: kim.userId,
      detail: { running: 'keep', reason: 'stolen cards' },
    });
    expect((await ask(`/teams/${kim.teamId}`)).body).toMatchObject({
      suspended: null,
      members: [{ email: kim.email, suspended: 'stolen cards' }],
    });
    await clock.advance(10_000);
    await ask(`/users/${kim.email}/restore`, { dry_run: false });
    await clock.advance(10_000);
    expect(operated.subjects()).toEqual(['Suspended: kim@example.com', 'Restored: kim@example.com']);
    const key = { name: 'n', publicKey: newPublicKey() };
    expect((await market.request('POST', '/api/ssh-keys', { key: kim.key, body: key })).status).toBe(201);
  });

  it('has what runs stopped, also what runs only later; what cannot be stopped goes on', async () => {
    const { ask, clock } = operated;
    const running = await operated.deployRunning(kim);
    const spot = await operated.deployRunning(kim, { offerId: 'gpu-spot', instanceType: 'SPOT' });
    const deploying = await operated.deploy(kim);
    const others = await operated.deployRunning();
    await ask(`/users/${kim.email}/suspend`, { ...order, running: 'stop' });
    await clock.advance(2 * ROUND_MS);
    for (const [id, status] of [
      [running, 'stopped'],
      [deploying, 'stopped'],
      [spot, 'running'],
      [others, 'running'],
    ] as const)
      expect([id, await operated.statusOf(id)]).toEqual([id, status]);
    await ask(`/users/${kim.email}/restore`, { dry_run: false });
    await clock.advance(ROUND_MS);
    expect(await operated.statusOf(running)).toBe('stopped');
  });

  it('has what runs and what is stopped ended, and its machines deleted', async () => {
    const { market, ask, clock } = operated;
    const stopped = await operated.deployRunning(kim);
    await market.request('POST', `/api/deployments/${stopped}/pause`, { key: kim.key });
    const running = await operated.deployRunning(kim);
    await ask(`/users/${kim.email}/suspend`, { ...order, running: 'end' });
    await clock.advance(ROUND_MS);
    expect([await operated.statusOf(stopped), await operated.statusOf(running)]).toEqual([
      'terminated',
      'terminated',
    ]);
    await clock.advance(ROUND_MS);
    expect((await market.store.read.deployments.byId(running))?.cleanup).toBe('done');
  });

  it('is not restored by a change of their settings at the same moment', async () => {
    const { ask, market } = operated;
    await Promise.all([
      ask(`/users/${kim.email}/suspend`, order),
      changeUser(market, kim.email, { name: 'Kim' }),
    ]);
    expect(await market.store.read.users.byId(kim.userId)).toMatchObject({
      name: 'Kim',
      suspension: { reason: 'stolen cards', by: 'mara' },
    });
  });
});

describe('a suspended team', () => {
  it('is refused to every member; their other teams go on', async () => {
    const { market, ask, clock } = operated;
    await setMember(market, { user: market.user.email, team: kim.teamId, role: 'admin' });
    const id = await operated.deployRunning(kim);
    await ask(`/teams/${kim.teamId}/suspend`, order);
    for (const { key } of [kim, market.user]) {
      const reply = await market.request('POST', `/api/deployments/${id}/restart`, { key });
      expect([reply.status, reply.text]).toEqual([
        403,
        expect.stringContaining('This team is suspended: stolen cards.'),
      ]);
      expect((await market.request('GET', `/api/deployments/${id}`, { key })).status).toBe(200);
    }
    await operated.deploy();
    await clock.advance(10_000);
    expect(market.sent.map(({ to }) => to).toSorted()).toEqual([market.user.email, kim.email]);
    expect((await ask('/teams?q=kim')).body['teams']).toMatchObject([{ suspended: 'stolen cards' }]);
  });
});

describe('a member of a team', () => {
  it('reads all, creates, and changes or ends only their own, unless the team allows all', async () => {
    const { market } = operated;
    await setMember(market, { user: kim.email, team: market.user.teamId, role: 'member' });
    const { teamId } = market.user;
    const theirs = await operated.deployRunning();
    const volume = await operated.makeVolume();
    const mine = await operated.deployRunning(kim, { teamId });
    const by = { key: kim.key };
    const changes: [string, string, object?][] = [
      ['PATCH', `/api/deployments/${theirs}`, { name: 'new' }],
      ['POST', `/api/deployments/${theirs}/pause`],
      ['DELETE', `/api/deployments/${theirs}`],
      ['PATCH', `/api/volumes/${volume}`, { name: 'new' }],
      ['POST', `/api/volumes/${volume}/attach`, { deploymentId: mine }],
      ['DELETE', `/api/volumes/${volume}`],
    ];
    for (const [method, path, body] of changes) {
      const reply = await market.request(method, path, { ...by, body });
      expect([path, reply.status, reply.text]).toEqual([path, 403, expect.stringContaining('"not_own"')]);
    }
    expect((await market.request('GET', `/api/deployments/${theirs}`, by)).status).toBe(200);
    const rename = { ...by, body: { name: 'new' } };
    expect((await market.request('PATCH', `/api/deployments/${mine}`, rename)).status).toBe(200);
    // An owner may change what a member made.
    expect((await market.request('PATCH', `/api/deployments/${mine}`, { body: { name: 'x' } })).status).toBe(
      200,
    );
    await setMemberRights(market, teamId, 'all');
    expect((await market.request('PATCH', `/api/deployments/${theirs}`, rename)).status).toBe(200);
  });
});
