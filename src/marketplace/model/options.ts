import { DAY_MS } from '../../ports/clock.ts';

/** How much may be lost at a provider before an operator has to decide. */
export interface LossCapOptions {
  /** Of what there was at the provider, from 0 to 1. */
  share: number;
  /** However little there was. */
  least: number;
  windowMs: number;
}

/** What the configuration sets. Times are in milliseconds unless their name says otherwise. */
export interface MarketplaceOptions {
  /** The account minimum before a terminate (M: Deployments, rule 4). */
  minimumRuntimeMinutes: number;
  polling: {
    /** Between two polls of an active deployment: 10 to 30 s, with jitter. */
    intervalMs: readonly [number, number];
    /** A call to a provider that takes longer is a timeout. */
    callTimeoutMs: number;
    /** Polls, launches, deletions at one provider at once, by all servers; as many changes for requests beside them. */
    concurrency: number;
    /** How long a dedicated instance may read stopped or offline before that is believed. */
    blinkMs: number;
    /** The shortest time between the first 404 and the reading of the list that confirms it. */
    goneAfterMs: number;
    /** Between two comparisons of a provider's list with the deployments. */
    sweepMs: number;
    catalogMs: number;
    /** How long a lost create is looked for in the provider's list. */
    findCreateMs: number;
    /** After this a change that was sent to a provider, and never showed, is not waited for any more. */
    actionMs: number;
    /** How long a machine may take from its provider's first ONLINE until it can be logged in to by SSH. */
    sshWindowMs: number;
  };
  maxLosses: LossCapOptions;
  /** So long after it was written a mail that was sent, or given up, is deleted; null: never. */
  mailsKeptMs: number | null;
  /** For how long the audit log is kept. */
  auditKeptMs: number;
  /** How long a request waits for its change at the provider; then it answers 504 if the change was sent, else 502. */
  lifecycleWaitMs: number;
  spending: {
    /** A balance must last so long for all that a team pays for, or nothing is added to it. */
    balanceForMs: number;
    teamLimits: TeamLimits;
  };
  billing: {
    /** Slices end at multiples of it; null: each segment has one an hour, at a minute and second of its own. */
    sliceMs: number | null;
    /** When slices become one line for each day and segment. */
    rollUp: RollUpOptions;
    /** What a team that spent so much in the last 30 days gets, from the next day on. */
    volumeDiscounts: readonly { spendMicroUsd: number; percentage: number }[];
    /** What happens after the balance has reached zero. */
    zeroBalance: {
      graceMs: number;
      stoppedGraceMs: number;
      /** What happens to volumes. */
      volumes: VolumePolicy;
    };
  };
}

export interface RollUpOptions {
  /** So long after the end of their day; null: never. More than the 30 days of which volume discounts read the use. */
  afterMs: number | null;
  /** A UTC day. */
  periodMs: number;
}

/** The most that one team may have at the same time; null: any number. */
export interface TeamLimits {
  /** Those that are not over. */
  deployments: number | null;
  volumes: number | null;
  /** Of all its volumes together. */
  volumeGb: number | null;
}

export const defaultOptions: MarketplaceOptions = {
  minimumRuntimeMinutes: 20,
  polling: {
    intervalMs: [10_000, 30_000],
    callTimeoutMs: 10_000,
    concurrency: 32,
    blinkMs: 180_000,
    goneAfterMs: 10_000,
    sweepMs: 120_000,
    catalogMs: 30_000,
    findCreateMs: 180_000,
    actionMs: 15 * 60_000,
    sshWindowMs: 10 * 60_000,
  },
  maxLosses: { share: 0.2, least: 5, windowMs: 600_000 },
  mailsKeptMs: 90 * DAY_MS,
  auditKeptMs: 365 * DAY_MS,
  lifecycleWaitMs: 20_000,
  spending: {
    balanceForMs: 3_600_000,
    // Twice the largest volume that any provider has.
    teamLimits: { deployments: 50, volumes: 100, volumeGb: 524_288 },
  },
  billing: {
    sliceMs: null,
    rollUp: { afterMs: 35 * DAY_MS, periodMs: DAY_MS },
    volumeDiscounts: [],
    zeroBalance: {
      graceMs: 3_600_000,
      stoppedGraceMs: 72 * 3_600_000,
      volumes: { keepMs: 7 * DAY_MS, noticesMs: [3 * DAY_MS, DAY_MS] },
    },
  },
};

/** M: Limits, and a window of our own for what M: gives none. */
export interface RateLimitOptions {
  windowMs: number;
  /** GET /api/providers and GET /api/gpu-offers, for each address. */
  catalogReads: number;
  /** Deployments but for creates, can-terminate, SSH keys, balance and teams, for each address. */
  accountRequests: number;
  /** POST /api/deployments, for each user that has no number of their own. */
  creates: number;
  /** Everything else, for each address. */
  otherRequests: number;
}

export const defaultRateLimits: RateLimitOptions = {
  windowMs: 15 * 60_000,
  catalogReads: 250,
  accountRequests: 250,
  creates: 10,
  otherRequests: 250,
};

/** How long the volumes of a team without balance are kept, and when that is mailed. */
export interface VolumePolicy {
  keepMs: number;
  /** So long before the deletion it is mailed again. */
  noticesMs: readonly number[];
}
