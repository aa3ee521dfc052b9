import type { PageEnd } from './ledger-records.ts';
import type {
  ApiKeyRecord,
  DiscountRecord,
  MemberRecord,
  SshKeyRecord,
  Standing,
  StockAlertRecord,
  TeamRecord,
  UserRecord,
} from './people.ts';

/** In a transaction, `byId` and `byVolumeId` lock their row. Lists of open or due rows lock nothing. */
export interface UserReader {
  byId(id: string): Promise<UserRecord | null>;
  byEmail(email: string): Promise<UserRecord | null>;
  list(): Promise<UserRecord[]>;
  suspended(): Promise<UserRecord[]>;
}
export interface UserWriter extends UserReader {
  insert(record: UserRecord): Promise<void>;
  update(record: UserRecord): Promise<void>;
}

export interface KeyReader {
  byDigest(digest: Buffer): Promise<ApiKeyRecord | null>;
  byId(id: string): Promise<ApiKeyRecord | null>;
  ofUser(userId: string): Promise<ApiKeyRecord[]>;
}
/** The subject that {@link Store.watch} reports when a key is revoked. */
export const REVOKED_KEYS = 'revoked-keys';

export interface KeyWriter extends KeyReader {
  insert(record: ApiKeyRecord): Promise<void>;
  revoke(id: string, at: number): Promise<void>;
  recordUse(id: string, at: number): Promise<void>;
}

/** A team with at least one open segment. */
export interface SpendingTeam extends TeamRecord {
  /** The hourly cost of the open segments before discounts. */
  burnMicroUsdPerHour: number;
  /** The cost that is not charged yet, at most: all time counts as confirmed, without discounts. */
  mostAccruedMicroUsd: number;
}

export interface TeamReader {
  byId(id: string): Promise<TeamRecord | null>;
  bySlug(slug: string): Promise<TeamRecord | null>;
  list(): Promise<TeamRecord[]>;
  /** Teams ordered by slug, those after `after`. `text` is searched in id, name and slug. */
  page(of: { text?: string | undefined; after?: string | undefined; limit: number }): Promise<TeamRecord[]>;
  spending(now: number): Promise<SpendingTeam[]>;
  count(): Promise<number>;
  /** What teams owe beyond their balances. What is not charged yet counts as confirmed, without discounts. */
  debt(now: number): Promise<number>;
  /** Teams due by `now`, then those that a wrong clock scheduled hours ahead. `after`: the end of the last page. */
  due(of: { now: number; after?: PageEnd | undefined; limit: number }): Promise<PageEnd[]>;
  /** The oldest membership first. */
  membershipsOf(userId: string): Promise<MemberRecord[]>;
  /** The owner first, then by joining time. */
  members(teamId: string): Promise<MemberRecord[]>;
  member(teamId: string, userId: string): Promise<MemberRecord | null>;
  /** Takes no lock. Null: there is no such team or user. */
  standing(teamId: string, userId: string): Promise<Standing | null>;
  suspended(): Promise<TeamRecord[]>;
}
export interface TeamWriter extends TeamReader {
  insert(record: TeamRecord): Promise<void>;
  update(record: TeamRecord): Promise<void>;
  /**
   * Sets when the billing job next checks the team; null sets no time. The team's next segment, price, booking or
   * discount makes it due in either case.
   */
  scheduleCheck(id: string, at: number | null): Promise<void>;
  putMember(record: MemberRecord): Promise<void>;
  removeMember(teamId: string, userId: string): Promise<void>;
}

export interface DiscountReader {
  byId(id: string): Promise<DiscountRecord | null>;
  /** Ordered by `startsAt`, including those that have ended. */
  ofTeam(teamId: string): Promise<DiscountRecord[]>;
  /** The discounts of several teams, in the same order. */
  ofTeams(teamIds: readonly string[]): Promise<DiscountRecord[]>;
  list(): Promise<DiscountRecord[]>;
}
export interface DiscountWriter extends DiscountReader {
  insert(record: DiscountRecord): Promise<void>;
  update(record: DiscountRecord): Promise<void>;
}

export interface StockAlertReader {
  list(): Promise<StockAlertRecord[]>;
  ofUser(userId: string): Promise<StockAlertRecord[]>;
}
export interface StockAlertWriter extends StockAlertReader {
  byId(id: string): Promise<StockAlertRecord | null>;
  insert(record: StockAlertRecord): Promise<void>;
  update(record: StockAlertRecord): Promise<void>;
  remove(id: string): Promise<void>;
}

export interface SshKeyReader {
  byId(id: string): Promise<SshKeyRecord | null>;
  /** Omits temporary keys; the newest first. */
  list(filter: { teamIds: readonly string[]; userId?: string }): Promise<SshKeyRecord[]>;
}
export interface SshKeyWriter extends SshKeyReader {
  insert(record: SshKeyRecord): Promise<void>;
  remove(id: string): Promise<void>;
}
