import { expect, it } from 'vitest';
import { deployment, mail, now, seed, teamId } from '../../../../test/support/rows/marketplace-rows.ts';
import { openTestMarketStore } from '../../../../test/support/rows/stores.ts';
import { audit } from '../../../operator-kit/audit.ts';
import { timeline } from './timeline.ts';

const clock = { now: () => now + 100 };
const ann = { name: 'ann', source: 'api', address: null } as const;

it('shows alarms, actions, deployments and mails of the marketplace by time [market-timeline]', async () => {
  const store = await openTestMarketStore();
  await seed(store);
  await store.transact(async (tx) => {
    await tx.deployments.insert(deployment({ id: 'dep-1', createdAt: now + 10, providerId: 'provider-a' }));
    await tx.mail.insert(
      mail({ id: 'mail-1', kind: 'receipt', dedupeKey: 'a', createdAt: now + 20, to: 'a@b.example' }),
    );
    const silent = {
      kind: 'provider_silent',
      subject: 'provider-a',
      platform: 'provider-a',
      text: 'no answer',
    };
    await tx.alarms.put({
      ...silent,
      since: now + 30,
      lastSeenAt: now + 30,
      acknowledgedBy: null,
      note: null,
    });
    const at = (ms: number) => ({ now: () => now + ms });
    await audit(tx, at(40), ann, { action: 'losses.clean_up', subject: 'dep-1' });
    await audit(tx, at(50), ann, { action: 'credit.book', subject: 'team-9' });
    await tx.alarms.end(silent, now + 60);
  });
  const show = async (filter: Parameters<typeof timeline.read>[1]) => {
    const { entries } = await timeline.read({ store, clock }, filter);
    return entries.map(({ at, event }) => `${Date.parse(at) - now} ${event}`);
  };
  const ofDeployment = ['40 losses.clean_up', '10 deployment created'];
  expect(await show({})).toEqual([
    '60 provider_silent ended',
    '50 credit.book',
    '40 losses.clean_up',
    '30 provider_silent began',
    '20 mail receipt',
    '10 deployment created',
  ]);
  expect(await show({ instance: 'dep-1' })).toEqual(ofDeployment);
  expect(await show({ account: teamId })).toEqual(ofDeployment);
  expect(await show({ provider: 'provider-a' })).toEqual([
    '60 provider_silent ended',
    '40 losses.clean_up',
    '30 provider_silent began',
    '10 deployment created',
  ]);
  expect(await show({ provider: 'provider-b' })).toEqual([]);
  expect(
    await show({ from: new Date(now + 20).toISOString(), to: new Date(now + 30).toISOString() }),
  ).toEqual(['30 provider_silent began', '20 mail receipt']);
});
