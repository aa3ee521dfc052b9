import {
  type DeploymentRecord,
  untouchedDeployment,
} from '../../../src/marketplace/model/deployment-record.ts';
import type { Intent, IntentKind } from '../../../src/marketplace/model/intent.ts';
import type {
  LedgerEntryRecord,
  LedgerTransactionRecord,
  MailRecord,
  Posting,
  SegmentRecord,
} from '../../../src/marketplace/model/ledger-records.ts';
import type {
  ApiKeyRecord,
  BalanceWatch,
  DiscountRecord,
  MemberRecord,
  SshKeyRecord,
  StockAlertRecord,
  TeamRecord,
  UserRecord,
} from '../../../src/marketplace/model/people.ts';
import type { Store, Transaction } from '../../../src/marketplace/model/store.ts';
import type { VolumeRecord } from '../../../src/marketplace/model/volume-record.ts';
import { START_AT } from '../time/scheduler.ts';

/** Samples of every record. They belong to the unchanged {@link user} and {@link team}. */

export const now = START_AT;
export const userId = 'usr-1';
export const teamId = 'team-1';
export const providerId = 'provider-a';

export function user(changes: Partial<UserRecord> = {}): UserRecord {
  const id = changes.id ?? userId;
  return {
    id,
    email: `${id}@example.com`,
    name: `User ${id}`,
    currentTeamId: null,
    mayMakeKeys: true,
    createLimit: null,
    minimumRuntimeMinutes: null,
    wantsDeploymentMail: true,
    wantsMarketingMail: true,
    createdAt: now,
    suspension: null,
    ...changes,
  };
}

const noWatch: BalanceWatch = {
  mailedMinutes: null,
  pendingMinutes: null,
  recoveredSince: null,
  exhaustedAt: null,
  volumesDeleteAt: null,
  volumesNoticeMs: null,
};

export function team(changes: Partial<TeamRecord> = {}): TeamRecord {
  const id = changes.id ?? teamId;
  return {
    id,
    name: `Team ${id}`,
    slug: id,
    ownerId: userId,
    balanceMicroUsd: 0,
    watch: noWatch,
    createdAt: now,
    memberRights: 'own',
    suspension: null,
    ...changes,
  };
}

export function member(changes: Partial<MemberRecord> = {}): MemberRecord {
  return { teamId, userId, role: 'owner', joinedAt: now, ...changes };
}

export function apiKey(changes: Partial<ApiKeyRecord> = {}): ApiKeyRecord {
  const id = changes.id ?? 'key-1';
  return {
    id,
    userId,
    digest: Buffer.from(`digest of ${id}`),
    prefix: 'bm',
    lastFour: 'abcd',
    label: null,
    createdAt: now,
    expiresAt: null,
    revokedAt: null,
    lastUsedAt: null,
    ...changes,
  };
}

export function discount(changes: Partial<DiscountRecord> = {}): DiscountRecord {
  return { id: 'disc-1', teamId, source: 'admin', percentage: 10, startsAt: now, endsAt: null, ...changes };
}

export function stockAlert(changes: Partial<StockAlertRecord> = {}): StockAlertRecord {
  return {
    id: 'alert-1',
    userId,
    providerId,
    offerId: 'offer-1',
    region: null,
    createdAt: now,
    wasSoldOut: false,
    ...changes,
  };
}

export function sshKey(changes: Partial<SshKeyRecord> = {}): SshKeyRecord {
  return {
    id: 'ssh-1',
    userId,
    teamId,
    name: 'laptop',
    publicKey: 'ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIBerthBerthBerthBerthBerthBerthBerthBerthBe',
    fingerprint: 'SHA256:LJ6CA1Uy7kkE1y9xEzEK6hSgjDkVdSYQRk1uV0vG3CY',
    isTemporary: false,
    createdAt: now,
    ...changes,
  };
}

/** A deployment that was accepted and not yet sent to its provider. */
export function deployment(changes: Partial<DeploymentRecord> = {}): DeploymentRecord {
  const id = changes.id ?? 'dep-1';
  return {
    ...untouchedDeployment,
    id,
    name: 'a deployment',
    userId,
    teamId,
    providerId,
    offerId: 'offer-1',
    gpuType: 'H100',
    gpuModel: 'H100 SXM',
    gpuCount: 1,
    region: 'eu-1',
    operatingSystem: 'ubuntu-24.04',
    instanceType: 'DEDICATED',
    vcpus: 16,
    memoryGb: 128,
    storageGb: 512.5,
    sshKeyId: 'ssh-1',
    tempSshKeyId: null,
    sshKeyName: 'laptop',
    sshKeyFingerprint: 'SHA256:LJ6CA1Uy7kkE1y9xEzEK6hSgjDkVdSYQRk1uV0vG3CY',
    extras: { deployment_type: 'vm' },
    providerMinimumRuntimeMinutes: null,
    originalRateMicroUsd: 2_000_000,
    rateMicroUsd: 2_000_000,
    discountPercentage: 0,
    providerRateMicroUsd: 2_000_000,
    orderedProviderRateMicroUsd: 2_000_000,
    createdAt: now,
    providerName: `bm-test-${id}`,
    launch: { state: 'wanted', request: null, sentAt: null },
    ...changes,
  };
}

