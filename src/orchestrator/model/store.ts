import type { InstanceStatus } from '../../contract/instance.ts';
import type {
  AuditReader,
  AuditWriter,
  OperatorKeyReader,
  OperatorKeyWriter,
} from '../../operators/model.ts';
import type { AlarmReader, AlarmWriter } from './alarm.ts';
import type { Attempt } from './attempt.ts';
import type { CordonReader, CordonWriter } from './cordon.ts';
import type { HistoryReader, HistoryWriter } from './history.ts';
import { DEFAULT_PLATFORM } from './platform-resource.ts';
import type {
  AccountRecord,
  ApiKeyRecord,
  Attachment,
  InstanceRecord,
  TokenRecord,
  VolumeRecord,
} from './records.ts';
import type { ListingFact, Sighting } from './sighting.ts';
import type { InstanceWorkKind, Lease, LeaseCheck, OpenWork, ResourceKind, Work } from './work.ts';

export { StoreUnavailable } from '../../ports/errors.ts';

/** A position in an account's list; it never changes. */
export type ListedInstance = Pick<InstanceRecord, 'id' | 'createdAt'>;

/** The columns of an instance's row that are compared with the platform's machines. */
export type LiveInstance = Pick<
  InstanceRecord,
  | 'id'
  | 'accountId'
  | 'createdAt'
  | 'ownerRef'
  | 'status'
  | 'endpoint'
  | 'updatedAt'
  | 'version'
  | 'createOpenUntil'
  | 'platform'
  | 'host'
>;

export interface PlatformPart {
  platform: string;
  host?: string;
}

/** How many live rows a platform has, and the id of one of them. */
export interface PlatformUse {
  platform: string;
  count: number;
  anId: string;
}

/** How many live instances of a status a host has. */
export type HostUse = Pick<InstanceRecord, 'platform' | 'host' | 'status'> & { count: number };

/** An operator's search among the instances that are not destroyed. */
export interface InstanceSearch {
  accountId?: string | undefined;
  status?: InstanceStatus | undefined;
  offerId?: string | undefined;
  region?: string | undefined;
  platform?: string | undefined;
  host?: string | undefined;
  name?: string | undefined;
  /**
   * Matches anywhere in the id, the name, the owner ref, the endpoint, the error or the cause of failure. Only A to Z
   * are matched regardless of case.
   */
  text?: string | undefined;
}

/** How many instances of an offer a region has in a status, and their total price. */
export interface PlacedInstances {
  offerId: string;
  region: string;
  status: InstanceStatus;
  count: number;
  priceMicroUsdPerHour: number;
}

export interface InstanceReader {
  /** Includes tombstones. */
  byId(id: string): Promise<InstanceRecord | null>;
  byOwnerRef(ref: string): Promise<InstanceRecord | null>;
  /** Without destroyed instances, oldest first. */
  list(filter: { accountId?: string; region?: string }): Promise<InstanceRecord[]>;
  /** The existing rows, tombstones included, in no order. */
  byIds(ids: readonly string[]): Promise<InstanceRecord[]>;
  /** The next `limit` instances of an account's list after `after`. Without `after`: from the first one. */
  page(filter: {
    accountId: string;
    region?: string;
    after?: ListedInstance;
    limit: number;
  }): Promise<ListedInstance[]>;
  /** The next `limit` results after `after`. Without `after`: from the first one. */
  search(
    of: InstanceSearch & { order: 'oldest' | 'newest'; after?: ListedInstance; limit: number },
  ): Promise<InstanceRecord[]>;
  /** How many instances match. */
  countFound(of: InstanceSearch): Promise<number>;
  /** The next `limit` instances that are not destroyed, after `after`. Without `after`: from the first one. */
  livePage(filter: { after?: LiveInstance; limit: number }): Promise<LiveInstance[]>;
  /** Without destroyed instances, on `of` or on all platforms. */
  countByStatus(of?: PlatformPart): Promise<{ status: InstanceStatus; count: number }[]>;
  /** Without destroyed instances. */
  countByPlacement(): Promise<PlacedInstances[]>;
  /** Without destroyed instances. */
  countByPlatform(): Promise<PlatformUse[]>;
  /** Without destroyed instances, by platform and host. */
  countByHost(): Promise<HostUse[]>;
  /** Without destroyed instances. */
  countByAccount(): Promise<{ accountId: string; count: number }[]>;
  /** The number of tombstones of each platform. */
  endedByPlatform(): Promise<Omit<PlatformUse, 'anId'>[]>;
}
export interface InstanceWriter extends InstanceReader {
  insert(record: InstanceRecord): Promise<void>;
  update(record: InstanceRecord): Promise<void>;
  /** Whether this transaction has written the row. */
  hasWritten(id: string): boolean;
  /** Deletes tombstones. */
  prune(tombstones: PruneRequest): Promise<Pruned>;
}

