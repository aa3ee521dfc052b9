import { usdFromMicroUsd } from '../../contract/values.ts';
import { ApiError } from '../contract/errors.ts';
import type { Deps } from '../deps.ts';
import type { Reader } from '../ports/store.ts';
import { realTimeBalance } from './balance.ts';
import { committedRate } from './committed-rate.ts';
import { ceilingCostOf } from './cost.ts';
import { toDollars } from './dollars.ts';

const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;

export type SpendingReader = Pick<Reader, 'teams' | 'ledger' | 'discounts' | 'deployments' | 'volumes'>;

/** What a team is about to pay for. */
export interface Commitment {
  teamId: string;
  /** What it will cost, after discounts, in micro-USD per hour. */
  rateMicroUsd: number;
  /** The deployment or volume that will cost this in place of what it costs now; absent: it is new. */
  insteadOf?: string;
  /** For how long a deployment must run at least. */
  minimumRuntimeMinutes?: number;
}

/**
 * Holds a balance against what it has to last for: so many hours of all that the team pays for and of what is new. The
 * hours are those of the configuration, or the minimum runtime where that is longer. In a transaction the team's row is
 * locked first, so that of two at once the second sees the first.
 *
 * @throws {ApiError} VALIDATION_ERROR with `details.reason: insufficient_balance`
 */
export async function assertAffordable(
  { options, providers }: Pick<Deps, 'options' | 'providers'>,
  read: SpendingReader,
  { teamId, rateMicroUsd, insteadOf, minimumRuntimeMinutes = 0 }: Commitment,
  now: number,
): Promise<void> {
  const balance = await realTimeBalance(read, teamId, now);
  const committed = await committedRate(read, providers, teamId, now, insteadOf);
  const lastsMs = Math.max(options.spending.balanceForMs, minimumRuntimeMinutes * MINUTE_MS);
  const needed = ceilingCostOf(committed + rateMicroUsd, lastsMs);
  if (balance > 0 && balance >= needed) return;
  const hours = lastsMs / HOUR_MS;
  throw new ApiError(
    'VALIDATION_ERROR',
    `The team has ${toDollars(balance)} and needs ${toDollars(needed)}: ${toHours(hours)} of what it pays for ` +
      `already (${toDollars(committed)} per hour) and of this (${toDollars(rateMicroUsd)} per hour). ` +
      'Top up the balance, or end something first.',
    {
      details: {
        reason: 'insufficient_balance',
        balance: usdFromMicroUsd(balance),
        needed: usdFromMicroUsd(needed),
        hours,
        currentHourlyRate: usdFromMicroUsd(committed),
        newHourlyRate: usdFromMicroUsd(rateMicroUsd),
      },
    },
  );
}

function toHours(hours: number): string {
  const shown = Number(hours.toFixed(2));
  return `${shown} ${shown === 1 ? 'hour' : 'hours'}`;
}

/**
 * Nothing is attached while the balance is used up: the volumes of the team are frozen.
 *
 * @throws {ApiError} VALIDATION_ERROR with `details.reason: insufficient_balance`
 */
export async function assertNotFrozen(
  read: Pick<Reader, 'teams' | 'ledger' | 'discounts'>,
  teamId: string,
  now: number,
): Promise<void> {
  const balance = await realTimeBalance(read, teamId, now);
  if (balance > 0) return;
  throw new ApiError(
    'VALIDATION_ERROR',
    `The balance of the team is used up (${toDollars(balance)}), so that its volumes are frozen: none can be ` +
      'attached. Top up the balance first.',
    { details: { reason: 'insufficient_balance', balance: usdFromMicroUsd(balance) } },
  );
}