/** A deployment that is reachable since {@link now}. */
export function runningDeployment(changes: Partial<DeploymentRecord> = {}): DeploymentRecord {
  const id = changes.id ?? 'dep-1';
  return deployment({
    status: 'running',
    ipAddress: '192.0.2.1',
    loginUser: 'ubuntu',
    sshPort: 22,
    startedAt: now,
    observedAt: now,
    providerInstanceId: `inst-${id}`,
    launch: { state: 'made', request: null, sentAt: now },
    ...changes,
  });
}

/** A change that was sent once and has no answer. */
export function intent<Kind extends IntentKind>(
  kind: Kind,
  changes: Partial<Intent<Kind>> = {},
): Intent<Kind> {
  const { since = now, attempt = 1 } = changes;
  const sentAt = attempt === 0 ? null : since;
  return { id: 1, kind, since, by: userId, until: null, attempt, sentAt, answer: null, ...changes };
}

/** A volume that exists at its provider and is not attached. */
export function volume(changes: Partial<VolumeRecord> = {}): VolumeRecord {
  const id = changes.id ?? 'vol-1';
  return {
    id,
    volumeId: `v${id}`,
    name: 'data',
    userId,
    teamId,
    providerId,
    region: 'eu-1',
    cloudId: null,
    type: null,
    sizeGb: 100,
    resizeGivenUpGb: null,
    providerSizeGb: null,
    status: 'available',
    originalRateMicroUsd: 10_000,
    rateMicroUsd: 10_000,
    discountPercentage: 0,
    discountEndsAt: null,
    lastPriceUpdateAt: now,
    totalCostMicroUsd: 0,
    createdAt: now,
    startedAt: now,
    deletedAt: null,
    lastAttachedAt: null,
    lastDetachedAt: null,
    providerName: `bm-test-${id}`,
    providerVolumeId: `pv-${id}`,
    action: null,
    refusal: null,
    observedAt: null,
    cleanup: 'none',
    usage: null,
    revision: 1,
    deletionTakenAt: null,
    requestId: null,
    ...changes,
  };
}

/** An open segment of `dep-1`. */
export function segment(changes: Partial<SegmentRecord> = {}): SegmentRecord {
  const startedAt = changes.startedAt ?? now;
  return {
    id: 'seg-1',
    subjectKind: 'deployment',
    subjectId: 'dep-1',
    teamId,
    state: 'running',
    rateMicroUsdPerHour: 2_000_000,
    originalRateMicroUsdPerHour: 2_000_000,
    discountPercentage: 0,
    providerRateMicroUsdPerHour: null,
    startedAt,
    endedAt: null,
    postedUntil: startedAt,
    postedMicroUsd: 0,
    ...changes,
  };
}

export function mail(changes: Partial<MailRecord> = {}): MailRecord {
  const id = changes.id ?? 'mail-1';
  return {
    id,
    class: 'billing',
    kind: 'low_balance',
    dedupeKey: `about ${id}`,
    to: 'usr-1@example.com',
    subject: 'Low balance',
    text: 'Add funds.',
    createdAt: now,
    dueAt: now,
    attempts: 0,
    lastError: null,
    sentAt: null,
    failedAt: null,
    ...changes,
  };
}

type Entries = readonly Omit<LedgerEntryRecord, 'transactionId'>[];

/** A usage transaction that takes `amountMicroUsd` from the team, with its entries: the arguments of `book`. */
export function usage(
  amountMicroUsd: number,
  changes: Partial<LedgerTransactionRecord> = {},
): [LedgerTransactionRecord, Entries] {
  const record: LedgerTransactionRecord = {
    id: 'txn-1',
    kind: 'usage',
    teamId,
    at: now,
    memo: 'use',
    reference: null,
    ...changes,
  };
  return [
    record,
    [
      { account: `team:${record.teamId}`, amountMicroUsd: -amountMicroUsd },
      { account: 'revenue:compute', amountMicroUsd },
    ],
  ];
}

/** A slice of `segment(of)` that ends at `at`, with its booking. */
export function posting(
  amountMicroUsd: number,
  at: number,
  { id = 'txn-1', ...of }: Partial<SegmentRecord> & { id?: string } = {},
  segmentId = 'seg-1',
): Posting {
  const [transaction, entries] = usage(amountMicroUsd, { id, at, teamId: of.teamId ?? teamId });
  return {
    segment: segment({ id: segmentId, postedUntil: at, postedMicroUsd: amountMicroUsd, ...of }),
    usage: { transaction, entries, amountMicroUsd },
  };
}

/** Grants a team an amount to spend. */
export function grant(tx: Transaction, amountMicroUsd: number, to: string = teamId): Promise<void> {
  return tx.ledger.book(
    { id: `txn-grant-${to}`, kind: 'grant', teamId: to, at: now, memo: 'a grant', reference: null },
    [
      { account: `team:${to}`, amountMicroUsd },
      { account: 'promotion', amountMicroUsd: -amountMicroUsd },
    ],
  );
}

/** Inserts the user and their team, with an amount to spend. */
export function seed(store: Store, balanceMicroUsd = 0): Promise<void> {
  return store.transact(async (tx) => {
    await tx.users.insert(user({ currentTeamId: teamId }));
    await tx.teams.insert(team());
    await tx.teams.putMember(member());
    if (balanceMicroUsd !== 0) await grant(tx, balanceMicroUsd);
  });
}
