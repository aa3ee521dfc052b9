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
import type { LeaseWriter as NamedLeases } from '../../work/lease.ts';
import type { DeploymentStatus } from '../contract/deployment.ts';
import type { VolumeStatus } from '../contract/volume.ts';
import type { CatalogRecord } from './catalog-record.ts';
import type { IdempotencyReader, IdempotencyWriter } from './create-once.ts';
import type { Cleanup, DeploymentRecord } from './deployment-record.ts';
import type { PageEnd } from './ledger-records.ts';
import type {
  LedgerReader,
  LedgerWriter,
  LossReader,
  LossWriter,
  MailReader,
  MailWriter,
} from './ledger-store.ts';
import type {
  DiscountReader,
  DiscountWriter,
  KeyReader,
  KeyWriter,
  SshKeyReader,
  SshKeyWriter,
  StockAlertReader,
  StockAlertWriter,
  TeamReader,
  TeamWriter,
  UserReader,
  UserWriter,
} from './people-store.ts';
import type { PauseReader, PauseWriter } from './sales-pause.ts';
import type { AttachmentRecord, VolumeRecord, VolumeUsage } from './volume-record.ts';

export { StoreUnavailable } from '../../ports/errors.ts';

/** A unique row exists already. `transact` rejects with this. A body must not catch it: its transaction has ended. */
export class Duplicate extends Error {
  override readonly name = 'Duplicate';
}

/** The type has few columns, since they are read repeatedly for every deployment of a provider. */
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