/**
 * Up to `limit` tombstones of a platform that ended before `endedBefore`, oldest first. Rows that another row refers to
 * are kept.
 */
export interface PruneRequest {
  platform: string;
  endedBefore: number;
  limit: number;
}
export interface Pruned {
  ids: string[];
  /** The latest creation time among them. Null: none were deleted. */
  newestCreatedAt: number | null;
}

export interface VolumeReader {
  /** Includes tombstones. */
  byId(id: string): Promise<VolumeRecord | null>;
  byOwnerRef(ref: string): Promise<VolumeRecord | null>;
  attachmentsOfVolume(volumeId: string): Promise<Attachment[]>;
  attachmentsOfInstance(instanceId: string): Promise<Attachment[]>;
  /** The volumes of an account that are not proved gone, ordered by id. */
  liveIdsOf(accountId: string): Promise<string[]>;
  /** Counts the volumes that are not proved gone. */
  countByPlatform(): Promise<PlatformUse[]>;
  /** The number of tombstones of each platform. */
  endedByPlatform(): Promise<Omit<PlatformUse, 'anId'>[]>;
}
export interface VolumeWriter extends VolumeReader {
  insert(record: VolumeRecord): Promise<void>;
  update(record: VolumeRecord): Promise<void>;
  /** Deletes tombstones. */
  prune(tombstones: PruneRequest): Promise<Pruned>;
  putAttachment(attachment: Attachment): Promise<void>;
  removeAttachment(volumeId: string, instanceId: string): Promise<void>;
}

/**
 * A position among the changes of an account. Each change with a higher number and each change of `open` follows it.
 */
export interface ChangePosition {
  /** A change with this number follows if its id is greater than `afterId`. */
  from: number;
  afterId: string;
  /** Lower numbers whose transactions had not ended. */
  open: readonly number[];
}
/** An instance or a volume that was written, and its version at that time. */
export interface ResourceChange {
  kind: ResourceKind;
  id: string;
  version: number;
}
export interface ChangesPage {
  /** Changes after a restore. A position of another epoch is invalid. */
  epoch: string;
  /**
   * At most `limit`; each resource appears at most once, in its current state. Destroyed resources are listed until
   * they are pruned.
   */
  changes: ResourceChange[];
  /** Where the next page begins. */
  next: ChangePosition;
  /** Whether more changes follow. */
  isCut: boolean;
  /**
   * The following changes are unknown: the position is beyond the last change, or too many transactions are open to
   * page.
   */
  isLost: boolean;
}
export interface ChangeReader {
  /**
   * The changes of an account after a position, as committed at the time of the read. Later commits follow `next`, in
   * any order. `after` null: returns no changes, only the current end.
   */
  page(of: { accountId: string; after: ChangePosition | null; limit: number }): Promise<ChangesPage>;
}

/** Taken units of an offer in a region. */
export interface PlacementUse {
  offerId: string;
  region: string;
  claimed: number;
}
/** A unit that an instance holds. */
export interface HeldClaim {
  ownerRef: string;
  platform: string;
  status: InstanceStatus;
  /** The instance failed and its machine is kept for the operator. */
  isKept: boolean;
  offerId: string;
  region: string;
}
export interface ClaimReader {
  use(): Promise<PlacementUse[]>;
  /** Claims of instances in ERROR. Their machines are kept for the operator or being removed. */
  ofFailed(): Promise<PlacementUse[]>;
  /** Every claim, with the data of its instance. */
  held(): Promise<HeldClaim[]>;
  isHeldBy(instanceId: string): Promise<boolean>;
}
export interface ClaimWriter extends ClaimReader {
  /** Takes one unit unless all `capacity` units are taken. True: the instance now holds one. */
  take(claim: { instanceId: string; offerId: string; region: string; capacity: number }): Promise<boolean>;
  /** Releases the unit. True: the instance held one. A second release has no effect. */
  release(instanceId: string): Promise<boolean>;
}

