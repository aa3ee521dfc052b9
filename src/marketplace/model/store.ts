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
 * A row that must be the only one of its kind was there already: of two at once, the other was first. `transact`
 * rejects with it; a body does not catch what a write throws, since its transaction is over.
 */
export class Duplicate extends Error {
  override readonly name = 'Duplicate';
}

/**
 * What can be read. In a transaction, a `byId` or `byVolumeId` locks its row until the end, and a list of open or due
 * rows does not: who writes one of those reads it by id first.
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

/** A team with what is being billed to it. */
export type TeamWithLoad = TeamRecord & TeamLoad;

export interface TeamReader {
  byId(id: string): Promise<TeamRecord | null>;
  /** Without a lock; exact where the caller holds the team's row. */
  load(id: string): Promise<TeamLoad | null>;
  bySlug(slug: string): Promise<TeamRecord | null>;
  list(): Promise<TeamRecord[]>;
  /** By their slugs, from the one after `after` on. `text` is looked for in id, name and slug. */
  page(of: { text?: string | undefined; after?: string | undefined; limit: number }): Promise<TeamWithLoad[]>;
  /** Those that are billed for something. */
  spending(): Promise<TeamWithLoad[]>;
  count(): Promise<number>;
  /** Teams to check by `now`, then those that a wrong clock scheduled hours ahead. `after`: the end of the last page. */
  due(of: { now: number; after?: PageEnd | undefined; limit: number }): Promise<PageEnd[]>;
  /** The oldest membership first. */
  membershipsOf(userId: string): Promise<MemberRecord[]>;
  /** The owner first, then by when they joined. */
  members(teamId: string): Promise<MemberRecord[]>;
  member(teamId: string, userId: string): Promise<MemberRecord | null>;
}
export interface TeamWriter extends TeamReader {
  insert(record: TeamRecord): Promise<void>;
  update(record: TeamRecord): Promise<void>;
  /**
   * When the billing job looks at it next; null: when something changes. It becomes due at once when a segment begins,
   * ends or is priced anew, and with each booking and discount.
   */
  scheduleCheck(id: string, at: number | null): Promise<void>;
  putMember(record: MemberRecord): Promise<void>;
  removeMember(teamId: string, userId: string): Promise<void>;
}

export interface DiscountReader {
  byId(id: string): Promise<DiscountRecord | null>;
  /** By `startsAt`; those that are over too. */
  ofTeam(teamId: string): Promise<DiscountRecord[]>;
  /** The same of several teams. */
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
  /** Without temporary ones; the newest first. */
  list(filter: { teamIds: readonly string[]; userId?: string }): Promise<SshKeyRecord[]>;
}
export interface SshKeyWriter extends SshKeyReader {
  insert(record: SshKeyRecord): Promise<void>;
  remove(id: string): Promise<void>;
}

/** Read for every deployment of a provider again and again, so it has only the columns that this needs. */
export type DeploymentToSync = Pick<DeploymentRecord, 'id' | 'status' | 'stoppedAt'> & {
  launchState: DeploymentRecord['launch']['state'];
  /** It has an intent for which nothing was sent. */
  isAsked: boolean;
};

export interface ActiveByPrice
  extends Pick<DeploymentRecord, 'status' | 'originalRateMicroUsd' | 'originalStoppedRateMicroUsd'> {
  isResuming: boolean;
  count: number;
}

/** Where the next page of a list begins: after the row of that time and id. */
export interface PageEnd {
  at: number;
  id: string;
}

