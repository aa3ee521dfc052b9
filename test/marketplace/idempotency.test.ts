import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { newPublicKey } from '../support/doubles/ssh-keys.ts';
import { creating, type OperatedMarket, startOperatedMarket, storing } from './operated-market.fixture.ts';

let operated: OperatedMarket;
beforeEach(async () => {
  operated = await startOperatedMarket({ rateLimits: { creates: 2 } });
});
afterEach(() => operated[Symbol.asyncDispose]());

const DAY_MS = 86_400_000;
const publicKey = newPublicKey();
const bodies = {
  '/api/deployments': { ...creating, ssh_public_key: publicKey },
  '/api/volumes': storing,
  '/api/ssh-keys': { name: 'k', publicKey },
} as const;
type Path = keyof typeof bodies;

const create = (path: Path, key: string, body: object = bodies[path], by?: string) =>
  operated.market.request('POST', path, {
    body,
    headers: { 'Idempotency-Key': key },
    ...(by !== undefined && { key: by }),
  });

const counts = async () => {
  const { read } = operated.market.store;
  const teamIds = [operated.market.user.teamId];
  return {
    deployments: (await read.deployments.list({ teamIds })).length,
    volumes: (await read.volumes.ofTeam(teamIds[0] ?? '')).length,
    keys: (await read.sshKeys.list({ teamIds })).length,
  };
};

describe('a create with an Idempotency-Key', () => {
  it.each(Object.keys(bodies) as Path[])('%s makes one thing, however often it is sent', async (path) => {
    const first = await create(path, 'key-1');
    expect([first.status, first.headers.get('Idempotent-Replayed')]).toEqual([201, null]);
    const made = await counts();
    await operated.clock.advance(60_000);
    const again = await create(path, 'key-1');
    expect([again.status, again.headers.get('Idempotent-Replayed')]).toEqual([201, 'true']);
    expect(again.body['id']).toBe(first.body['id']);
    if (path === '/api/deployments') expect(again.body['status']).toBe('running');
    const other = await create(path, 'key-1', { ...bodies[path], name: 'other' });
    expect(other).toMatchObject({ status: 409, body: { code: 'IDEMPOTENCY_MISMATCH' } });
    expect(await counts()).toEqual(made);
  });

  it.each(Object.keys(bodies) as Path[])('%s sent twice at the same time makes one thing', async (path) => {
    const [one, two] = await Promise.all([create(path, 'key-1'), create(path, 'key-1')]);
    expect([one?.status, two?.status]).toEqual([201, 201]);
    expect(one?.body['id']).toBe(two?.body['id']);
    const replays = [one, two].map((reply) => reply?.headers.get('Idempotent-Replayed'));
    expect(replays.toSorted()).toEqual(['true', null].toSorted());
    // One place of the two is free, whichever request came first.
    if (path === '/api/deployments') expect((await create(path, 'key-2')).status).toBe(201);
  });

  it('is not counted by the limit of creates if it is repeated, also once that is used up', async () => {
    for (const key of ['key-1', 'key-1', 'key-2', 'key-1', 'key-2'])
      expect((await create('/api/deployments', key)).status).toBe(201);
    expect((await create('/api/deployments', 'key-3')).status).toBe(429);
    expect((await create('/api/deployments', 'key-1')).status).toBe(201);
    expect(await counts()).toMatchObject({ deployments: 2 });
  });

  it('is repeated although the same would be refused now', async () => {
    await create('/api/deployments', 'key-1');
    await operated.ask('/providers/provider-d/sales/pause', { dry_run: false, reason: 'fire' });
    expect((await create('/api/deployments', 'key-1')).status).toBe(201);
    expect((await create('/api/deployments', 'key-2')).status).toBe(400);
  });

  it('has a key of its user, for a day', async () => {
    const stranger = await operated.market.addUser('stranger@example.com');
    const first = await create('/api/ssh-keys', 'key-1');
    const theirs = await create('/api/ssh-keys', 'key-1', bodies['/api/ssh-keys'], stranger.key);
    expect([theirs.status, theirs.headers.get('Idempotent-Replayed')]).toEqual([201, null]);
    operated.clock.step(DAY_MS + 1);
    const later = await create('/api/ssh-keys', 'key-1');
    expect(later.status).toBe(201);
    expect(later.body['id']).not.toBe(first.body['id']);
  });

  it('that was refused may be sent again with the same key', async () => {
    const refused = await create('/api/deployments', 'key-1', {
      ...bodies['/api/deployments'],
      region: 'none',
    });
    expect(refused.status).toBe(400);
    expect((await create('/api/deployments', 'key-1')).status).toBe(201);
    expect((await create('/api/deployments', 'two words')).status).toBe(400);
  });
});
