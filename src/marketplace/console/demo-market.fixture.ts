import { silentLog } from '../../../test/support/doubles/log.ts';
import {
  deployment,
  mail,
  member,
  runningDeployment,
  segment,
  team,
  user,
} from '../../../test/support/rows/marketplace-rows.ts';
import { FigureRecorder } from '../../operator-kit/figures/recorder.ts';
import { systemRandom } from '../../runtime/system.ts';
import type { FailureReason } from '../contract/deployment.ts';
import { grant, topUp } from '../ledger/credit.ts';
import { verifyLedger } from '../ledger/verify-ledger.ts';
import type { Transaction } from '../model/store.ts';
import { bookCredit } from '../operate/actions.ts';
import { figureSource } from '../operate/figures/source.ts';
import { keepVerdict } from '../operate/views/books.ts';
import type { TestMarketConsole } from './console.fixture.ts';

const HOUR_MS = 3_600_000;
const MINUTE_MS = 60_000;

/** A name that a user may choose. */
export const HOSTILE = `<img src=x onerror=alert(1)><script>alert(2)</script>`;
/** A deployment that tests search by name. Its team is nearly out of money. */
export const TRAINING = { id: 'dep-training', name: 'train-llama', teamId: 'team-lab', slug: 'lab' };

const teams = [
  { id: TRAINING.teamId, slug: TRAINING.slug, name: 'Vision Lab', usd: 600 },
  { id: 'team-acme', slug: 'acme', name: 'Acme Robotics', usd: 5_400 },
  { id: 'team-nimbus', slug: 'nimbus', name: 'Nimbus Render', usd: 940 },
  { id: 'team-north', slug: 'north', name: 'North Genomics', usd: 21_000 },
  { id: 'team-idle', slug: 'idle', name: 'Idle Hands', usd: 50 },
];
const providers = ['provider-a', 'provider-b', 'provider-c'];
const offers = ['h100-sxm-8x', 'h100-sxm-1x', 'a100-80gb-1x', 'l40s-1x', 'cpu-16'];
const rates = [18_400_000, 2_390_000, 1_490_000, 860_000, 310_000];

/** Writes an invented marketplace: five teams at three providers, one of which fails. */
export async function putDemoMarket({ store, clock }: TestMarketConsole): Promise<void> {
  const now = clock.now();
  const deps = { store, clock, random: systemRandom };
  await store.transact(async (tx) => {
    await tx.users.insert(user({ id: 'usr-ann', email: 'ann@lab.example', name: 'Ann' }));
    for (const { usd: _, ...changes } of teams) {
      await tx.teams.insert(team({ ownerId: 'usr-ann', createdAt: now - 900 * HOUR_MS, ...changes }));
      await tx.teams.putMember(member({ teamId: changes.id, userId: 'usr-ann' }));
    }
  });
  for (const { id: teamId, usd } of teams)
    await topUp(deps, { teamId, amountMicroUsd: usd * 1_000_000, reference: `bank-${teamId}` });
  await grant(deps, { teamId: 'team-acme', amountMicroUsd: 250_000_000, reason: 'for the outage of Monday' });
  await store.transact(async (tx) => {
    for (let index = 0; index < 36; index++) await putDeployment(tx, index, now);
    await putRunning(tx, { ...TRAINING, offer: 0, provider: 'provider-a', hours: 5, now });
    await putMails(tx, now);
    for (let index = 0; index < 2; index++)
      await tx.losses.put({
        subjectId: `dep-${30 + index}`,
        kind: 'deployment',
        providerId: 'provider-c',
        at: now - 20 * MINUTE_MS,
        isHeld: true,
      });
  });
  const mara = { name: 'mara', source: 'console', address: '10.0.0.7' } as const;
  const booking = { kind: 'grant', team: 'team-nimbus', amount_usd: 25, reference: 'lost-machine' } as const;
  await bookCredit.perform(deps, mara, { ...booking, reason: 'a machine that was lost' });
  await keepVerdict(store, await verifyLedger(store, now), now - 2 * HOUR_MS);
  const source = figureSource({ store, clock, providers: () => providers });
  await new FigureRecorder({ store, clock, log: silentLog, source }).run();
}

