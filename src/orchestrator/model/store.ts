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
import type { InstanceWorkKind, Lease, LeaseState, OpenWork, ResourceKind, Work } from './work.ts';

export { StoreUnavailable } from '../../ports/errors.ts';

/** A place in an account's list; it never changes. */
export type ListedInstance = Pick<InstanceRecord, 'id' | 'createdAt'>;

/** What the platform must have of an instance, by its row. */
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

/** A platform, or one of its hosts. */
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

/** How many live instances a host has of a status. */
export type HostUse = Pick<InstanceRecord, 'platform' | 'host' | 'status'> & { count: number };

/** What an operator looks for among the instances that are not destroyed. */
export interface InstanceSearch {
  accountId?: string | undefined;
  status?: InstanceStatus | undefined;
  offerId?: string | undefined;
  region?: string | undefined;
  platform?: string | undefined;
  host?: string | undefined;
  name?: string | undefined;
  /** Anywhere in the id, the name, the owner ref, the endpoint, the error or why it failed; A to Z of any case, other letters as they are. */
  text?: string | undefined;
}

/** How many instances of an offer a region has in a status, and what they cost together. */
export interface PlacedInstances {
  offerId: string;
  region: string;
  status: InstanceStatus;
  count: number;
  priceMicroUsdPerHour: number;
}

export interface InstanceReader {
  /** Tombstones included. */
  byId(id: string): Promise<InstanceRecord | null>;
  byOwnerRef(ref: string): Promise<InstanceRecord | null>;
  /** Without the destroyed ones, oldest first. */
  list(filter: { accountId?: string; region?: string }): Promise<InstanceRecord[]>;
  /** Those that exist, tombstones included, in no order. */
  byIds(ids: readonly string[]): Promise<InstanceRecord[]>;
  /** The next `limit` of an account's list after one that was listed, from the first one where there is none. */
  page(filter: {
    accountId: string;
    region?: string;
    after?: ListedInstance;
    limit: number;
  }): Promise<ListedInstance[]>;
  /** The next `limit` of what is found after one that was listed, from the first one where there is none. */
  search(
    of: InstanceSearch & { order: 'oldest' | 'newest'; after?: ListedInstance; limit: number },
  ): Promise<InstanceRecord[]>;
  /** How many are found. */
  countFound(of: InstanceSearch): Promise<number>;
  /** The next `limit` of all that are not destroyed after one that was read, from the first one where there is none. */
  livePage(filter: { after?: LiveInstance; limit: number }): Promise<LiveInstance[]>;
  /** Without the destroyed ones: of all platforms, or of what is named. */
  countByStatus(of?: PlatformPart): Promise<{ status: InstanceStatus; count: number }[]>;
  /** Without the destroyed ones. */
  countByPlacement(): Promise<PlacedInstances[]>;
  /** Without the destroyed ones. */
  countByPlatform(): Promise<PlatformUse[]>;
  /** Without the destroyed ones, by platform and host. */
  countByHost(): Promise<HostUse[]>;
  /** Without the destroyed ones. */
  countByAccount(): Promise<{ accountId: string; count: number }[]>;
  /** The tombstones of each platform. */
  endedByPlatform(): Promise<Omit<PlatformUse, 'anId'>[]>;
}
export interface InstanceWriter extends InstanceReader {
  insert(record: InstanceRecord): Promise<void>;
  update(record: InstanceRecord): Promise<void>;
  /** Whether this transaction has written that row. */
  hasWritten(id: string): boolean;
  /** Deletes tombstones. */
  prune(tombstones: PruneRequest): Promise<Pruned>;
}

/** Up to `limit` tombstones of a platform that ended before a moment, the oldest first. Those that another row needs are left. */
export interface PruneRequest {
  platform: string;
  endedBefore: number;
  limit: number;
}
export interface Pruned {
  ids: string[];
  /** The latest creation among them; null: there are none. */
  newestCreatedAt: number | null;
}