export interface DeploymentSearch {
  /** In id, names, address and failure; in lower case. */
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
  /** Null: of none of them. */
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
    /** Absent: all of them. `offset` of those that fit are left out before, or those up to the end of a page. */
    page?: { limit: number; offset: number } | { limit: number; after?: PageEnd | undefined };
  }): Promise<DeploymentRecord[]>;
  /** Of every team, the newest first, a page at a time. */
  search(of: DeploymentSearch): Promise<DeploymentRecord[]>;
  /**
   * All of a provider that need a sync: the active ones, and those that still have to be cleaned up. `digits`: of these,
   * those whose ids end in one of them.
   */
  toSync(providerId: string, digits?: string): Promise<DeploymentToSync[]>;
  /** Those of {@link toSync} with something to do now: being deployed or changed, or still to be cleaned up. */
  newToSync(providerId: string): Promise<DeploymentToSync[]>;
  /** When the last machine of a provider was proved by SSH, of the deployments that need a sync; null: none was. */
  lastProvedAt(providerId: string): Promise<number | null>;
  /**
   * How many active ones of a team have which prices before discounts, without reading them one by one. `isResuming`:
   * stopped, and being started.
   */
  activeByPrice(teamId: string): Promise<ActiveByPrice[]>;
  /** By its unique name at the provider. */
  byProviderName(name: string): Promise<DeploymentRecord | null>;
  /** All that have this instance of the provider, also those that are over; nothing is locked. */
  byInstance(providerId: string, instanceId: string): Promise<DeploymentRecord[]>;
  /** How many need a sync, of each provider that has any. */
  countToSync(): Promise<{ providerId: string; count: number }[]>;
  /** How many there are in each status that is not over. */
  countActive(): Promise<{ status: DeploymentStatus; count: number }[]>;
  /** The same by provider, with when the provider confirmed the one that it has been silent about for longest. */
  countActiveByProvider(): Promise<ActiveAtProvider[]>;
  /** What became of those that were made since then. */
  countOutcomes(since: number): Promise<DeploymentOutcomes[]>;
  /** How many machines of each provider are ONLINE there and could not be logged in to yet, of each that has any. */
  countUnproved(): Promise<{ providerId: string; count: number }[]>;
  /** How many deployments of each GPU type were made since then. */
  countByGpuType(since: number): Promise<{ gpuType: string; count: number }[]>;
}
export interface DeploymentWriter extends DeploymentReader {
  insert(record: DeploymentRecord): Promise<void>;
  /** Also raises `revision`. Whose it is, where and when it was made, and what it has cost are left as they are. */
  update(record: DeploymentRecord): Promise<void>;
  /**
   * Writes `observedAt` only, and only where the revision is still this one and `observedAt` is not later; leaves the
   * revision. Returns the ids of those that were not written.
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
  /** All that have this volume of the provider, also those that are deleted; nothing is locked. */
  byProviderVolume(providerId: string, providerVolumeId: string): Promise<VolumeRecord[]>;
  /** All of a team that are not deleted. */
  ofTeam(teamId: string): Promise<VolumeRecord[]>;
  /** The newest first, and how many there are in all. */
  page(filter: {
    teamId: string;
    statuses?: readonly VolumeStatus[];
    offset: number;
    limit: number;
  }): Promise<{ volumes: VolumeRecord[]; total: number }>;
  /** All of a provider that are not deleted. */
  toSync(providerId: string): Promise<string[]>;
  /** Those with something to do now: an intent, or still to be cleaned up. */
  newToSync(providerId: string): Promise<string[]>;
  /** How many there are that are not deleted, of each provider that has any. */
  countByProvider(): Promise<{ providerId: string; count: number }[]>;
  /** Both ways, by the volume's internal id or the deployment's. */
  attachmentsOf(subject: { volumeId?: string; deploymentId?: string }): Promise<AttachmentRecord[]>;
}
export interface VolumeWriter extends VolumeReader {
  insert(record: VolumeRecord): Promise<void>;
  /** Also raises `revision`. */
  update(record: VolumeRecord): Promise<void>;
  /** Writes `observedAt` only; leaves the revision. */
  recordObservation(id: string, at: number): Promise<void>;
  putAttachment(record: AttachmentRecord): Promise<void>;
  removeAttachment(volumeId: string, deploymentId: string): Promise<void>;
}

/** As both were at one moment: a slice that is posted meanwhile is in both or in neither. */
export interface OpenDeploymentSegment {
  segment: SegmentRecord;
  /** Until when its provider has confirmed it. */
  confirmedUntil: number | null;
  totalCostMicroUsd: number;
}

/** A slice by its key. */
export interface SliceEnd {
  segmentId: string;
  sliceEnd: number;
}

export interface SumOfSlices {
  segment: SegmentRecord;
  /** The end of what was posted before. */
  from: number;
  /** The end of the last of them. */
  until: number;
  slices: number;
  amountMicroUsd: number;
}

/** What a segment took from `startsAt`, exclusive, to `endsAt`, in one line. */
export interface DayLine {
  segmentId: string;
  startsAt: number;
  endsAt: number;
  /** How many slices it takes the place of. */
  slices: number;
  usage: Usage;
}

/** An open segment, and what it depends on up to when it is billed. */
export interface BilledSegment {
  segment: SegmentRecord;
  /** Of a deployment. */
  status: DeploymentStatus | null;
  /** Until when a deployment's provider has confirmed it. */
  confirmedUntil: number | null;
  /** What its subject shows. */
  discountPercentage: number;
}