export interface DeploymentSearch {
  /** Searched in id, names, address and failure reason; lower case. */
  text?: string | undefined;
  teamIds?: readonly string[] | undefined;
  userId?: string | undefined;
  providerId?: string | undefined;
  statuses?: readonly DeploymentStatus[] | undefined;
  /** Starts behind the end of a page. */
  after?: PageEnd | undefined;
  /** Skips that many matching rows. Only with a `limit`. */
  offset?: number | undefined;
  /** Absent: all rows. */
  limit?: number | undefined;
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

/** Deployments that were created in an hour. `reason`: they failed before they were running. */
export interface Launches {
  providerId: string;
  hour: number;
  reason: DeploymentRecord['failureReason'];
  count: number;
}

export interface DeploymentReader {
  byId(id: string): Promise<DeploymentRecord | null>;
  /** The newest first. */
  list(of: DeploymentSearch): Promise<DeploymentRecord[]>;
  /** Active deployments, and ended ones still to be cleaned up. */
  toSync(providerId: string): Promise<DeploymentToSync[]>;
  /** Those of {@link toSync} with work to do now: being deployed, being changed or still to be cleaned up. */
  newToSync(providerId: string): Promise<DeploymentToSync[]>;
  /** Counts by price before discounts. `isResuming`: stopped, and being started. */
  activeByPrice(teamId: string): Promise<ActiveByPrice[]>;
  /** Finds a deployment by its unique name at the provider. */
  byProviderName(name: string): Promise<DeploymentRecord | null>;
  /** All deployments with this instance of the provider, including ended ones. Takes no lock. */
  byInstance(providerId: string, instanceId: string): Promise<DeploymentRecord[]>;
  /** The number of deployments that need a sync, for each provider that has any. */
  countToSync(): Promise<{ providerId: string; count: number }[]>;
  /** The number of active deployments in each status. */
  countActive(): Promise<{ status: DeploymentStatus; count: number }[]>;
  /** The number of active deployments in each status at each provider, with their oldest confirmation. */
  countActiveByProvider(): Promise<ActiveAtProvider[]>;
  /** The outcomes of the deployments created since then. */
  countOutcomes(since: number): Promise<DeploymentOutcomes[]>;
  /** The deployments created since then, by hour. */
  countLaunches(since: number): Promise<Launches[]>;
  /** Machines that are ONLINE without a successful SSH login, for each provider that has any. */
  countUnproved(): Promise<{ providerId: string; count: number }[]>;
  /** The number of deployments of each GPU type created since then. */
  countByGpuType(since: number): Promise<{ gpuType: string; count: number }[]>;
}
export interface DeploymentWriter extends DeploymentReader {
  insert(record: DeploymentRecord): Promise<void>;
  /** Also increments `revision`. Leaves the owner, the provider, the creation time and the cost unchanged. */
  update(record: DeploymentRecord): Promise<void>;
  /**
   * Writes only `observedAt`, and only where the revision matches and the new time is not earlier. Returns the ids that
   * were not written.
   */
  recordObservations(
    observations: readonly { id: string; revision: number; at: number }[],
  ): Promise<string[]>;
  setCleanup(id: string, cleanup: Cleanup): Promise<void>;
}

export interface VolumeReader {
  /** Finds a volume by its internal id. */
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
  /** Those with work to do now: something is wanted that was not observed yet. */
  newToSync(providerId: string): Promise<string[]>;
  /** The number of volumes that are not deleted, for each provider that has any. */
  countByProvider(): Promise<{ providerId: string; count: number }[]>;
  /** The number of volumes whose provider shows another size than `sizeGb`, for each provider that has any. */
  countOfOtherSize(): Promise<{ providerId: string; count: number }[]>;
  /** Attachments of a volume or of a deployment, by internal id. */
  attachmentsOf(subject: { volumeId?: string; deploymentId?: string }): Promise<AttachmentRecord[]>;
}
export interface VolumeWriter extends VolumeReader {
  insert(record: VolumeRecord): Promise<void>;
  /** Also increments `revision`. */
  update(record: VolumeRecord): Promise<void>;
  /** Writes only `observedAt`. Leaves the revision unchanged. */
  recordObservation(id: string, at: number): Promise<void>;
  /** Writes only `usage`, of the provider's volumes that are not deleted. Leaves the revision unchanged. */
  recordUsage(providerId: string, usage: ReadonlyMap<string, VolumeUsage>): Promise<void>;
  putAttachment(record: AttachmentRecord): Promise<void>;
  removeAttachment(volumeId: string, deploymentId: string): Promise<void>;
}

export interface CatalogReader {
  byProvider(providerId: string): Promise<CatalogRecord | null>;
  /** The versions of all catalogs that were ever read. */
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

export interface Signal {
  kind: 'wake' | 'ask';
  providerId: string;
  /** The id of a deployment or a volume. */
  subjectId: string;
}

/** Notifications that a commit sends to the processes on the database. */
export interface SignalWriter {
  /** Wakes the worker for a deployment or a volume that has work. It starts at once, in whichever process it runs. */
  wake(providerId: string, subjectId: string): Promise<void>;
  /** Like {@link wake}, for a deployment with an intent that the worker must send. */
  ask(providerId: string, deploymentId: string): Promise<void>;
}

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
  pauses: PauseReader;
  idempotency: IdempotencyReader;
  operatorKeys: OperatorKeyReader;
  operatorSessions: OperatorSessionReader;
  audit: AuditReader;
  figures: FigureReader;
  alarms: AlarmReader;
  alarmNotices: NoticeReader;
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
  pauses: PauseWriter;
  idempotency: IdempotencyWriter;
  operatorKeys: OperatorKeyWriter;
  operatorSessions: OperatorSessionWriter;
  audit: AuditWriter;
  figures: FigureWriter;
  alarms: AlarmWriter;
  alarmNotices: NoticeWriter;
}

export interface Store {
  read: Reader;
  /**
   * The writes are durable once this resolves. `body` may run again, so it must have no effect other than its writes.
   * @throws {StoreUnavailable | Duplicate}
   */
  transact<T>(body: (tx: Transaction) => Promise<T>): Promise<T>;
  /**
   * Calls `changed` after each commit that writes the subject, by any process, and when commits may have been missed.
   * Returns a function that stops it.
   */
  watch(subjectId: string, changed: () => void): () => void;
  /** Calls `listener` without a signal when signals may have been missed. Returns a function that stops it. */
  onWake(listener: (signal?: Signal) => void): () => void;
  /** The best number of confirmations for one transaction ({@link DeploymentWriter.recordObservations}). */
  readonly confirmationsAtOnce: number;
  /** Runs reads that all see the same committed state, for audits over several pages. */
  snapshot<T>(body: (read: Reader) => Promise<T>): Promise<T>;
  /**
   * Counts a request in a fixed window that starts with its first one. Returns the count and the end of the window. A
   * window that has counted `most` requests is full: it stays as it is, and `most + 1` is returned.
   */
  countRequest(window: {
    name: string;
    now: number;
    lengthMs: number;
    most?: number;
  }): Promise<{ count: number; endsAt: number }>;
  /** Takes back one counted request of the window that ends at `endsAt`, unless that window is over. */
  uncountRequest(window: { name: string; endsAt: number }): Promise<void>;
  /** Writes about as much as a create does and rolls it back. Rejects if there is no room for it. */
  proveWrites(): Promise<void>;
  close(): Promise<void>;
}