/** Storage that volumes claim in a region. */
export interface StorageClaimReader {
  use(): Promise<{ region: string; claimedGb: number }[]>;
  /** In GB. 0: none. */
  heldBy(volumeId: string): Promise<number>;
}
export interface StorageClaimWriter extends StorageClaimReader {
  /**
   * Sets the volume's claim to `gb`, larger or smaller than before, unless that exceeds what the other volumes leave of
   * `capacityGb` (null: no limit). True: the volume now holds it.
   */
  take(claim: { volumeId: string; region: string; gb: number; capacityGb: number | null }): Promise<boolean>;
  /** Releases the volume's claim. True: it held one. */
  release(volumeId: string): Promise<boolean>;
}

/** What an account has. The figures stay valid until the end of the transaction only after `lock`. */
export interface AccountUse {
  /** Serializes the transactions that add to what the account has. */
  lock(accountId: string): Promise<void>;
  /** Prevents the account from being closed before this transaction ends. */
  keepOpen(accountId: string): Promise<void>;
  /** Waits for transactions that called `keepOpen`. Later calls of `keepOpen` wait for this transaction. */
  lockToClose(accountId: string): Promise<void>;
  /** Counts instances that are not destroyed. */
  instances(accountId: string): Promise<number>;
  /** Counts volumes that are not proved gone. */
  volumes(accountId: string): Promise<number>;
  /** The storage that its volumes claim. */
  storageGb(accountId: string): Promise<number>;
  liveTokens(accountId: string, now: number): Promise<number>;
}

export interface WorkReader {
  /** In a transaction, locks the row: no server can claim it meanwhile. */
  of(resourceId: string): Promise<(Work & Pick<OpenWork, 'leaseUntil'>) | null>;
  /** The number of rows of open work, and when the oldest first became due, regardless of later tries. */
  backlog(): Promise<{ count: number; oldestDueAt: number | null }>;
  /** How many instances have open work, by kind of work. */
  countInstancesByStep(): Promise<{ step: InstanceWorkKind; count: number }[]>;
  /** The longest waiting first. */
  list(limit: number): Promise<OpenWork[]>;
}
export interface WorkWriter extends WorkReader {
  /**
   * Replaces the work of a resource. Without a `cookie` it starts from the beginning. A held lease stays held, so the
   * running call settles first.
   */
  put(
    work: Pick<Work, 'resourceId' | 'resourceKind' | 'kind' | 'notBefore' | 'deadlineAt'> &
      Partial<Pick<Work, 'cookie'>>,
  ): Promise<void>;
  /** Makes open work due at once. */
  makeDue(resourceId: string, now: number): Promise<void>;
  /**
   * Locks the row for this transaction and returns whether `lease` still holds it, and its current deadline: the end of
   * an outage may have moved it since the claim.
   */
  check(lease: Lease): Promise<LeaseCheck>;
  /** Moves the end of the lease, in milliseconds since the epoch. False: another process holds it. */
  renew(lease: Lease, until: number): Promise<boolean>;
  /**
   * Releases the lease. `later`: when and with which cookie the same step continues. A wait or a hold that `later` does
   * not mention has ended.
   */
  release(
    lease: Lease,
    later?: Pick<Work, 'cookie' | 'notBefore' | 'lastError'> &
      Partial<Pick<Work, 'attempt' | 'waitedAttempt' | 'isHeld'>>,
  ): Promise<void>;
  /** Extends the deadline of every open step on a platform by `byMs`, such as the length of its outage. */
  extendDeadlines(platform: string, byMs: number): Promise<void>;
  /** Replaces the step that `lease` holds with another step of the same resource, and releases the lease. */
  replace(lease: Lease, next: Pick<Work, 'kind' | 'notBefore' | 'deadlineAt'>): Promise<void>;
  /** Ends the step. No other step follows. */
  finish(lease: Lease): Promise<void>;
}

/**
 * Timestamps stored for a platform: the start of its outage, since when too many of its volumes are missing, until when
 * the operator accepts losses beyond the cap, when the backup was taken that this database was restored from, and the
 * latest creation time of a pruned instance or volume.
 */
export type PlatformMark =
  | 'platform_down_since'
  /** Never written. A transaction reads it to serialize the choice of hosts. */
  | 'placing'
  | 'volumes_doubted_since'
  | 'losses_accepted_until'
  | 'restored_from'
  | 'instances_pruned_until'
  | 'volumes_pruned_until';
