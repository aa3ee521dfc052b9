import type {
  AuditReader,
  AuditWriter,
  OperatorKeyReader,
  OperatorKeyWriter,
} from '../../operators/model.ts';
import type { LeaseWriter as NamedLeases } from '../../work/lease.ts';
import type { DeploymentStatus } from '../contract/deployment.ts';
import type { VolumeStatus } from '../contract/volume.ts';
import type { CatalogRecord } from './catalog-record.ts';
import type { Cleanup, DeploymentRecord } from './deployment-record.ts';
import type {
  LedgerEntryRecord,
  LedgerTransactionRecord,
  LossRecord,
  MailRecord,
  Posting,
  SegmentRecord,
  SliceRecord,
  SubjectKind,
  Usage,
} from './ledger-records.ts';
import type {
  ApiKeyRecord,
  DiscountRecord,
  MemberRecord,
  SshKeyRecord,
  StockAlertRecord,
  TeamLoad,
  TeamRecord,
  UserRecord,
} from './people.ts';
import type { AttachmentRecord, VolumeRecord } from './volume-record.ts';

export { StoreUnavailable } from '../../ports/errors.ts';

/**
 * A unique row already exists; of two concurrent writers, the other was first. `transact` rejects with it. A body must
 * not catch it, because its transaction has ended.
 */
export class Duplicate extends Error {
  override readonly name = 'Duplicate';
}

/**
 * The read methods. In a transaction, `byId` and `byVolumeId` lock their row until the end. Lists of open or due rows
 * lock nothing, so a writer first reads such a row by id.
 */