export interface LedgerReader {
  segmentById(id: string): Promise<SegmentRecord | null>;
  /** By `startedAt`. */
  segmentsOf(kind: SubjectKind, subjectId: string): Promise<SegmentRecord[]>;
  openSegmentOf(kind: SubjectKind, subjectId: string): Promise<SegmentRecord | null>;
  /** Without locks. Each with until when a deployment's provider has confirmed it; null for what needs no such word. */
  openSegmentsOfTeam(teamId: string): Promise<{ segment: SegmentRecord; confirmedUntil: number | null }[]>;
  /** Of these deployments, without locks: each open one with what its deployment had cost at that same moment. */
  openSegmentsOfDeployments(ids: readonly string[]): Promise<OpenDeploymentSegment[]>;
  /** All open ones, in the order of their ids, after `afterId`. */
  openSegments(page: { afterId?: string; limit: number }): Promise<SegmentRecord[]>;
  /** Those of a team with what they depend on, without locks. */
  billedSegmentsOfTeam(teamId: string): Promise<BilledSegment[]>;
  /** Open ones to post by `now`, then those that a wrong clock scheduled hours ahead; without locks. */
  dueSegments(of: { now: number; after?: PageEnd | undefined; limit: number }): Promise<SegmentRecord[]>;
  /** Those that are not rolled up. */
  slicesOf(segmentId: string): Promise<SliceRecord[]>;
  /** What a segment took on each UTC day, by the day's start; from its slices and from the lines of days. */
  daysOf(segmentId: string): Promise<{ day: number; amountMicroUsd: number }[]>;
  /**
   * The oldest slices that can be rolled up, one for each segment at most, after `after`: they ended by `until`, and
   * nothing more can be posted in their period.
   */
  toRollUp(wanted: { until: number; periodMs: number; after?: SliceEnd; limit: number }): Promise<SliceEnd[]>;
  /** Of each of these segments all slices from `startsAt`, exclusive, to `endsAt` together, if it has any. */
  sumSlices(of: { segmentIds: readonly string[]; startsAt: number; endsAt: number }): Promise<SumOfSlices[]>;
  /** The newest first. */
  transactionsOf(teamId: string, limit: number): Promise<LedgerTransactionRecord[]>;
  byReference(reference: string): Promise<LedgerTransactionRecord | null>;
  /** What was booked to teams and is no use: payments, grants, corrections; the newest first. */
  bookings(page: {
    after?: PageEnd | undefined;
    limit: number;
  }): Promise<(LedgerTransactionRecord & { amountMicroUsd: number })[]>;
  /** The sum of each account, from the entries alone. */
  balances(): Promise<{ account: string; amountMicroUsd: number }[]>;
  /** Teams whose load is not what their open segments add up to. */
  wrongLoads(): Promise<string[]>;
  /** Transactions whose entries do not add up to zero. */
  unbalanced(limit: number): Promise<string[]>;
  /**
   * Transactions whose entries are not the two that their kind has, and usage that is not of one slice, or line of a day,
   * of its amount and end.
   */
  malformed(limit: number): Promise<{ id: string; isBalanced: boolean }[]>;
  /** How many rows of each kind there are, by which it is known that {@link malformed} saw them all. */
  countRows(): Promise<{ transactions: number; entries: number; usages: number; uses: number }>;
  /** What a team was charged for use from `from`, exclusive, to `to`: a slice counts at its end. */
  usageOf(teamId: string, from: number, to: number): Promise<number>;
  /** All segments in the order of their ids, after `afterId`, each with what its slices and lines of days say. */
  auditSegments(page: { afterId?: string; limit: number }): Promise<
    {
      segment: SegmentRecord;
      slices: number;
      slicesMicroUsd: number;
      lastSliceEnd: number | null;
      /** The first end up to which they do not add up to what the segment had cost by then; null: there is none. */
      wrongAt: number | null;
    }[]
  >;
  /**
   * All subjects in the order of their ids, with the first and the last moment that must be covered. `until` null: it
   * goes on; equal to `from`: it never began to cost, nor does it run.
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
   * Writes up to when segments are posted, a slice for each that took something, with its booking, and what their
   * subjects have cost; leaves the revisions of the subjects.
   *
   * @throws {Duplicate} for a second slice of a segment with the same end
   */
  post(postings: readonly Posting[]): Promise<void>;
  /**
   * Books the transaction and its entries, which must add up to zero, and adds what they say of a team to its stored
   * balance.
   *
   * @throws {Duplicate} for a reference that was booked
   */
  book(
    transaction: LedgerTransactionRecord,
    entries: readonly Omit<LedgerEntryRecord, 'transactionId'>[],
  ): Promise<void>;
  /**
   * Puts one line of the books, with its booking, in the place of all slices of a segment from `startsAt`, exclusive, to
   * `endsAt`; at most one line for each segment. The database refuses all of them where any sum would change.
   */
  rollUp(lines: readonly DayLine[]): Promise<void>;
  /** These open segments with their subjects as both are now, locked until the end. */
  lockBilled(segments: readonly SegmentRecord[]): Promise<BilledSegment[]>;
}

export type MailState = 'waiting' | 'sent' | 'given_up';

