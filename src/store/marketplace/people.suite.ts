import { beforeEach, describe, expect, it } from 'vitest';
import {
  apiKey,
  discount,
  mail,
  member,
  now,
  sshKey,
  stockAlert,
  team,
  teamId,
  user,
  userId,
} from '../../../test/support/rows/marketplace-rows.ts';
import { Duplicate, type Store, type Transaction } from '../../marketplace/model/store.ts';

/** Users, teams and their keys; mail to them. */
export function describePeople(storeOf: () => Store): void {
  let store: Store;
  beforeEach(() => {
    store = storeOf();
  });
  const write = <T>(body: (tx: Transaction) => Promise<T>): Promise<T> => store.transact(body);

  describe('people', () => {
    it('come back as they were written', async () => {
      const changed = user({ name: 'имя 🚀', createLimit: -1, minimumRuntimeMinutes: 0.5 });
      await write((tx) => tx.users.update(changed));
      expect(await store.read.users.byId(userId)).toEqual(changed);
      expect(await store.read.users.byEmail(changed.email)).toEqual(changed);
      expect(await store.read.users.list()).toEqual([changed]);
      expect(await store.read.teams.bySlug(team().slug)).toEqual(team());
      expect(await store.read.users.byId('nobody')).toBeNull();
    });

    it('have keys that are found by their digest, revoked and marked as used', async () => {
      const record = apiKey({ label: 'ci', expiresAt: now + 5 });
      await write((tx) => tx.keys.insert(record));
      expect(await store.read.keys.byDigest(Buffer.from('another'))).toBeNull();
      await write(async (tx) => {
        await tx.keys.revoke(record.id, now + 1);
        await tx.keys.recordUse(record.id, now + 2);
      });
      const changed = { ...record, revokedAt: now + 1, lastUsedAt: now + 2 };
      expect(await store.read.keys.byDigest(record.digest)).toEqual(changed);
      expect(await store.read.keys.ofUser(userId)).toEqual([changed]);
    });

    it('are members of teams: the owner first, then by when they joined', async () => {
      const joined = { a: now + 3, b: now + 1, c: now + 2 };
      await write(async (tx) => {
        for (const [id, joinedAt] of Object.entries(joined)) {
          await tx.users.insert(user({ id }));
          await tx.teams.putMember(member({ userId: id, role: 'member', joinedAt }));
        }
        await tx.teams.putMember(member({ userId: 'a', role: 'admin', joinedAt: joined.a }));
        await tx.teams.removeMember(teamId, 'c');
        await tx.teams.insert(team({ id: 'older' }));
        await tx.teams.putMember(member({ teamId: 'older', userId: 'a', joinedAt: now }));
      });
      const members = await store.read.teams.members(teamId);
      expect(members.map((one) => `${one.userId} ${one.role}`)).toEqual([
        `${userId} owner`,
        'b member',
        'a admin',
      ]);
      expect((await store.read.teams.membershipsOf('a')).map((one) => one.teamId)).toEqual(['older', teamId]);
      expect(await store.read.teams.member(teamId, 'c')).toBeNull();
    });

    it('may be suspended, as may their teams; both decide what is allowed', async () => {
      const suspension = { at: now, reason: 'it "is" \u2026', by: 'mara', running: 'stop' } as const;
      const standing = { role: 'owner', memberRights: 'own', userSuspension: null, teamSuspension: null };
      expect(await store.read.teams.standing(teamId, userId)).toEqual(standing);
      expect([await store.read.users.suspended(), await store.read.teams.suspended()]).toEqual([[], []]);
      const suspended = [user({ suspension }), team({ suspension, memberRights: 'all' })] as const;
      await write(async (tx) => {
        await tx.users.insert(user({ id: 'other' }));
        await tx.users.update(suspended[0]);
        await tx.teams.update(suspended[1]);
      });
      expect(await store.read.users.suspended()).toEqual([suspended[0]]);
      expect(await store.read.teams.suspended()).toEqual([suspended[1]]);
      expect(await store.read.teams.standing(teamId, userId)).toEqual({
        role: 'owner',
        memberRights: 'all',
        userSuspension: suspension,
        teamSuspension: suspension,
      });
      expect(await store.read.teams.standing(teamId, 'other')).toMatchObject({ role: null });
      expect(await store.read.teams.standing('none', userId)).toBeNull();
      await write(async (tx) => {
        await tx.users.update(user());
        await tx.teams.update(team());
      });
      expect([await store.read.users.suspended(), await store.read.teams.suspended()]).toEqual([[], []]);
    });

    it('have keys of creates, each for as long as it counts', async () => {
      const record = {
        userId,
        key: 'k',
        requestDigest: Buffer.from('d'),
        resourceId: 'dep-1',
        createdAt: now,
      };
      await write((tx) => tx.idempotency.insert(record, 0));
      expect(await store.read.idempotency.find(record, now)).toEqual(record);
      expect(await store.read.idempotency.find(record, now + 1)).toBeNull();
      expect(await store.read.idempotency.find({ userId: 'other', key: 'k' }, 0)).toBeNull();
      await expect(write((tx) => tx.idempotency.insert(record, now))).rejects.toThrow(Duplicate);
      const later = { ...record, createdAt: now + 9 };
      await write((tx) => tx.idempotency.insert(later, now + 1));
      expect(await write((tx) => tx.idempotency.find(record, 0))).toEqual(later);
    });

    it('see pauses of sales, one for each provider, region and offer', async () => {
      const pause = {
        providerId: 'provider-a',
        region: '',
        offerId: '',
        reason: 'fire',
        since: now,
        by: 'mara',
      };
      const ended = { ...pause, region: 'eu-1', until: now + 1 };
      await write(async (tx) => {
        await tx.pauses.put({ ...pause, until: null });
        await tx.pauses.put(ended);
        await tx.pauses.put({ ...pause, reason: 'flood', until: null });
        await tx.pauses.put({ ...pause, offerId: 'gone', until: null });
        await tx.pauses.remove({ ...pause, offerId: 'gone' });
      });
      expect(await store.read.pauses.list()).toEqual([{ ...pause, reason: 'flood', until: null }, ended]);
    });

    it('have discounts, alerts and SSH keys; lists omit temporary keys', async () => {
      await write(async (tx) => {
        await tx.discounts.insert(discount({ id: 'later', startsAt: now + 1 }));
        await tx.discounts.insert(discount({ percentage: 12.5 }));
        await tx.discounts.update(discount({ percentage: 12.5, endsAt: now + 9 }));
        await tx.stockAlerts.insert(stockAlert());
        await tx.stockAlerts.insert(stockAlert({ id: 'gone', region: 'eu-1' }));
        await tx.stockAlerts.update(stockAlert({ wasSoldOut: true }));
        await tx.stockAlerts.remove('gone');
        await tx.sshKeys.insert(sshKey());
        await tx.sshKeys.insert(sshKey({ id: 'new', createdAt: now + 1, name: 'a "b" 12 \u0000' }));
        await tx.sshKeys.insert(sshKey({ id: 'temporary', isTemporary: true }));
        await tx.sshKeys.insert(sshKey({ id: 'removed' }));
        await tx.sshKeys.remove('removed');
      });
      const ended = discount({ percentage: 12.5, endsAt: now + 9 });
      expect(await store.read.discounts.ofTeam(teamId)).toEqual([
        ended,
        discount({ id: 'later', startsAt: now + 1 }),
      ]);
      expect(await store.read.discounts.ofTeams([teamId, 'nobody'])).toEqual([
        ended,
        discount({ id: 'later', startsAt: now + 1 }),
      ]);
      expect(await store.read.discounts.ofTeams(['nobody'])).toEqual([]);
      expect(await store.read.stockAlerts.ofUser(userId)).toEqual([stockAlert({ wasSoldOut: true })]);
      const keys = await store.read.sshKeys.list({ teamIds: [teamId] });
      expect(keys.map(({ id }) => id)).toEqual(['new', 'ssh-1']);
      expect(keys[0]?.name).toBe('a "b" 12 \u0000');
      expect(await store.read.sshKeys.list({ teamIds: [teamId], userId: 'nobody' })).toEqual([]);
      expect(await store.read.sshKeys.list({ teamIds: [] })).toEqual([]);
      expect(await store.read.sshKeys.byId('temporary')).not.toBeNull();
    });
  });

  describe('mail', () => {
    it('is stored once per event, and handed out when due, oldest first', async () => {
      await write(async (tx) => {
        await tx.mail.insert(mail({ id: 'late', dueAt: now + 2, text: '7' }));
        await tx.mail.insert(mail({ id: 'first', dueAt: now - 1 }));
        await tx.mail.insert(mail({ id: 'again', dedupeKey: 'about first', subject: 'other' }));
        await tx.mail.insert(mail({ id: 'sent', sentAt: now }));
        await tx.mail.insert(mail({ id: 'given-up', failedAt: now, lastError: 'no' }));
      });
      const due = async (at: number, limit = 9) => (await store.read.mail.due(at, limit)).map(({ id }) => id);
      expect(await due(now)).toEqual(['first']);
      expect(await due(now + 2)).toEqual(['first', 'late']);
      expect(await due(now + 2, 1)).toEqual(['first']);
      expect(await store.read.mail.waiting()).toEqual({
        count: 2,
        oldestCreatedAt: now,
        nextDueAt: now - 1,
      });
      await write((tx) => tx.mail.update(mail({ id: 'first', sentAt: now, attempts: 1 })));
      expect(await due(now + 1)).toEqual([]);
      expect(await store.read.mail.waiting()).toEqual({
        count: 1,
        oldestCreatedAt: now,
        nextDueAt: now + 2,
      });
      expect(await write((tx) => tx.mail.byId('late'))).toMatchObject({ text: '7' });
      expect(await store.read.mail.list({ to: 'nobody', limit: 9 })).toEqual([]);
      expect(await store.read.mail.list({ limit: 9 })).toHaveLength(4);
    });

    it('is deleted in pages when it is old and was sent or given up', async () => {
      await write(async (tx) => {
        await tx.mail.insert(mail({ id: 'waits', createdAt: now - 9 }));
        await tx.mail.insert(mail({ id: 'second', createdAt: now - 7, sentAt: now }));
        await tx.mail.insert(mail({ id: 'third', createdAt: now - 6, sentAt: now }));
        await tx.mail.insert(mail({ id: 'first', createdAt: now - 8, failedAt: now }));
        await tx.mail.insert(mail({ id: 'new', createdAt: now, sentAt: now }));
      });
      const left = async () => (await store.read.mail.list({ limit: 9 })).map(({ id }) => id);
      expect(await write((tx) => tx.mail.deleteEnded(now, 2))).toBe(2);
      expect(await left()).toEqual(['new', 'third', 'waits']);
      expect(await write((tx) => tx.mail.deleteEnded(now, 2))).toBe(1);
      expect(await write((tx) => tx.mail.deleteEnded(now, 2))).toBe(0);
      expect(await left()).toEqual(['new', 'waits']);
    });
  });
}
