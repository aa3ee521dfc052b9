import { teamId } from '../../../test/support/rows/marketplace-rows.ts';
import { BillingJob } from './billing-job.ts';
import type { Books } from './ledger.fixture.ts';

export const MINUTE_MS = 60_000;
export const HOUR_MS = 60 * MINUTE_MS;
export const ROUND_MS = 30_000;
export const DOLLAR = 1_000_000;

export const neverCalled = {
  stop: async () => Promise.reject(new Error('no deployment is to be stopped')),
  terminate: async () => Promise.reject(new Error('no deployment is to be terminated')),
  deleteVolume: async () => Promise.reject(new Error('no volume is to be deleted')),
};

export async function balanceOf({ store }: Books): Promise<number | undefined> {
  return (await store.read.teams.byId(teamId))?.balanceMicroUsd;
}

/** The billing job with slices of five minutes. */
export function billingEveryFiveMinutes({ deps }: Books): BillingJob {
  const { options } = deps;
  const billing = { ...options.billing, sliceMs: 5 * MINUTE_MS };
  return new BillingJob({ ...deps, options: { ...options, billing }, enforce: neverCalled });
}

/** Advances the clock by `ms`, with an observation and a billing round every `stepMs`. */
export async function pass(books: Books, billing: BillingJob, ms: number, stepMs = MINUTE_MS): Promise<void> {
  for (let passed = 0; passed < ms; passed += stepMs) {
    await books.clock.advance(stepMs);
    const record = await books.store.read.deployments.byId('dep-1');
    if (record?.status === 'running' || record?.status === 'stopped') await books.observe('dep-1');
    await billing.run();
  }
}