export interface MailReader {
  /** What has to be sent by then, the oldest first. */
  due(now: number, limit: number): Promise<MailRecord[]>;
  /** The newest first. `waiting`: neither sent nor given up. */
  list(filter: {
    to?: string | undefined;
    state?: MailState | undefined;
    after?: PageEnd | undefined;
    limit: number;
  }): Promise<MailRecord[]>;
  /** What is neither sent nor given up: when the oldest was written, and when the next is tried. */
  waiting(): Promise<{ count: number; oldestCreatedAt: number | null; nextDueAt: number | null }>;
  countGivenUpSince(time: number): Promise<number>;
}
export interface MailWriter extends MailReader {
  byId(id: string): Promise<MailRecord | null>;
  /** Does nothing if there is one with the same `dedupeKey`. */
  insert(record: MailRecord): Promise<void>;
  update(record: MailRecord): Promise<void>;
  /** Deletes some of those that were written before then and are sent or given up, the oldest first; returns how many. */
  deleteEnded(before: number, limit: number): Promise<number>;
}

/** Deployments and volumes that were lost at their provider, and losses that are held. */
export interface LossReader {
  bySubject(subjectId: string): Promise<LossRecord | null>;
  /** Of what ended, at a provider. */
  countSince(providerId: string, time: number): Promise<number>;
  /** The oldest first. */
  held(providerId: string): Promise<LossRecord[]>;
  /** How many are held at each provider that has any. */
  countHeld(): Promise<{ providerId: string; count: number }[]>;
  /** How many active deployments with an instance, and volumes that are not deleted, a provider has. */
  countLive(providerId: string): Promise<number>;
  /** Those that have lost something. */
  providers(): Promise<string[]>;
}
export interface LossWriter extends LossReader {
  /** Waits for whoever counts losses at this provider: first in a transaction, before any row is locked. */
  lock(providerId: string): Promise<void>;
  put(record: LossRecord): Promise<void>;
  /** It is not held any more, if it was. */
  release(subjectId: string): Promise<void>;
}

/** What the providers sell, one row each. */
export interface CatalogReader {
  byProvider(providerId: string): Promise<CatalogRecord | null>;
  /** Of all providers that were ever read. */
  versions(): Promise<Pick<CatalogRecord, 'providerId' | 'version' | 'readAt'>[]>;
}
export interface CatalogWriter extends CatalogReader {
  put(record: CatalogRecord): Promise<void>;
  /** All of it was read again, and has not changed. */
  confirm(providerId: string, readAt: number): Promise<void>;
}

/** The leases of providers and jobs. */
export interface LeaseWriter extends NamedLeases {
  /** Frees every lease: for a process that knows that no other one runs. */
  releaseAll(): Promise<void>;
}

/** Something to do at a provider. */
export interface Signal {
  kind: 'wake' | 'ask';
  providerId: string;
  /** Of a deployment or a volume. */
  subjectId: string;
}

/** What a commit tells the processes on the database. */
export interface SignalWriter {
  /** There is something to do for a deployment or a volume: its provider's worker begins at once, wherever it runs. */
  wake(providerId: string, subjectId: string): Promise<void>;
  /** A deployment has an intent: the same, for the worker to send it. */
  ask(providerId: string, deploymentId: string): Promise<void>;
}

/** Names of single values, such as the installation's id. */
export interface SettingReader {
  get(name: string): Promise<string | null>;
}
export interface SettingWriter extends SettingReader {
  /** Writes it if there is none, and returns what there is. */
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
   * All or nothing, and durable once it resolves. `body` may run more than once where others write at the same time: it
   * has no other effect than its writes.
   *
   * @throws {StoreUnavailable | Duplicate}
   */
  transact<T>(body: (tx: Transaction) => Promise<T>): Promise<T>;
  /**
   * Calls `changed` after each commit of any process that writes the deployment or volume, and where commits may have
   * been missed. Returns what ends it.
   */
  watch(subjectId: string, changed: () => void): () => void;
  /** Calls `listener` for each signal; without one: some may have been missed. Returns what ends it. */
  onWake(listener: (signal?: Signal) => void): () => void;
  /** How many confirmed times one transaction writes best ({@link DeploymentWriter.recordObservations}). */
  readonly confirmationsAtOnce: number;
  /** Reads of which each sees what was committed at the same moment, for audits over several pages. */
  snapshot<T>(body: (read: Reader) => Promise<T>): Promise<T>;
  /**
   * Counts one request in a fixed window that begins with its first one: how many there were, this one included, and
   * when the window ends.
   */
  countRequest(window: {
    name: string;
    now: number;
    lengthMs: number;
  }): Promise<{ count: number; endsAt: number }>;
  /**
   * Writes about as much as a create does and takes it back, in one transaction: whether there is room for a write.
   */
  proveWrites(): Promise<void>;
  close(): Promise<void>;
}