export interface VolumeReader {
  /** Tombstones included. */
  byId(id: string): Promise<VolumeRecord | null>;
  byOwnerRef(ref: string): Promise<VolumeRecord | null>;
  attachmentsOfVolume(volumeId: string): Promise<Attachment[]>;
  attachmentsOfInstance(instanceId: string): Promise<Attachment[]>;
  /** Of an account, those that are not proved gone, in the order of their ids. */
  liveIdsOf(accountId: string): Promise<string[]>;
  /** Those that are not proved gone. */
  countByPlatform(): Promise<PlatformUse[]>;
  /** The tombstones of each platform. */
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

/** A place among the changes of an account. What follows it: each change with a higher number, and those of `open`. */
export interface ChangePosition {
  /** Changes with this number follow if their id is after `afterId`. */
  from: number;
  afterId: string;
  /** Lower numbers whose transactions had not ended. */
  open: readonly number[];
}
/** An instance or volume that was written, and how often it was written by then. */
export interface ResourceChange {
  kind: ResourceKind;
  id: string;
  version: number;
}
export interface ChangesPage {
  /** A restore changes it: positions of another epoch mean nothing. */
  epoch: string;
  /** At most `limit`, each resource at most once, as it is now. Ended ones are listed, until they are pruned. */
  changes: ResourceChange[];
  /** Where the next page begins. */
  next: ChangePosition;
  /** More follow. */
  isCut: boolean;
  /** What follows is not known: the position is beyond the last change, or too many transactions are open for pages. */
  isLost: boolean;
}
export interface ChangeReader {
  /**
   * The changes of an account after a position, with all that is committed when it is read. What is committed later, in
   * whatever order, follows `next`. `after` null: no changes, only where they end now.
   */
  page(of: { accountId: string; after: ChangePosition | null; limit: number }): Promise<ChangesPage>;
}

/** Units of a placement that are taken. */
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
  /** It failed, and its machine is kept for the operator. */
  isKept: boolean;
  offerId: string;
  region: string;
}
export interface ClaimReader {
  use(): Promise<PlacementUse[]>;
  /** Those of instances in ERROR: their machines are held for the operator, or being removed. */
  ofFailed(): Promise<PlacementUse[]>;
  /** Every claim, with what is known of its instance. */
  held(): Promise<HeldClaim[]>;
  isHeldBy(instanceId: string): Promise<boolean>;
}
export interface ClaimWriter extends ClaimReader {
  /** Takes one unit unless all `capacity` units are taken; true if the instance holds one now. */
  take(claim: { instanceId: string; offerId: string; region: string; capacity: number }): Promise<boolean>;
  /** Gives the unit back; true if the instance held one. Releasing twice frees nothing twice. */
  release(instanceId: string): Promise<boolean>;
}

/** Storage of a location that volumes take. */
export interface StorageClaimReader {
  use(): Promise<{ region: string; claimedGb: number }[]>;
  /** In GB; 0: none. */
  heldBy(volumeId: string): Promise<number>;
}
export interface StorageClaimWriter extends StorageClaimReader {
  /**
   * Makes the volume's claim one of `gb`, be it larger or smaller than before, unless that is more than what the other
   * volumes leave of `capacityGb`; null: whatever they leave. True if the volume holds it now.
   */
  take(claim: { volumeId: string; region: string; gb: number; capacityGb: number | null }): Promise<boolean>;
  /** Gives back what the volume holds; true if it held something. */
  release(volumeId: string): Promise<boolean>;
}

/** What an account has. Only after `lock` does it stay so until the end of the transaction. */
export interface AccountUse {
  /** Of one account, one at a time adds to what it has. */
  lock(accountId: string): Promise<void>;
  /** The account is not closed before this transaction ends. */
  keepOpen(accountId: string): Promise<void>;
  /** Waits for those that keep it open; those that come later wait. */
  lockToClose(accountId: string): Promise<void>;
  /** Those that are not destroyed. */
  instances(accountId: string): Promise<number>;
  /** Those that are not proved gone. */
  volumes(accountId: string): Promise<number>;
  /** What its volumes claim. */
  storageGb(accountId: string): Promise<number>;
  liveTokens(accountId: string, now: number): Promise<number>;
}