export interface UserReader {
  byId(id: string): Promise<UserRecord | null>;
  byEmail(email: string): Promise<UserRecord | null>;
  list(): Promise<UserRecord[]>;
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
export interface KeyWriter extends KeyReader {
  insert(record: ApiKeyRecord): Promise<void>;
  revoke(id: string, at: number): Promise<void>;
  recordUse(id: string, at: number): Promise<void>;
}

/** A team with the sums over its open segments. */
export type TeamWithLoad = TeamRecord & TeamLoad;

export interface TeamReader {
  byId(id: string): Promise<TeamRecord | null>;
  /** Takes no lock. Exact where the caller holds the team's row. */
  load(id: string): Promise<TeamLoad | null>;
  bySlug(slug: string): Promise<TeamRecord | null>;
  list(): Promise<TeamRecord[]>;
  /** Teams ordered by slug, those after `after`. `text` is searched in id, name and slug. */
  page(of: { text?: string | undefined; after?: string | undefined; limit: number }): Promise<TeamWithLoad[]>;
  /** Teams with at least one open segment. */
  spending(): Promise<TeamWithLoad[]>;
  count(): Promise<number>;
  /** Teams due by `now`, then those that a wrong clock scheduled hours ahead. `after`: the end of the last page. */
  due(of: { now: number; after?: PageEnd | undefined; limit: number }): Promise<PageEnd[]>;
  /** The oldest membership first. */
  membershipsOf(userId: string): Promise<MemberRecord[]>;
  /** The owner first, then by joining time. */
  members(teamId: string): Promise<MemberRecord[]>;
  member(teamId: string, userId: string): Promise<MemberRecord | null>;
}
export interface TeamWriter extends TeamReader {
  insert(record: TeamRecord): Promise<void>;
  update(record: TeamRecord): Promise<void>;
  /**
   * Sets when the billing job next checks the team; null: at its next change. The team becomes due at once when a
   * segment starts, ends or gets a new price, and with each booking and discount.
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
  /** Without temporary keys; the newest first. */
  list(filter: { teamIds: readonly string[]; userId?: string }): Promise<SshKeyRecord[]>;
}
export interface SshKeyWriter extends SshKeyReader {
  insert(record: SshKeyRecord): Promise<void>;
  remove(id: string): Promise<void>;
}

/** The columns that the sync needs. Read repeatedly for every deployment of a provider, so there are few. */
export type DeploymentToSync = Pick<DeploymentRecord, 'id' | 'status' | 'stoppedAt'> & {
  launchState: DeploymentRecord['launch']['state'];
  /** Whether it has an intent for which nothing was sent. */
  isAsked: boolean;
};

export interface ActiveByPrice
  extends Pick<DeploymentRecord, 'status' | 'originalRateMicroUsd' | 'originalStoppedRateMicroUsd'> {
  isResuming: boolean;
  count: number;
}

/** The start of the next page: after the row with this time and id. */
export interface PageEnd {
  at: number;
  id: string;
}

export interface DeploymentSearch {
  /** Searched in id, names, address and failure reason; lower case. */
  text?: string | undefined;
  teamId?: string | undefined;
  providerId?: string | undefined;
  statuses?: readonly DeploymentStatus[] | undefined;
  after?: PageEnd | undefined;
  limit: number;
}

export interface ActiveAtProvider {
  providerId: string;
  status: DeploymentStatus;
  count: number;
  /** The oldest confirmation; null: none of them was ever confirmed. */
  confirmedUntil: number | null;
}

export interface DeploymentOutcomes
  extends Pick<DeploymentRecord, 'providerId' | 'status' | 'failureReason'> {
  count: number;
}

export interface DeploymentReader {
  byId(id: string): Promise<DeploymentRecord | null>;
  /** The newest first. */
  list(filter: {
    teamIds?: readonly string[];
    userId?: string;
    providerId?: string;
    statuses?: readonly DeploymentStatus[];
    /** Absent: all rows. `offset` skips that many matching rows; `after` starts behind the end of a page. */
    page?: { limit: number; offset: number } | { limit: number; after?: PageEnd | undefined };
  }): Promise<DeploymentRecord[]>;
  /** Deployments of all teams, the newest first, one page at a time. */
  search(of: DeploymentSearch): Promise<DeploymentRecord[]>;
  /**
   * All deployments of a provider that need a sync: active ones, and those still to be cleaned up. `digits`: only those
   * whose id ends in one of these digits.
   */
  toSync(providerId: string, digits?: string): Promise<DeploymentToSync[]>;
  /** Those of {@link toSync} with work to do now: being deployed, being changed or still to be cleaned up. */
  newToSync(providerId: string): Promise<DeploymentToSync[]>;
  /** When a machine of the provider was last proved by SSH, over the deployments that need a sync; null: never. */
  lastProvedAt(providerId: string): Promise<number | null>;
  /**
   * The number of a team's active deployments for each price before discounts, without reading them one by one.
   * `isResuming`: stopped, and being started.
   */
  activeByPrice(teamId: string): Promise<ActiveByPrice[]>;
  /** By the unique name at the provider. */
  byProviderName(name: string): Promise<DeploymentRecord | null>;
  /** All deployments with this instance of the provider, including ended ones. Takes no lock. */
  byInstance(providerId: string, instanceId: string): Promise<DeploymentRecord[]>;
  /** The number of deployments that need a sync, for each provider that has any. */
  countToSync(): Promise<{ providerId: string; count: number }[]>;
  /** The number of active deployments in each status. */
  countActive(): Promise<{ status: DeploymentStatus; count: number }[]>;
  /** The same by provider, with the oldest time of confirmation by the provider. */
  countActiveByProvider(): Promise<ActiveAtProvider[]>;
  /** The outcomes of the deployments created since then. */
  countOutcomes(since: number): Promise<DeploymentOutcomes[]>;
  /**
   * The number of machines that are ONLINE at the provider without a successful SSH login, for each provider that has
   * any.
   */
  countUnproved(): Promise<{ providerId: string; count: number }[]>;
  /** The number of deployments of each GPU type created since then. */
  countByGpuType(since: number): Promise<{ gpuType: string; count: number }[]>;
}
export interface DeploymentWriter extends DeploymentReader {
  insert(record: DeploymentRecord): Promise<void>;
  /** Also increments `revision`. Leaves the owner, the provider, the creation time and the cost unchanged. */
  update(record: DeploymentRecord): Promise<void>;
  /**
   * Writes only `observedAt`, and only where the revision still matches and the stored `observedAt` is not later.
   * Leaves the revision unchanged. Returns the ids that were not written.
   */
  recordObservations(
    observations: readonly { id: string; revision: number; at: number }[],
  ): Promise<string[]>;
  setCleanup(id: string, cleanup: Cleanup): Promise<void>;
}

export interface VolumeReader {
  /** By the internal id. */
  byId(id: string): Promise<VolumeRecord | null>;
  byVolumeId(volumeId: string): Promise<VolumeRecord | null>;
  /** All rows with this volume of the provider, including deleted ones. Takes no lock. */
  byProviderVolume(providerId: string, providerVolumeId: string): Promise<VolumeRecord[]>;
  /** The volumes of a team that are not deleted. */
  ofTeam(teamId: string): Promise<VolumeRecord[]>;
  /** The newest first, with the total number. */
  page(filter: {
    teamId: string;
    statuses?: readonly VolumeStatus[];
    offset: number;
    limit: number;
  }): Promise<{ volumes: VolumeRecord[]; total: number }>;
  /** The ids of a provider's volumes that are not deleted. */
  toSync(providerId: string): Promise<string[]>;
  /** Those with work to do now: they have an intent or are still to be cleaned up. */
  newToSync(providerId: string): Promise<string[]>;
  /** The number of volumes that are not deleted, for each provider that has any. */
  countByProvider(): Promise<{ providerId: string; count: number }[]>;
  /** Attachments of a volume or of a deployment, by internal id. */
  attachmentsOf(subject: { volumeId?: string; deploymentId?: string }): Promise<AttachmentRecord[]>;
}
export interface VolumeWriter extends VolumeReader {
  insert(record: VolumeRecord): Promise<void>;
  /** Also increments `revision`. */
  update(record: VolumeRecord): Promise<void>;
  /** Writes only `observedAt`. Leaves the revision unchanged. */
  recordObservation(id: string, at: number): Promise<void>;
  putAttachment(record: AttachmentRecord): Promise<void>;
  removeAttachment(volumeId: string, deploymentId: string): Promise<void>;
}

/** A segment and its deployment as of the same moment: a concurrently posted slice is in both or in neither. */
export interface OpenDeploymentSegment {
  segment: SegmentRecord;
  /** Until when the provider has confirmed the deployment. */
  confirmedUntil: number | null;
  totalCostMicroUsd: number;
}

/** The key of a slice. */
export interface SliceEnd {
  segmentId: string;
  sliceEnd: number;
}

export interface SumOfSlices {
  segment: SegmentRecord;
  /** The end of the part that was posted before. */
  from: number;
  /** The end of the last slice. */
  until: number;
  slices: number;
  amountMicroUsd: number;
}

/** The total that a segment cost from `startsAt`, exclusive, to `endsAt`, as one line. */
export interface DayLine {
  segmentId: string;
  startsAt: number;
  endsAt: number;
  /** The number of slices that it replaces. */
  slices: number;
  usage: Usage;
}

/** An open segment, and the values that determine up to when it is billed. */
export interface BilledSegment {
  segment: SegmentRecord;
  /** Null: the subject is not a deployment. */
  status: DeploymentStatus | null;
  /** Until when the provider has confirmed the deployment. */
  confirmedUntil: number | null;
  /** The discount stored with the subject. */
  discountPercentage: number;
}

export interface LedgerReader {
  segmentById(id: string): Promise<SegmentRecord | null>;
  /** Ordered by `startedAt`. */
  segmentsOf(kind: SubjectKind, subjectId: string): Promise<SegmentRecord[]>;
  openSegmentOf(kind: SubjectKind, subjectId: string): Promise<SegmentRecord | null>;
  /** Takes no lock. Each has the time until which the provider has confirmed its deployment; null for volumes. */
  openSegmentsOfTeam(teamId: string): Promise<{ segment: SegmentRecord; confirmedUntil: number | null }[]>;
  /** The open segments of these deployments, without locks. Each has the deployment's cost as of the same moment. */
  openSegmentsOfDeployments(ids: readonly string[]): Promise<OpenDeploymentSegment[]>;
  /** All open segments after `afterId`, in the order of their ids. */
  openSegments(page: { afterId?: string; limit: number }): Promise<SegmentRecord[]>;
  /** The team's open segments with the values that determine their billing, without locks. */
  billedSegmentsOfTeam(teamId: string): Promise<BilledSegment[]>;
  /** Open segments due by `now`, then those that a wrong clock scheduled hours ahead. Takes no lock. */
  dueSegments(of: { now: number; after?: PageEnd | undefined; limit: number }): Promise<SegmentRecord[]>;
  /** Slices that are not rolled up. */
  slicesOf(segmentId: string): Promise<SliceRecord[]>;
  /** The cost of a segment on each UTC day, by the day's start, from slices and day lines. */
  daysOf(segmentId: string): Promise<{ day: number; amountMicroUsd: number }[]>;
  /**
   * The oldest slices after `after` that can be rolled up: they ended by `until`, and no more can be posted in their
   * period. A segment may have several of them.
   */
  toRollUp(wanted: { until: number; periodMs: number; after?: SliceEnd; limit: number }): Promise<SliceEnd[]>;
  /** For each of these segments that has any: the sum of its slices from `startsAt`, exclusive, to `endsAt`. */
  sumSlices(of: { segmentIds: readonly string[]; startsAt: number; endsAt: number }): Promise<SumOfSlices[]>;
  /** The newest first. */
  transactionsOf(teamId: string, limit: number): Promise<LedgerTransactionRecord[]>;
  byReference(reference: string): Promise<LedgerTransactionRecord | null>;
  /** Payments, grants and adjustments of teams, but no usage; the newest first. */
  bookings(page: {
    after?: PageEnd | undefined;
    limit: number;
  }): Promise<(LedgerTransactionRecord & { amountMicroUsd: number })[]>;
  /** The sum of each account, from the entries alone. */
  balances(): Promise<{ account: string; amountMicroUsd: number }[]>;
  /** Teams whose stored load differs from the sums over their open segments. */
  wrongLoads(): Promise<string[]>;
  /** Transactions whose entries do not add up to zero. */
  unbalanced(limit: number): Promise<string[]>;
  /**
   * Transactions without exactly the two entries of their kind, and usage that does not match one slice or day line in
   * amount and end.
   */
  malformed(limit: number): Promise<{ id: string; isBalanced: boolean }[]>;
  /** The number of rows of each kind, to verify that {@link malformed} covered them all. */
  countRows(): Promise<{ transactions: number; entries: number; usages: number; uses: number }>;
  /** What a team was charged for usage from `from`, exclusive, to `to`. A slice counts at its end. */
  usageOf(teamId: string, from: number, to: number): Promise<number>;
  /** All segments after `afterId`, in the order of their ids, each with the sums of its slices and day lines. */
  auditSegments(page: { afterId?: string; limit: number }): Promise<
    {
      segment: SegmentRecord;
      slices: number;
      slicesMicroUsd: number;
      lastSliceEnd: number | null;
      /** The end of the first slice at which the sum differs from the segment's cost up to then; null: none. */
      wrongAt: number | null;
    }[]
  >;
  /**
   * All subjects in the order of their ids, with the period that segments must cover. `until` null: it has not ended.
   * `until` equal to `from`: it never cost anything.
   */
  auditSubjects(page: { afterId?: string; limit: number }): Promise<
    {
      kind: SubjectKind;
      id: string;
      teamId: string;
      from: number;
      until: number | null;
      totalCostMicroUsd: number;
    }[]
  >;
}
export interface LedgerWriter extends LedgerReader {
  insertSegment(record: SegmentRecord): Promise<void>;
  updateSegment(record: SegmentRecord): Promise<void>;
  /**
   * Writes how far segments are posted, a booked slice for each amount above zero, and the new cost of their subjects.
   * Leaves the revisions of the subjects unchanged.
   *
   * @throws {Duplicate} for a second slice of a segment with the same end
   */
  post(postings: readonly Posting[]): Promise<void>;
  /**
   * Books the transaction with its entries, which must add up to zero, and updates the team's stored balance.
   *
   * @throws {Duplicate} for a reference that is already booked
   */
  book(
    transaction: LedgerTransactionRecord,
    entries: readonly Omit<LedgerEntryRecord, 'transactionId'>[],
  ): Promise<void>;
  /**
   * Replaces all slices of a segment from `startsAt`, exclusive, to `endsAt` by one booked line. At most one line per
   * segment. The database refuses all lines if any sum would change.
   */
  rollUp(lines: readonly DayLine[]): Promise<void>;
  /** These open segments with their subjects as of now, locked until the end of the transaction. */
  lockBilled(segments: readonly SegmentRecord[]): Promise<BilledSegment[]>;
}

export type MailState = 'waiting' | 'sent' | 'given_up';

export interface MailReader {
  /** Mails to send by `now`, the oldest first. */
  due(now: number, limit: number): Promise<MailRecord[]>;
  /** The newest first. `waiting`: neither sent nor given up. */
  list(filter: {
    to?: string | undefined;
    state?: MailState | undefined;
    after?: PageEnd | undefined;
    limit: number;
  }): Promise<MailRecord[]>;
  /** Mails neither sent nor given up: when the oldest was written, and when the next attempt is due. */
  waiting(): Promise<{ count: number; oldestCreatedAt: number | null; nextDueAt: number | null }>;
  countGivenUpSince(time: number): Promise<number>;
}
export interface MailWriter extends MailReader {
  byId(id: string): Promise<MailRecord | null>;
  /** Does nothing if a mail with the same `dedupeKey` exists. */
  insert(record: MailRecord): Promise<void>;
  update(record: MailRecord): Promise<void>;
  /**
   * Deletes up to `limit` mails that were written before then and are sent or given up, the oldest first. Returns how
   * many.
   */
  deleteEnded(before: number, limit: number): Promise<number>;
}

/** Deployments and volumes that were lost at their provider, and losses that are held. */
export interface LossReader {
  bySubject(subjectId: string): Promise<LossRecord | null>;
  /** The number of losses at a provider that are not held. */
  countSince(providerId: string, time: number): Promise<number>;
  /** The oldest first. */
  held(providerId: string): Promise<LossRecord[]>;
  /** The number of held losses, for each provider that has any. */
  countHeld(): Promise<{ providerId: string; count: number }[]>;
  /** The number of a provider's active deployments with an instance, plus its volumes that are not deleted. */
  countLive(providerId: string): Promise<number>;
  /** Providers with at least one loss. */
  providers(): Promise<string[]>;
}
export interface LossWriter extends LossReader {
  /** Serialises the counting of losses at this provider. Must come first in a transaction, before any row is locked. */
  lock(providerId: string): Promise<void>;
  put(record: LossRecord): Promise<void>;
  /** Removes the loss if it is held. */
  release(subjectId: string): Promise<void>;
}

/** The catalogs of the providers, one row each. */
export interface CatalogReader {
  byProvider(providerId: string): Promise<CatalogRecord | null>;
  /** For all providers whose catalog was ever read. */
  versions(): Promise<Pick<CatalogRecord, 'providerId' | 'version' | 'readAt'>[]>;
}
export interface CatalogWriter extends CatalogReader {
  put(record: CatalogRecord): Promise<void>;
  /** Records that the catalog was read again and has not changed. */
  confirm(providerId: string, readAt: number): Promise<void>;
}

/** The leases of providers and jobs. */
export interface LeaseWriter extends NamedLeases {
  /** Frees every lease. Only for a process that knows that it is the only one. */
  releaseAll(): Promise<void>;
}

/** A notification about work to do at a provider. */
export interface Signal {
  kind: 'wake' | 'ask';
  providerId: string;
  /** The id of a deployment or a volume. */
  subjectId: string;
}

/** Notifications that a commit sends to the processes on the database. */
export interface SignalWriter {
  /** There is work for a deployment or a volume. Its provider's worker starts at once, in whichever process it runs. */
  wake(providerId: string, subjectId: string): Promise<void>;
  /** A deployment has an intent that the worker must send. Otherwise like {@link wake}. */
  ask(providerId: string, deploymentId: string): Promise<void>;
}

/** Single named values, such as the installation's id. */
export interface SettingReader {
  get(name: string): Promise<string | null>;
}
export interface SettingWriter extends SettingReader {
  /** Writes the value if there is none. Returns the stored value. */
  putIfAbsent(name: string, value: string): Promise<string>;
  put(name: string, value: string): Promise<void>;
}

export interface Reader {
  users: UserReader;
  keys: KeyReader;
  teams: TeamReader;
  discounts: DiscountReader;
  stockAlerts: StockAlertReader;
  sshKeys: SshKeyReader;
  deployments: DeploymentReader;
  volumes: VolumeReader;
  ledger: LedgerReader;
  losses: LossReader;
  mail: MailReader;
  catalogs: CatalogReader;
  settings: SettingReader;
  operatorKeys: OperatorKeyReader;
  audit: AuditReader;
}

/** Writes exist only inside a transaction. */
export interface Transaction {
  users: UserWriter;
  keys: KeyWriter;
  teams: TeamWriter;
  discounts: DiscountWriter;
  stockAlerts: StockAlertWriter;
  sshKeys: SshKeyWriter;
  deployments: DeploymentWriter;
  volumes: VolumeWriter;
  ledger: LedgerWriter;
  losses: LossWriter;
  mail: MailWriter;
  catalogs: CatalogWriter;
  leases: LeaseWriter;
  signals: SignalWriter;
  settings: SettingWriter;
  operatorKeys: OperatorKeyWriter;
  audit: AuditWriter;
}

export interface Store {
  read: Reader;
  /**
   * All or nothing, and durable once it resolves. `body` may run again when transactions conflict, so it must have no
   * effect other than its writes.
   *
   * @throws {StoreUnavailable | Duplicate}
   */
  transact<T>(body: (tx: Transaction) => Promise<T>): Promise<T>;
  /**
   * Calls `changed` after each commit, by any process, that writes the deployment or volume, and when commits may have
   * been missed. Returns a function that stops it.
   */
  watch(subjectId: string, changed: () => void): () => void;
  /**
   * Calls `listener` for each signal, and without one when signals may have been missed. Returns a function that stops
   * it.
   */
  onWake(listener: (signal?: Signal) => void): () => void;
  /** The best number of confirmations for one transaction ({@link DeploymentWriter.recordObservations}). */
  readonly confirmationsAtOnce: number;
  /** Runs reads that all see the same committed state, for audits over several pages. */
  snapshot<T>(body: (read: Reader) => Promise<T>): Promise<T>;
  /**
   * Counts one request in a fixed window that starts with its first request. Returns the count, including this one, and
   * the end of the window.
   */
  countRequest(window: {
    name: string;
    now: number;
    lengthMs: number;
  }): Promise<{ count: number; endsAt: number }>;
  /**
   * Writes about as much as a create does and rolls it back, in one transaction. Fails where there is no room for a
   * write.
   */
  proveWrites(): Promise<void>;
  close(): Promise<void>;
}
