import type { TeamRole } from '../contract/team.ts';

/** What happens to the deployments that run at a suspension. */
export const runningAtSuspension = ['keep', 'stop', 'end'] as const;

/** An operator has suspended a user or a team: only reads, terminates, detaches and deletions are allowed. */
export interface Suspension {
  at: number;
  /** Shown to the users. */
  reason: string;
  /** The operator. */
  by: string;
  /** `stop` and `end` also apply to deployments that run only later. */
  running: (typeof runningAtSuspension)[number];
}

export interface UserRecord {
  id: string;
  /** Unique, lower case. */
  email: string;
  name: string;
  /** The team of a request without `teamId`; null until there is one. */
  currentTeamId: string | null;
  /** M: Authentication, 1: "access to key generation is controlled by a whitelist". */
  mayMakeKeys: boolean;
  /** Limit of POST /api/deployments in 15 minutes; null: the server's default; -1: no limit (M: Limits). */
  createLimit: number | null;
  /** The account's minimum runtime before a terminate; null: the server's default. */
  minimumRuntimeMinutes: number | null;
  /** Mail when a deployment is ready or failed: opt-in (M: Events). */
  wantsDeploymentMail: boolean;
  /** Marketing mail can be switched off; account and billing mail cannot. */
  wantsMarketingMail: boolean;
  createdAt: number;
  suspension: Suspension | null;
}

/** The state of a team's low-balance mails. */
export interface BalanceWatch {
  /** The lowest threshold mailed in this episode, in minutes; null: none. */
  mailedMinutes: number | null;
  /** The threshold that the last reading was under. It is mailed once a second reading confirms it. */
  pendingMinutes: number | null;
  /** The time since which readings have been well above every threshold. The episode ends once that has lasted. */
  recoveredSince: number | null;
  /** When the balance reached zero and the notice was sent; null: the balance is above zero. */
  exhaustedAt: number | null;
  /** When the team's volumes are deleted, as the mail said; null: no mail was sent. */
  volumesDeleteAt: number | null;
  /** How long before the deletion the last warning was due. 0: no further warning is sent. */
  volumesNoticeMs: number | null;
}

export const memberRights = ['own', 'all'] as const;

export interface TeamRecord {
  id: string;
  name: string;
  /** Unique. */
  slug: string;
  ownerId: string;
  /** The sum of the ledger entries of the team's account, in micro-USD. Only the ledger writes it. */
  balanceMicroUsd: number;
  watch: BalanceWatch;
  createdAt: number;
  /** Whether a `member` may change and end only what is their own, or all. */
  memberRights: (typeof memberRights)[number];
  suspension: Suspension | null;
}

/** What decides whether a user may do something in a team. */
export interface Standing {
  /** Null: the user is not in the team. */
  role: TeamRole | null;
  memberRights: TeamRecord['memberRights'];
  userSuspension: Suspension | null;
  teamSuspension: Suspension | null;
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

/** A discount of a team from `startsAt` until `endsAt`. The best current one applies. */
export interface DiscountRecord {
  id: string;
  teamId: string;
  source: 'volume' | 'admin';
  /** Whole percents, 5 to 50. */
  percentage: number;
  startsAt: number;
  /** Null: no end is set. */
  endsAt: number | null;
}

/** M: Events: "a sold-out configuration alert when a subscribed configuration returns to stock". */
export interface StockAlertRecord {
  id: string;
  userId: string;
  providerId: string;
  offerId: string;
  /** Null: any region. */
  region: string | null;
  createdAt: number;
  /** Whether the configuration was seen sold out since the alert was created or last mailed. */
  wasSoldOut: boolean;
}

export interface SshKeyRecord {
  id: string;
  userId: string;
  teamId: string;
  name: string;
  /** One line of an authorized_keys file. */
  publicKey: string;
  /** `SHA256:…`, as OpenSSH prints it. */
  fingerprint: string;
  /** Created from an inline key. It is deleted with its deployment, and no list shows it. */
  isTemporary: boolean;
  createdAt: number;
}