export interface WorkReader {
  /** In a transaction the row is locked: no server claims it meanwhile. */
  of(resourceId: string): Promise<(Work & Pick<OpenWork, 'leaseUntil'>) | null>;
  /** Counts the rows of open work, and tells when the oldest first became due, however often it was tried since. */
  backlog(): Promise<{ count: number; oldestDueAt: number | null }>;
  /** How many instances have open work, by its kind. */
  countInstancesByStep(): Promise<{ step: InstanceWorkKind; count: number }[]>;
  /** Those that have waited longest first. */
  list(limit: number): Promise<OpenWork[]>;
}
export interface WorkWriter extends WorkReader {
  /**
   * Replaces the work of a resource; without a `cookie` it starts afresh. A lease that is held stays held, so that a
   * running call settles first.
   */
  put(
    work: Pick<Work, 'resourceId' | 'resourceKind' | 'kind' | 'notBefore' | 'deadlineAt'> &
      Partial<Pick<Work, 'cookie'>>,
  ): Promise<void>;
  /** Makes open work due at once. */
  makeDue(resourceId: string, now: number): Promise<void>;
  /**
   * Locks the row for this transaction and tells whether `lease` still holds it. Where it does, its deadline is brought
   * up to date: the end of an outage may have moved it since the claim.
   */
  check(lease: Lease): Promise<LeaseState>;
  /** Moves the end of the lease, in milliseconds since the epoch; false: another process has it. */
  renew(lease: Lease, until: number): Promise<boolean>;
  /**
   * Releases the lease; `later` says when and with which cookie the same step continues. What it does not say of a
   * wait or a hold is over.
   */
  release(
    lease: Lease,
    later?: Pick<Work, 'cookie' | 'notBefore' | 'lastError'> &
      Partial<Pick<Work, 'attempt' | 'waitedAttempt' | 'isHeld'>>,
  ): Promise<void>;
  /** Moves the deadline of every open step on a platform by `byMs`, such as the length of its outage. */
  extendDeadlines(platform: string, byMs: number): Promise<void>;
  /** Another step of the same resource takes the place of the one that `lease` holds, and the lease is released. */
  replace(lease: Lease, next: Pick<Work, 'kind' | 'notBefore' | 'deadlineAt'>): Promise<void>;
  /** The step is over and nothing follows. */
  finish(lease: Lease): Promise<void>;
}

/**
 * Stored timestamps of a platform by name: when its current outage began, since when too many of its volumes are missing, until
 * when the operator accepts losses beyond the cap, when the backup was taken that this database was restored from, and the
 * latest creation of an instance or a volume whose tombstone was deleted.
 */
export type PlatformMark =
  | 'platform_down_since'
  /** Never written: a transaction reads it to lock the choice of hosts. */
  | 'placing'
  | 'volumes_doubted_since'
  | 'losses_accepted_until'
  | 'restored_from'
  | 'instances_pruned_until'
  | 'volumes_pruned_until';
/** Those of the platform `default` have no platform in their name. See {@link markOf}. */
export type MarkName =
  | PlatformMark
  | `${PlatformMark}:${string}`
  | 'reload_requested_at'
  /** Of the changes whose rows were pruned, the highest number: numbers are not given out again. SQLite only. */
  | 'changes_pruned_until'
  /** The account that BERTH_API_KEY opens was deleted for good. */
  | 'default_account_closed'
  /** Of a machine, by its ref. */
  | `adopt_requested:${string}`
  | `release_requested:${string}`;

/** The name of a platform's mark. */
export function markOf(platform: string, name: PlatformMark): MarkName {
  return platform === DEFAULT_PLATFORM ? name : `${name}:${platform}`;
}

export interface MarkReader {
  /** Milliseconds since the epoch; null: there is no such mark. */
  get(name: MarkName): Promise<number | null>;
}
export interface MarkWriter extends MarkReader {
  put(name: MarkName, at: number): Promise<void>;
  /** The mark that there was; one of several that remove it at once gets it. */
  remove(name: MarkName): Promise<number | null>;
}

/** The identity of this database on its platforms. */
export interface Installation {
  /** Tells our resources from those of another Berth on the same platform. */
  id: string;
  /** The names of the platforms with their drivers, as reconciliation/installation.ts writes and reads them. */
  platform: string;
}
export interface InstallationReader {
  /** Null: it was never started. */
  get(): Promise<Installation | null>;
}
export interface InstallationWriter extends InstallationReader {
  put(installation: Installation): Promise<void>;
}

export interface AttemptReader {
  /** The earlier attempts of a resource, the oldest first. */
  of(resourceId: string): Promise<Attempt[]>;
  byRef(ref: string): Promise<Attempt | null>;
}
export interface AttemptWriter extends AttemptReader {
  /** Inserts an attempt, or replaces it. */
  put(attempt: Attempt): Promise<void>;
  /** Deletes the row of an attempt that is the newest of its resource now. */
  remove(ref: string): Promise<void>;
  /** Deletes up to `limit` attempts that were closed before a moment and whose resource no longer has a row. */
  prune(of: PruneRequest): Promise<void>;
}

