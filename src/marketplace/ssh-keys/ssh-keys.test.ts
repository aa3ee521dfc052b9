import { readFileSync } from 'node:fs';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { member, sshKey, team } from '../../../test/support/rows/marketplace-rows.ts';
import { createSshKeySchema, sshKeySchema } from '../contract/ssh-key.ts';
import { caller, type Market, openMarket, publicKey } from '../deployments/market.fixture.ts';
import { createSshKey, deleteSshKey, listSshKeys, readSshKey } from './ssh-keys.ts';

let market: Market;
beforeEach(async () => {
  market = await openMarket();
});
afterEach(() => market.close());

const create = (body: object, by = caller) =>
  createSshKey(market.deps, by, createSshKeySchema.parse({ name: 'laptop', publicKey, ...body }));
const list = async (filter: object = {}, by = caller) =>
  (await listSshKeys(market.deps, by, filter)).map(({ name }) => name);

describe('create', () => {
  it('keeps one authorized_keys line and its fingerprint, for the current team [ssh-key-create]', async () => {
    const key = await create({ publicKey: `  ${publicKey.replaceAll(' ', ' \t ')}\r\n` });
    expect(sshKeySchema.parse(key)).toEqual(key);
    expect(key).toMatchObject({
      userId: 'usr-1',
      teamId: 'team-1',
      name: 'laptop',
      publicKey,
      fingerprint: expect.stringMatching(/^SHA256:/),
      createdAt: new Date(market.clock.now()).toISOString(),
    });
    expect(await readSshKey(market.deps, caller, key.id)).toEqual(key);
  });

  it.each(['sk-ed25519', 'sk-ecdsa-nistp256', 'ecdsa-nistp521', 'rsa-4096'])(
    'accepts %s [ssh-key-accepted]',
    async (file) => {
      const text = readFileSync(
        new URL(`../../../fixtures/ssh-keys/valid/${file}.pub`, import.meta.url),
        'utf8',
      );
      expect((await create({ publicKey: text })).publicKey).toBe(text.trim());
    },
  );

  it('refuses an invalid public key, without repeating it [ssh-key-refused]', async () => {
    const error = await create({ publicKey: 'ssh-ed25519 c2VjcmV0' }).catch((it) => it);
    expect(error).toMatchObject({ code: 'VALIDATION_ERROR', details: { issues: [{ path: 'publicKey' }] } });
    expect(JSON.stringify(error.toBody())).not.toContain('c2VjcmV0');
    expect(await list()).toEqual([]);
  });
});

describe('list', () => {
  beforeEach(async () => {
    await market.store.transact(async (tx) => {
      await tx.teams.insert(team({ id: 'team-3', ownerId: 'usr-2' }));
      for (const userId of ['usr-1', 'usr-2']) await tx.teams.putMember(member({ teamId: 'team-3', userId }));
      const keys = [
        { id: 'ssh-1', name: 'mine' },
        { id: 'ssh-2', name: 'shared', teamId: 'team-3', userId: 'usr-2' },
        { id: 'ssh-3', name: 'hidden', teamId: 'team-2', userId: 'usr-2' },
        { id: 'ssh-4', name: 'temporary', isTemporary: true },
      ];
      let createdAt = market.clock.now();
      for (const key of keys) await tx.sshKeys.insert(sshKey({ ...key, createdAt: createdAt++ }));
    });
  });

  it('shows those of all teams of the caller, the newest first, and no temporary one [ssh-keys-listed]', async () => {
    expect(await list()).toEqual(['shared', 'mine']);
  });

  it('is narrowed by the caller and by a team [ssh-keys-filtered]', async () => {
    expect(await list({ userId: 'usr-1' })).toEqual(['mine']);
    expect(await list({ teamId: 'team-3' })).toEqual(['shared']);
    expect(await list({ teamId: 'team-3', userId: 'usr-1' })).toEqual([]);
  });

  it('reads and deletes only keys of the caller’s teams [ssh-key-read-and-delete]', async () => {
    for (const use of [readSshKey, deleteSshKey]) {
      await expect(use(market.deps, caller, 'ssh-3')).rejects.toMatchObject({ status: 403 });
      await expect(use(market.deps, caller, 'ssh-9')).rejects.toMatchObject({ status: 404 });
    }
    expect(await deleteSshKey(market.deps, caller, 'ssh-1')).toEqual({ success: true });
    await expect(readSshKey(market.deps, caller, 'ssh-1')).rejects.toMatchObject({ status: 404 });
    expect(await list()).toEqual(['shared']);
  });
});
