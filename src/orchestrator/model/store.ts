import type { InstanceStatus } from '../../contract/instance.ts';
import type {
  AlarmReader,
  AlarmWriter,
  NoticeReader,
  NoticeWriter,
} from '../../operator-kit/alarms/model.ts';
import type {
  AuditReader,
  AuditWriter,
  FigureReader,
  FigureWriter,
  OperatorKeyReader,
  OperatorKeyWriter,
  OperatorSessionReader,
  OperatorSessionWriter,
} from '../../operator-kit/model.ts';
import type { AttemptReader, AttemptWriter, Pruned, PruneRequest } from './attempt.ts';
import type {
  AccountUse,
  ClaimReader,
  ClaimWriter,
  StorageClaimReader,
  StorageClaimWriter,
} from './claims.ts';
import type { CordonReader, CordonWriter } from './cordon.ts';
import type { CredentialReader, CredentialWriter } from './credentials.ts';
import type { HistoryReader, HistoryWriter } from './history.ts';
import type { MarkReader, MarkWriter } from './marks.ts';
import type { Attachment, InstanceRecord, VolumeRecord } from './records.ts';
import type { SightingReader, SightingWriter } from './sighting.ts';
import type { Lease, ResourceKind, WorkReader, WorkWriter } from './work.ts';

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
  /** The beginning of the id. */
  idPrefix?: string | undefined;
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
  /** Finds a row by id, tombstones included. */
  byId(id: string): Promise<InstanceRecord | null>;
  byOwnerRef(ref: string): Promise<InstanceRecord | null>;
  /** Lists the instances that are not destroyed, oldest first. */
  list(filter: { accountId?: string; region?: string }): Promise<InstanceRecord[]>;
  /** The existing rows, tombstones included, in no order. */
  byIds(ids: readonly string[]): Promise<InstanceRecord[]>;
  /**
   * The next `limit` instances of an account's list after `after`. Without `after`, the list begins with the first one.
   */
  page(filter: {
    accountId: string;
    region?: string;
    after?: ListedInstance;
    limit: number;
  }): Promise<ListedInstance[]>;
  /** The next `limit` results after `after`. Without `after`, they begin with the first one. */
  search(
    of: InstanceSearch & { order: 'oldest' | 'newest'; after?: ListedInstance; limit: number },
  ): Promise<InstanceRecord[]>;
  /** How many instances match. */
  countFound(of: InstanceSearch): Promise<number>;
  /**
   * The next `limit` instances that are not destroyed, after `after`. Without `after`, they begin with the first one.
   */
  livePage(filter: { after?: LiveInstance; limit: number }): Promise<LiveInstance[]>;
  /** Counts the instances that are not destroyed, on `of` or on all platforms. */
  countByStatus(of?: PlatformPart): Promise<{ status: InstanceStatus; count: number }[]>;
  /** Counts the instances that are not destroyed. */
  countByPlacement(): Promise<PlacedInstances[]>;
  /** Counts the instances that are not destroyed. */
  countByPlatform(): Promise<PlatformUse[]>;
  /** Counts the instances that are not destroyed, by platform and host. */
  countByHost(): Promise<HostUse[]>;
  /** Counts the instances that are not destroyed. */
  countByAccount(): Promise<{ accountId: string; count: number }[]>;
  /** The number of tombstones of each platform. */
  endedByPlatform(): Promise<Omit<PlatformUse, 'anId'>[]>;
}
export interface InstanceWriter extends InstanceReader {
  insert(record: InstanceRecord): Promise<void>;
  update(record: InstanceRecord): Promise<void>;
  /** Whether this transaction has written the row. */
  hasWritten(id: string): boolean;
  prune(tombstones: PruneRequest): Promise<Pruned>;
}

export interface VolumeReader {
  /** Finds a row by id, tombstones included. */
  byId(id: string): Promise<VolumeRecord | null>;
  byOwnerRef(ref: string): Promise<VolumeRecord | null>;
  attachmentsOfVolume(volumeId: string): Promise<Attachment[]>;
  attachmentsOfInstance(instanceId: string): Promise<Attachment[]>;
  /** The volumes of an account that are not proved gone, as their platforms know them, ordered by id. */
  liveOf(accountId: string): Promise<Pick<VolumeRecord, 'id' | 'platform' | 'ownerRef'>[]>;
  /** Counts the volumes that are not proved gone. */
  countByPlatform(): Promise<PlatformUse[]>;
  /** The number of tombstones of each platform. */
  endedByPlatform(): Promise<Omit<PlatformUse, 'anId'>[]>;
}
export interface VolumeWriter extends VolumeReader {
  insert(record: VolumeRecord): Promise<void>;
  update(record: VolumeRecord): Promise<void>;
  prune(tombstones: PruneRequest): Promise<Pruned>;
  putAttachment(attachment: Attachment): Promise<void>;
  removeAttachment(volumeId: string, instanceId: string): Promise<void>;
}

/** The identity of this database on its platforms. */
export interface Installation {
  /** Distinguishes this database's resources from those of another Berth on the same platform. */
  id: string;
  /** The platforms' drivers and digests of their settings by name, in JSON. */
  platform: string;
}
export interface InstallationReader {
  /** Null if no server has started on this database. */
  get(): Promise<Installation | null>;
}
export interface InstallationWriter extends InstallationReader {
  put(installation: Installation): Promise<void>;
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

/** Reads committed data. Has no write methods: writes exist only inside a transaction, by type. */
export interface Reader {
  instances: InstanceReader;
  volumes: VolumeReader;
  attempts: AttemptReader;
  sightings: SightingReader;
  claims: ClaimReader;
  storageClaims: StorageClaimReader;
  work: WorkReader;
  credentials: CredentialReader;
  marks: MarkReader;
  losses: LossReader;
  alarms: AlarmReader;
  alarmNotices: NoticeReader;
  cordons: CordonReader;
  history: HistoryReader;
  operatorKeys: OperatorKeyReader;
  operatorSessions: OperatorSessionReader;
  audit: AuditReader;
  figures: FigureReader;
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
  alarmNotices: NoticeWriter;
  cordons: CordonWriter;
  history: HistoryWriter;
  operatorKeys: OperatorKeyWriter;
  operatorSessions: OperatorSessionWriter;
  audit: AuditWriter;
  figures: FigureWriter;
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
  /** Called with the instances that the commit wrote, in their current state. */
  instancesChanged?(records: readonly InstanceRecord[]): void;
  /** Called if the commit wrote work that may be due. */
  workChanged?(): void;
  /** Called if the commit may have ended a credential. Not called for commits of other processes. */
  credentialsEnded?(): void;
  /** Called if commits of other processes may have been missed: all caches may be outdated. */
  commitsMissed?(): void;
}

/** Every method rejects with {@link StoreUnavailable} while the store cannot answer. */
export interface Store {
  readonly read: Reader;
  /** Whether other processes may serve the same database. */
  readonly isShared: boolean;
  /**
   * Whether commits of every process arrive within seconds. If false, do not use caches. The call is cheap: each polled
   * read makes it.
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
  /** When the next row of a platform can be claimed. Null if it has no open work. */
  nextWorkAt(platform: string): Promise<number | null>;
  /**
   * Makes all work claimable: no other process holds a lease, and a pause may be misdated, since the clock may have been
   * set back since. A step that waited for an earlier create waits again. Does nothing if the database is shared.
   */
  takeOverWork(now: number): Promise<void>;
  /** Checks that there is room for a write: writes about as much as a create and rolls it back, in one transaction. */
  proveWrites(): Promise<void>;
  subscribe(listener: CommitListener): () => void;
  close(): Promise<void>;
}