export interface SightingReader {
  /** The last listing of a kind; null: there is none. */
  listing(platform: string, resourceKind: ResourceKind): Promise<ListingFact | null>;
  /** The sightings of a platform, the oldest first. */
  list(platform: string): Promise<Sighting[]>;
  /** Whether a platform shows a resource of that id that has no row. */
  hasNoRow(resourceId: string): Promise<boolean>;
}
export interface SightingWriter extends SightingReader {
  putListing(listing: ListingFact): Promise<void>;
  put(sighting: Sighting): Promise<void>;
  remove(sighting: Pick<Sighting, 'platform' | 'resourceKind' | 'what' | 'name'>): Promise<void>;
}

/** The instances that were lost on their platforms, and when: the loss caps count them. */
export interface LossReader {
  countSince(time: number, of: PlatformPart): Promise<number>;
  /** Whether the platform took this one, whenever that was. */
  includes(instanceId: string): Promise<boolean>;
}
export interface LossWriter extends LossReader {
  add(loss: { instanceId: string; at: number }): Promise<void>;
}

export interface IdempotencyRecord {
  accountId: string;
  key: string;
  /** SHA-256 of what was asked. */
  requestDigest: Buffer;
  /** What was made. */
  resourceId: string;
  createdAt: number;
}

export interface CredentialReader {
  accountById(id: string): Promise<AccountRecord | null>;
  accountByName(name: string): Promise<AccountRecord | null>;
  listAccounts(): Promise<AccountRecord[]>;
  /** A key of an account that is closed reads as revoked. */
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
  /** Of an account: revokes each key, removes the password and deletes the tokens. */
  endAccess(accountId: string, at: number): Promise<void>;
  /** Closes an account for good; one that is closed keeps its first time. */
  closeAccount(accountId: string, at: number): Promise<void>;
  /** Deletes the rows of the closed accounts that have nothing left, be it a tombstone. */
  deleteClosedAccounts(): Promise<void>;
  /** Deletes an account with its keys; false: it has instances or volumes, be it tombstones, and stays as it is. */
  deleteAccount(accountId: string): Promise<boolean>;
  insertToken(record: TokenRecord): Promise<void>;
  /** Of an account, those that the credential of that digest bought. */
  deleteTokensBoughtWith(accountId: string, parentDigest: Buffer): Promise<void>;
  deleteTokensExpiredBefore(time: number): Promise<void>;
}

/**
 * Reads what is committed. Has no write methods: writes exist only inside a transaction, by type.
 */
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
 * Reading an instance, a volume or a row of work by its id in a transaction locks it until the end. Whoever writes
 * work for a resource has read the resource first, in the order resource, work: so no write is lost between two.
 * Of several, instances are read before volumes, and each kind in the order of the ids (`lockInstances`,
 * `lockVolumes`): so no two transactions wait for each other. A row that the transaction itself inserts is nobody's to
 * wait for, and may come at any place.
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
 * Called after each commit, before the transaction's promise resolves; for commits of other processes soon after.
 */
export interface CommitListener {
  /** The instances that the commit wrote, as they are now. */
  instancesChanged?(records: readonly InstanceRecord[]): void;
  /** The accounts whose volumes the commit wrote. */
  volumesChanged?(accountIds: ReadonlySet<string>): void;
  /** The commit wrote work that may be due. */
  workChanged?(): void;
  /** Commits of other processes may have been missed: everything cached may be outdated. */
  commitsMissed?(): void;
}

/** Every method rejects with {@link StoreUnavailable} while the store cannot answer. */
export interface Store {
  readonly read: Reader;
  /** Whether other processes may serve the same database. */
  readonly isShared: boolean;
  /**
   * Whether commits of every process arrive within seconds. While they do not, caches must not be used. Cheap: it is
   * called on each polled read.
   */
  isCommitFeedLive(): boolean;
  /** Runs `body` in one transaction: all of it is durable when the promise resolves, or nothing happened. */
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
  /** When the next row of a platform can be claimed; null: it has no open work. */
  nextWorkAt(platform: string): Promise<number | null>;
  /** Ends the leases of processes that cannot be alive any more; none where the database is shared. */
  endAbandonedLeases(): Promise<void>;
  /**
   * Writes about as much as a create does and takes it back, in one transaction: whether there is room for a write.
   */
  proveWrites(): Promise<void>;
  subscribe(listener: CommitListener): () => void;
  close(): Promise<void>;
}
