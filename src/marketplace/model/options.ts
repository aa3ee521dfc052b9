import { DAY_MS } from '../../ports/clock.ts';
import { SHARED_LEASE } from '../../work/lease-time.ts';

export interface LossCapOptions {
  /** The share of the live deployments and volumes at the provider, from 0 to 1. */
  share: number;
  /** The number that is always accepted, even if the share allows fewer. */
  least: number;
}

/** The options from the configuration. Times are in milliseconds unless the name says otherwise. */
export interface MarketplaceOptions {
  /** The account's minimum runtime before a terminate (M: Deployments, rule 4). */
  minimumRuntimeMinutes: number;
  polling: {
    /** Time between two polls of an active deployment: 10 to 30 s, with jitter. */
    intervalMs: readonly [number, number];
    /** The time after which a call to a provider counts as timed out. */
    callTimeoutMs: number;
    /**
     * Concurrent polls, launches and deletions per provider, over all servers. Changes that requests wait for have a
     * limit of their own, of the same size.
     */
    concurrency: number;
    /** How long a dedicated instance must appear stopped or offline before that is accepted. */
    blinkMs: number;
    /** The shortest time between the first 404 and the list that confirms it. */
    goneAfterMs: number;
    /** Time between two comparisons of a provider's list with the deployments. */
    sweepMs: number;
    catalogMs: number;
    /** How long a create without an answer is searched for in the provider's list. */
    findCreateMs: number;
    /** The time after which the server gives up waiting for a sent change to take effect. */
    actionMs: number;
    /** The longest time from the provider's first ONLINE to a successful SSH login. */
    sshWindowMs: number;
  };
  maxLosses: LossCapOptions;
  /** How long a mail that was sent or given up is kept after it was written; null: forever. */
  mailsKeptMs: number | null;
  /** How long the audit log is kept. */
  auditKeptMs: number;
  /** How long a request waits for its change at the provider. Then it answers 504 if the change was sent, else 502. */
  lifecycleWaitMs: number;
  spending: {
    /** Before anything is added, the balance must cover all costs of the team for this long. */
    balanceForMs: number;
    teamLimits: TeamLimits;
  };
  billing: {
    /**
     * Length of a slice. Its cost is posted at its end, by default at midnight UTC, or where the segment ends; until
     * then it is accrued.
     */
    sliceMs: number;
    /** The discount of a team that spent this amount in the last 30 days, from the next day on. */
    volumeDiscounts: readonly { spendMicroUsd: number; percentage: number }[];
    /** What happens after the balance reached zero. */
    zeroBalance: {
      graceMs: number;
      stoppedGraceMs: number;
      volumes: VolumePolicy;
    };
  };
}

/** Limits on what one team has at the same time; null: no limit. */
export interface TeamLimits {
  /** Deployments that have not ended. */
  deployments: number | null;
  volumes: number | null;
  /** The total size of all its volumes. */
  volumeGb: number | null;
}

export const defaultOptions: MarketplaceOptions = {
  minimumRuntimeMinutes: 20,
  polling: {
    intervalMs: [10_000, 30_000],
    callTimeoutMs: SHARED_LEASE.callMs,
    concurrency: 32,
    blinkMs: 180_000,
    goneAfterMs: 10_000,
    sweepMs: 120_000,
    catalogMs: 30_000,
    findCreateMs: 180_000,
    actionMs: 15 * 60_000,
    sshWindowMs: 10 * 60_000,
  },
  maxLosses: { share: 0.2, least: 5 },
  mailsKeptMs: 90 * DAY_MS,
  auditKeptMs: 365 * DAY_MS,
  lifecycleWaitMs: 20_000,
  spending: {
    balanceForMs: 3_600_000,
    // Twice the largest volume that any provider offers.
    teamLimits: { deployments: 50, volumes: 100, volumeGb: 524_288 },
  },
  billing: {
    sliceMs: DAY_MS,
    volumeDiscounts: [],
    zeroBalance: {
      graceMs: 3_600_000,
      stoppedGraceMs: 72 * 3_600_000,
      volumes: { keepMs: 7 * DAY_MS, noticesMs: [3 * DAY_MS, DAY_MS] },
    },
  },
};

/** M: Limits, plus Berth's own window for requests that M: does not limit. */
export interface RateLimitOptions {
  windowMs: number;
  /** GET /api/providers and GET /api/gpu-offers, per address. */
  catalogReads: number;
  /** Deployments except creates, can-terminate, SSH keys, balance and teams, per address. */
  accountRequests: number;
  /** Accepted POST /api/deployments, per user without a limit of their own. */
  creates: number;
  /** All other requests, and refused creates, per address. */
  otherRequests: number;
}

export const defaultRateLimits: RateLimitOptions = {
  windowMs: 15 * 60_000,
  catalogReads: 250,
  accountRequests: 250,
  creates: 10,
  otherRequests: 250,
};

const UNREACHED = 1_000_000_000;

/** Limits that no client reaches. */
export const noRateLimits: RateLimitOptions = {
  windowMs: defaultRateLimits.windowMs,
  catalogReads: UNREACHED,
  accountRequests: UNREACHED,
  creates: UNREACHED,
  otherRequests: UNREACHED,
};

/** How long the volumes of a team without balance are kept, and when the team is warned. */
export interface VolumePolicy {
  keepMs: number;
  /** How long before the deletion each further warning is mailed. */
  noticesMs: readonly number[];
}