/** The name of a mark. Marks of the platform `default` do not contain the platform. See {@link markOf}. */
export type MarkName =
  | PlatformMark
  | `${PlatformMark}:${string}`
  | 'reload_requested_at'
  /** The highest number among pruned changes. Numbers are not reused. SQLite only. */
  | 'changes_pruned_until'
  /** The account of BERTH_API_KEY was closed for good. */
  | 'default_account_closed'
  /** For a machine, by its ref. */
  | `adopt_requested:${string}`
  | `release_requested:${string}`;

/** The name of a platform's mark. */
export function markOf(platform: string, name: PlatformMark): MarkName {
  return platform === DEFAULT_PLATFORM ? name : `${name}:${platform}`;
}

export interface MarkReader {
  /** Milliseconds since the epoch. Null: the mark does not exist. */
  get(name: MarkName): Promise<number | null>;
}
export interface MarkWriter extends MarkReader {
  put(name: MarkName, at: number): Promise<void>;
  /** Removes the mark and returns its value. Of several concurrent callers, one gets the value. */
  remove(name: MarkName): Promise<number | null>;
}

/** The identity of this database on its platforms. */
export interface Installation {
  /** Distinguishes our resources from those of another Berth on the same platform. */
  id: string;
  /** The platforms' names and drivers, in the format of reconciliation/installation.ts. */
  platform: string;
}
export interface InstallationReader {
  /** Null: no server has started on this database. */
  get(): Promise<Installation | null>;
}
export interface InstallationWriter extends InstallationReader {
  put(installation: Installation): Promise<void>;
}

export interface AttemptReader {
  /** The earlier attempts of a resource, oldest first. */
  of(resourceId: string): Promise<Attempt[]>;
  byRef(ref: string): Promise<Attempt | null>;
}
export interface AttemptWriter extends AttemptReader {
  /** Inserts an attempt, or replaces it. */
  put(attempt: Attempt): Promise<void>;
  /** Deletes the row of an attempt that has become the newest of its resource. */
  remove(ref: string): Promise<void>;
  /** Deletes up to `limit` closed attempts that ended before `endedBefore` and whose resource no longer has a row. */
  prune(of: PruneRequest): Promise<void>;
}

export interface SightingReader {
  /** The last listing of a kind. Null: none. */
  listing(platform: string, resourceKind: ResourceKind): Promise<ListingFact | null>;
  /** The sightings of a platform, oldest first. */
  list(platform: string): Promise<Sighting[]>;
  /** Whether a platform shows a resource of that id without a row. */
  hasNoRow(resourceId: string): Promise<boolean>;
}
export interface SightingWriter extends SightingReader {
  putListing(listing: ListingFact): Promise<void>;
  put(sighting: Sighting): Promise<void>;
  remove(sighting: Pick<Sighting, 'platform' | 'resourceKind' | 'what' | 'name'>): Promise<void>;
}

/** The instances lost on their platforms, with the time of each loss. The loss caps count them. */
export interface LossReader {
  countSince(time: number, of: PlatformPart): Promise<number>;
  /** Whether a loss of this instance is recorded, at any time. */
  includes(instanceId: string): Promise<boolean>;
}
export interface LossWriter extends LossReader {
  add(loss: { instanceId: string; at: number }): Promise<void>;
}

export interface IdempotencyRecord {
  accountId: string;
  key: string;
  /** SHA-256 of the request. */
  requestDigest: Buffer;
  /** The resource that the request made. */
  resourceId: string;
  createdAt: number;
}

export interface CredentialReader {
  accountById(id: string): Promise<AccountRecord | null>;
  accountByName(name: string): Promise<AccountRecord | null>;
  listAccounts(): Promise<AccountRecord[]>;
  /** A key of a closed account reads as revoked. */
  keyByDigest(digest: Buffer): Promise<ApiKeyRecord | null>;
  listKeys(accountId?: string): Promise<ApiKeyRecord[]>;
  tokenByDigest(digest: Buffer): Promise<TokenRecord | null>;
}
export interface CredentialWriter extends CredentialReader {
  insertAccount(record: Omit<AccountRecord, 'closedAt'>): Promise<void>;
  setPasswordHash(accountId: string, hash: string): Promise<void>;
  insertKey(record: ApiKeyRecord): Promise<void>;
  revokeKey(id: string, at: number): Promise<void>;
  recordKeyUse(id: string, at: number): Promise<void>;
  /** Revokes each key of an account, removes its password and deletes its tokens. */
  endAccess(accountId: string, at: number): Promise<void>;
  /** Closes an account for good. An account that is already closed keeps its first time. */
  closeAccount(accountId: string, at: number): Promise<void>;
  /** Deletes the rows of closed accounts that have no resources left, not even tombstones. */
  deleteClosedAccounts(): Promise<void>;
  /** Deletes an account with its keys. False: it has instances or volumes (tombstones count), and is left unchanged. */
  deleteAccount(accountId: string): Promise<boolean>;
  insertToken(record: TokenRecord): Promise<void>;
  /** Deletes the tokens of an account that the credential with that digest obtained. */
  deleteTokensBoughtWith(accountId: string, parentDigest: Buffer): Promise<void>;
  deleteTokensExpiredBefore(time: number): Promise<void>;
}