async function putDeployment(tx: Transaction, index: number, now: number): Promise<void> {
  const { id: teamId = '' } = teams[index % 4] ?? {};
  const provider = providers[index % 3] ?? '';
  const id = `dep-${index}`;
  const createdAt = now - (2 + index) * 40 * MINUTE_MS;
  const of = {
    id,
    teamId,
    userId: 'usr-ann',
    providerId: provider,
    region: index % 2 === 0 ? 'eu-1' : 'us-2',
  };
  const named = {
    name: `job ${index}`,
    offerId: offers[index % 5] ?? '',
    rateMicroUsd: rates[index % 5] ?? 0,
  };
  if (index % 9 === 4) {
    const failureReason: FailureReason = provider === 'provider-b' ? 'out_of_stock' : 'ssh_unreachable';
    const failureDetails = 'The machine was made, and took none of its keys for ten minutes.';
    await tx.deployments.insert(
      deployment({ ...of, ...named, createdAt, status: 'failed', failureReason, failureDetails }),
    );
  } else if (index % 9 === 7) await tx.deployments.insert(deployment({ ...of, ...named, createdAt }));
  else
    await putRunning(tx, {
      ...of,
      name: named.name,
      offer: index % 5,
      provider,
      hours: ((2 + index) * 40) / 60,
      now,
    });
}

async function putRunning(
  tx: Transaction,
  {
    id,
    name,
    teamId,
    offer,
    provider,
    hours,
    now,
  }: {
    id: string;
    name: string;
    teamId: string;
    offer: number;
    provider: string;
    hours: number;
    now: number;
  },
): Promise<void> {
  const startedAt = now - Math.round(hours * HOUR_MS);
  const rate = rates[offer] ?? 0;
  const isSilent = provider === 'provider-c';
  await tx.deployments.insert(
    runningDeployment({
      id,
      name,
      teamId,
      userId: 'usr-ann',
      providerId: provider,
      providerInstanceId: `inst-${id}`,
      offerId: offers[offer] ?? '',
      originalRateMicroUsd: rate,
      rateMicroUsd: rate,
      createdAt: startedAt - 3 * MINUTE_MS,
      startedAt,
      observedAt: now - (isSilent ? 26 * MINUTE_MS : 11_000),
    }),
  );
  await tx.ledger.insertSegment(
    segment({
      id: `seg-${id}`,
      subjectId: id,
      teamId,
      rateMicroUsdPerHour: rate,
      originalRateMicroUsdPerHour: rate,
      providerRateMicroUsdPerHour: Math.round(rate * 0.8),
      startedAt,
      postedUntil: startedAt,
      postedMicroUsd: 0,
    }),
  );
}

async function putMails(tx: Transaction, now: number): Promise<void> {
  const to = 'ann@lab.example';
  const sent = { to, createdAt: now - 3 * HOUR_MS, sentAt: now - 3 * HOUR_MS, attempts: 1 };
  await tx.mail.insert(mail({ id: 'mail-sent', subject: 'Receipt for $600.00', kind: 'receipt', ...sent }));
  await tx.mail.insert(
    mail({
      id: 'mail-waits',
      to,
      subject: 'Your balance lasts six hours',
      createdAt: now - 90_000,
      dueAt: now - 80_000,
    }),
  );
  await tx.mail.insert(
    mail({
      id: 'mail-lost',
      to: 'nobody@lab.example',
      createdAt: now - 80 * HOUR_MS,
      attempts: 14,
      failedAt: now - 8 * HOUR_MS,
      lastError: '550 5.1.1 no such mailbox',
    }),
  );
}
