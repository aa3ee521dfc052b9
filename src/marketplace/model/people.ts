import type { TeamRole } from '../contract/team.ts';

export interface UserRecord {
  id: string;
  /** Unique, in lower case. */
  email: string;
  name: string;
  /** The team that a request without `teamId` means; null until there is one. */
  currentTeamId: string | null;
  /** M: Authentication, 1: "access to key generation is controlled by a whitelist". */
  mayMakeKeys: boolean;
  /** POST /api/deployments in 15 minutes; null: the server's default; -1: no limit (M: Limits). */
  createLimit: number | null;
  /** The account minimum before a terminate; null: the server's default. */
  minimumRuntimeMinutes: number | null;
  /** Deployment ready and failed: opt-in (M: Events). */
  wantsDeploymentMail: boolean;
  /** Marketing mail can be switched off, account and billing mail cannot. */
  wantsMarketingMail: boolean;
  createdAt: number;
}

/** What the low-balance mails of a team have got to. */
export interface BalanceWatch {
  /** The lowest threshold that was mailed in this episode, in minutes; null: none. */
  mailedMinutes: number | null;
  /** The threshold that the last reading was under, which is mailed once a second reading confirms it. */
  pendingMinutes: number | null;
  /** Since when readings have been well above every threshold; the episode ends when that lasts. */
  recoveredSince: number | null;
  /** When the balance reached zero and the notice was sent; null: it is above. */
  exhaustedAt: number | null;
  /** When the team's volumes are deleted, as it was mailed; null: nothing was. Older rows do not have it. */
  volumesDeleteAt?: number | null;
  /** How long before that it was mailed last. 0: nothing more is mailed before they are deleted. */
  volumesNoticeMs?: number | null;
}

export interface TeamRecord {
  id: string;
  name: string;
  /** Unique. */
  slug: string;
  ownerId: string;
  /** The sum of the ledger entries of the team's account, in micro-USD. Written by the ledger alone. */
  balanceMicroUsd: number;
  watch: BalanceWatch;
  createdAt: number;
}

/** What is being billed to a team, summed up: the database keeps it with each change. */
export interface TeamLoad {
  openSegments: number;
  /** What the open segments cost per hour before discounts, each rounded up to a thousandth of a USD. */
  openRateMilliUsd: number;
  /** The sum over them of that rate times the whole minutes, since 1970, up to which each was posted. */
  openPosted: number;
  /** The latest moment up to which one of them ever was posted. */
  postedUntil: number;
}

export interface MemberRecord {
  teamId: string;
  userId: string;
  role: TeamRole;
  joinedAt: number;
}

export interface ApiKeyRecord {
  id: string;
  userId: string;
  /** SHA-256 of the whole key. */
  digest: Buffer;
  prefix: string;
  lastFour: string;
  label: string | null;
  createdAt: number;
  expiresAt: number | null;
  revokedAt: number | null;
  lastUsedAt: number | null;
}

/** A discount of a team from `startsAt` until `endsAt`; the best of those that hold applies. */
export interface DiscountRecord {
  id: string;
  teamId: string;
  source: 'volume' | 'admin';
  /** Whole percents, 5 to 50. */
  percentage: number;
  startsAt: number;
  /** Null: until it is ended. */
  endsAt: number | null;
}

/** M: Events: "a sold-out configuration alert when a subscribed configuration returns to stock". */
export interface StockAlertRecord {
  id: string;
  userId: string;
  providerId: string;
  offerId: string;
  /** Null: any. */
  region: string | null;
  createdAt: number;
  /** Whether it was seen sold out since it was made, or since it was mailed last. */
  wasSoldOut: boolean;
}

export interface SshKeyRecord {
  id: string;
  userId: string;
  teamId: string;
  name: string;
  /** One authorized_keys line. */
  publicKey: string;
  /** `SHA256:…`, as OpenSSH prints it. */
  fingerprint: string;
  /** Made of an inline key; it goes with its deployment, and no list shows it. */
  isTemporary: boolean;
  createdAt: number;
}