/** Reads committed data. Has no write methods: writes exist only inside a transaction, by type. */
export interface Reader {
  instances: InstanceReader;
  volumes: VolumeReader;
  changes: ChangeReader;
  attempts: AttemptReader;
  sightings: SightingReader;
  claims: ClaimReader;
  storageClaims: StorageClaimReader;
  work: WorkReader;
  credentials: CredentialReader;
  marks: MarkReader;
  losses: LossReader;
  alarms: AlarmReader;
  cordons: CordonReader;
  history: HistoryReader;
  operatorKeys: OperatorKeyReader;
  audit: AuditReader;
  installation: InstallationReader;
}

/**
 * Reading an instance, a volume or work by id locks its row until the end of the transaction. To write work, read the
 * resource first, then the work, so that no write is lost. Read instances before volumes, each kind ordered by id
 * (`lockInstances`, `lockVolumes`), which prevents deadlocks. Own inserts are exempt.
 */
export interface Transaction extends Reader {
  instances: InstanceWriter;
  volumes: VolumeWriter;
  attempts: AttemptWriter;
  sightings: SightingWriter;
  claims: ClaimWriter;
  storageClaims: StorageClaimWriter;
  accountUse: AccountUse;
  work: WorkWriter;
  credentials: CredentialWriter;
  marks: MarkWriter;
  losses: LossWriter;
  alarms: AlarmWriter;
  cordons: CordonWriter;
  history: HistoryWriter;
  operatorKeys: OperatorKeyWriter;
  audit: AuditWriter;
  installation: InstallationWriter;
  idempotency: {
    find(accountId: string, key: string): Promise<IdempotencyRecord | null>;
    insert(record: IdempotencyRecord): Promise<void>;
    deleteCreatedBefore(time: number): Promise<void>;
  };
}

/**
 * Called after each commit, before the transaction's promise resolves. Commits of other processes follow shortly after.
 */
export interface CommitListener {
  /** The instances that the commit wrote, in their current state. */
  instancesChanged?(records: readonly InstanceRecord[]): void;
  /** The accounts whose volumes the commit wrote. */
  volumesChanged?(accountIds: ReadonlySet<string>): void;
  /** The commit wrote work that may be due. */
  workChanged?(): void;
  /** Commits of other processes may have been missed, so all caches may be outdated. */
  commitsMissed?(): void;
}

/** Every method rejects with {@link StoreUnavailable} while the store cannot answer. */
export interface Store {
  readonly read: Reader;
  /** Whether other processes may serve the same database. */
  readonly isShared: boolean;
  /**
   * Whether commits of every process arrive within seconds. If false, do not use caches. Cheap: each polled read calls
   * it.
   */
  isCommitFeedLive(): boolean;
  /**
   * Runs `body` in one transaction. When the promise resolves, all of it is durable; when it rejects, nothing was
   * written.
   */
  transact<T>(body: (tx: Transaction) => Promise<T>): Promise<T>;
  /** Claims up to `limit` rows of a platform that are due and not leased, in one statement. */
  claimWork(claim: {
    platform: string;
    owner: string;
    now: number;
    leaseUntil: number;
    limit: number;
    resourceKind: ResourceKind;
  }): Promise<Lease[]>;
  /** When the next row of a platform can be claimed. Null: it has no open work. */
  nextWorkAt(platform: string): Promise<number | null>;
  /** Ends the leases of processes that cannot be alive any more. Does nothing if the database is shared. */
  endAbandonedLeases(): Promise<void>;
  /** Checks that there is room for a write: writes about as much as a create and rolls it back, in one transaction. */
  proveWrites(): Promise<void>;
  subscribe(listener: CommitListener): () => void;
  close(): Promise<void>;
}
