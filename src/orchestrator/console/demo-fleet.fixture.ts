import { instance as row } from '../../../test/support/rows/orchestrator-rows.ts';
import type { Offer } from '../catalog/catalog.ts';
import type { HistoryEvent, PlatformCall } from '../model/history.ts';
import { markOf } from '../model/marks.ts';
import type { InstanceRecord } from '../model/records.ts';
import type { Transaction } from '../model/store.ts';
import type { TestConsole } from './console.fixture.ts';

const MINUTE = 60_000;
const HOUR = 60 * MINUTE;
const BATCH = 500;

/** An instance whose SSH keeps refusing the tenant's key. */
export const STUCK = 'inst-000000000000000000000000000000f1';
/** A failed instance with the end of its console. */
export const FAILED = 'inst-000000000000000000000000000000f2';
/** An instance whose machine is not proved gone. */
export const LINGERING = 'inst-000000000000000000000000000000f3';
/** A hostile name that a tenant might choose. */
export const HOSTILE = '<img src=x onerror=alert(1)>"\'& <script>alert(2)</script>';

const accounts = [
  { id: 'acct-0000000000000000000a', name: 'marketplace', passwordHash: null },
  { id: 'acct-0000000000000000000b', name: 'northwind-research', passwordHash: null },
];
const names = ['llama-sft', 'eval-7', 'render', 'notebook', 'batch-nightly', 'whisper-train', 'ci-gpu'];
const failures = [
  ['ssh', 'auth', 'the server refused the key ssh-ed25519 …Tz8Q'],
  ['create', 'capacity', 'no host has 8 GPUs free'],
  ['ssh', 'connect', 'connection timed out'],
  ['create', 'image_missing', 'there is no image debian-13'],
] as const;

/** Fills the console's database with a fleet: some instances are starting, some are stuck, some have failed. */
export async function putDemoFleet({ store, catalog, clock }: TestConsole, count = 72): Promise<void> {
  const now = clock.now();
  const offers = [...catalog.offers.values()].filter(({ placements }) =>
    placements.some(({ units }) => units > 0),
  );
  await store.transact(async (tx) => {
    for (const [index, account] of accounts.entries())
      await tx.credentials.insertAccount({ ...account, createdAt: now - (90 - index * 60) * 24 * HOUR });
  });
  for (let first = 0; first < count; first += BATCH)
    await store.transact(async (tx) => {
      for (let index = first; index < Math.min(count, first + BATCH); index++) {
        const offer = offers[index % offers.length];
        if (offer !== undefined) await putOne(tx, index, offer, now);
      }
    });
  for (const [index, [call, outcome, detail]] of [
    ...failures,
    ...failures.slice(0, 2),
    ...failures.slice(0, 1),
  ].entries())
    await putFailed(
      store,
      `inst-0000000000000000000000000000e00${index}`,
      now - index * 3 * HOUR - 20 * MINUTE,
      [{ call, outcome, tookMs: 900 + index * 311, detail }],
    );
  await putStuck(store, now);
  await putFailed(store, FAILED, now - 38 * MINUTE, [
    { call: 'get', outcome: 'observed', tookMs: 41 },
    { call: 'ssh', outcome: 'auth', tookMs: 312, detail: 'the server refused the key ssh-ed25519 …Tz8Q' },
  ]);
  await putLingering(store, now);
  await putAlarms(store, now);
}

type Store = TestConsole['store'];

const CYCLE = ['ONLINE', 'ONLINE', 'ONLINE', 'STOPPED', 'ONLINE', 'ONLINE', 'PROVISIONING'] as const;
/** Instances after this index are all ONLINE, so that a large fleet has no more due work than a small one. */
const ALL_KINDS_UNTIL = 700;

async function putOne(tx: Transaction, index: number, offer: Offer, now: number): Promise<void> {
  const place = offer.placements[index % offer.placements.length];
  if (place === undefined) return;
  const status = (index < ALL_KINDS_UNTIL ? CYCLE[index % CYCLE.length] : undefined) ?? 'ONLINE';
  const record = toRow(index, {
    offerId: offer.id,
    region: place.region,
    platform: offer.platform,
    host: `gpu-host-${(index % 9) + 1}`,
    status,
    createdAt: now - ((index * 37 * MINUTE) % (23 * HOUR)) - MINUTE,
    priceMicroUsdPerHour: offer.priceMicroUsdPerHour,
    name: index === 3 ? HOSTILE : `${names[index % names.length]}-${index}`,
  });
  await tx.instances.insert(record);
  const claim = { instanceId: record.id, offerId: offer.id, region: place.region, capacity: 1e6 };
  await tx.claims.take(claim);
  if (status === 'PROVISIONING')
    await tx.work.put({
      ...workOf(record.id),
      kind: 'create',
      notBefore: now,
      deadlineAt: now + 9 * MINUTE,
    });
  else await putLife(tx, record, 40_000 + ((index * 7919) % 140_000));
}

function toRow(index: number, changes: Partial<InstanceRecord>): InstanceRecord {
  const id = changes.id ?? `inst-1${index.toString(16).padStart(31, '0')}`;
  const plain = row(id);
  return {
    ...plain,
    ownerRef: `berth-${id}`,
    accountId: accounts[index % 3 === 0 ? 1 : 0]?.id ?? '',
    updatedAt: changes.createdAt ?? plain.updatedAt,
    endpoint: {
      publicIp: `203.0.113.${(index % 250) + 1}`,
      sshPort: 22_000 + (index % 9_000),
      sshUsername: 'ubuntu',
    },
    ...changes,
    spec: {
      ...plain.spec,
      vcpus: 26,
      memoryGb: 200,
      storageGb: 750,
      gpuCount: 1,
      gpuType: 'H100',
      image: 'ubuntu-24.04',
      requestId: `9f31c2-${index.toString(36)}`,
    },
  };
}

const workOf = (resourceId: string) => ({ resourceId, resourceKind: 'instance' as const, attempt: 1 });

type Step = Omit<HistoryEvent, 'fromStatus' | 'toStatus' | 'by'>;

function step(
  instanceId: string,
  at: number,
  cause: HistoryEvent['cause'],
  changes: Partial<Step> = {},
): Step {
  return {
    ...{
      instanceId,
      at,
      cause,
      attempt: 1,
      next: 'finish',
      detail: null,
      calls: [],
      console: null,
      tookMs: 120,
    },
    ...changes,
  };
}

async function putLife(tx: Transaction, { id, createdAt }: InstanceRecord, tookMs: number): Promise<void> {
  const calls: PlatformCall[] = [
    { call: 'get', outcome: 'observed', tookMs: 38 },
    { call: 'ssh', outcome: 'proved', tookMs: 204 },
  ];
  await tx.history.moved({
    ...{ instanceId: id, at: createdAt + tookMs, cause: 'request', detail: null },
    ...{ fromStatus: 'PROVISIONING', toStatus: 'ONLINE' },
  });
  await tx.history.step(step(id, createdAt + tookMs, 'verify', { calls, tookMs: 251 }), 'row');
}

async function putStuck(store: Store, now: number): Promise<void> {
  const begun = now - 17 * MINUTE;
  const problem = 'SSH at auth: the server refused the key ssh-ed25519 …Tz8Q of the tenant';
  const refused = {
    call: 'ssh',
    outcome: 'auth',
    tookMs: 287,
    detail: 'the server refused the key ssh-ed25519 …Tz8Q',
  };
  await store.transact(async (tx) => {
    const offer = { offerId: 'h100-sxm-1x', region: 'eu-frankfurt', platform: 'default', host: 'gpu-host-4' };
    await tx.instances.insert(
      toRow(1, {
        ...offer,
        id: STUCK,
        name: 'train-large',
        createdAt: begun,
        status: 'PROVISIONING',
        priceMicroUsdPerHour: 2_489_000,
      }),
    );
    await tx.work.put({
      ...workOf(STUCK),
      kind: 'verify',
      notBefore: now - 15 * MINUTE,
      deadlineAt: now + 3 * MINUTE,
    });
  });
  const [lease] = await store.claimWork({
    platform: 'default',
    owner: 'demo',
    now,
    leaseUntil: now + 1,
    limit: 1,
    resourceKind: 'instance',
  });
  if (lease?.resourceId !== STUCK) throw new Error('the stuck one has waited longest');
  await store.transact((tx) =>
    tx.work.release(lease, { cookie: null, notBefore: now + 24_000, lastError: problem, attempt: 14 }),
  );
  const made: PlatformCall[] = [{ call: 'create', outcome: 'done', tookMs: 3_412 }];
  const events: Step[] = [
    step(STUCK, begun + 4_000, 'create', { calls: made, next: 'verify', tookMs: 3_430 }),
    step(STUCK, begun + 21_000, 'verify', {
      next: 'again',
      detail: 'SSH at connect: connection refused',
      calls: [{ call: 'ssh', outcome: 'connect', tookMs: 12, detail: 'connection refused' }],
    }),
    step(STUCK, begun + 52_000, 'verify', { next: 'again', attempt: 4, detail: problem, calls: [refused] }),
    step(STUCK, now - 2 * MINUTE, 'verify', {
      next: 'again',
      attempt: 10,
      detail: problem,
      calls: [refused],
    }),
  ];
  for (const event of events) await store.transact((tx) => tx.history.step(event, 'row'));
}

async function putFailed(store: Store, id: string, at: number, calls: PlatformCall[]): Promise<void> {
  const [last] = calls.slice(-1);
  const error = 'The machine did not come ONLINE within 15 minutes: its SSH did not accept every key.';
  await store.transact(async (tx) => {
    const offer = { offerId: 'a100-sxm-1x', region: 'us-ashburn', platform: 'default', host: 'gpu-host-2' };
    await tx.instances.insert(
      toRow(2, {
        ...offer,
        id,
        name: 'sweep',
        status: 'ERROR',
        error,
        createdAt: at - 15 * MINUTE,
        updatedAt: at,
        priceMicroUsdPerHour: 14_320_000,
      }),
    );
    await tx.history.moved({
      instanceId: id,
      at,
      cause: 'request',
      detail: error,
      fromStatus: 'PROVISIONING',
      toStatus: 'ERROR',
    });
    await tx.history.step(
      step(id, at, 'verify', { calls, next: 'destroy', attempt: 31, detail: last?.detail ?? null }),
      'row',
    );
  });
  if (id !== FAILED) return;
  await store.transact((tx) =>
    tx.history.step(
      step(id, at + 2_300, 'destroy', {
        calls: [
          { call: 'consoleTail', outcome: 'done', tookMs: 55 },
          { call: 'destroy', outcome: 'done', tookMs: 1_870 },
        ],
        console: [
          '[   18.204113] cloud-init[912]: Cloud-init v. 24.1.3 running modules:config',
          '[   18.911530] cloud-init[912]: 2026-11-23 02:41:18,004 - cc_ssh.py[WARNING]: Unable to write authorized_keys: [Errno 28] No space left on device',
          '[   19.002871] cloud-init[912]: Cloud-init v. 24.1.3 finished at Mon, 23 Nov 2026 02:41:19 +0000. Datasource DataSourceNoCloud',
          'ubuntu login: ',
        ].join('\n'),
      }),
      'row',
    ),
  );
}

async function putLingering(store: Store, now: number): Promise<void> {
  await store.transact(async (tx) => {
    const offer = {
      offerId: 'rtx-6000-ada-1x',
      region: 'eu-frankfurt',
      platform: 'default',
      host: 'gpu-host-7',
    };
    await tx.instances.insert(
      toRow(4, {
        ...offer,
        id: LINGERING,
        name: 'render-old',
        status: 'DESTROYING',
        createdAt: now - 9 * HOUR,
        priceMicroUsdPerHour: 390_000,
      }),
    );
    await tx.work.put({
      ...workOf(LINGERING),
      kind: 'destroy',
      notBefore: now - 51 * MINUTE,
      deadlineAt: null,
    });
  });
  const [lease] = await store.claimWork({
    platform: 'default',
    owner: 'demo',
    now,
    leaseUntil: now + 1,
    limit: 1,
    resourceKind: 'instance',
  });
  if (lease?.resourceId !== LINGERING) throw new Error('the lingering one has waited longest');
  const problem = 'conflict: the volume berth-disk-77 is still attached to another machine';
  await store.transact(async (tx) => {
    const progress = {
      phase: 'deleting <the disk>',
      since: now - 50 * MINUTE,
      deadlineAt: now - 40 * MINUTE,
    };
    const later = { cookie: null, notBefore: now + 41_000, lastError: problem, attempt: 38, progress };
    await tx.work.release(lease, later);
    await tx.history.moved({
      instanceId: LINGERING,
      at: now - 51 * MINUTE,
      cause: 'request',
      detail: null,
      fromStatus: 'ONLINE',
      toStatus: 'DESTROYING',
    });
  });
  await store.transact((tx) =>
    tx.history.step(
      step(LINGERING, now - 50 * MINUTE, 'destroy', {
        ...{ next: 'again', detail: problem, tookMs: 640 },
        calls: [
          {
            call: 'destroy',
            outcome: 'conflict',
            tookMs: 631,
            detail: 'the volume berth-disk-77 is still attached to another machine',
          },
        ],
      }),
      'row',
    ),
  );
}

async function putAlarms(store: Store, now: number): Promise<void> {
  const failing = 'a step keeps failing and is tried again: check the platform';
  const orphan = 'a machine with our tag has no instance: it may cost money and hold data';
  const all = [
    [
      'platform_down',
      'west',
      'west',
      'the platform does not answer: nothing is sold and no state is changed until it does (connect ETIMEDOUT 10.20.0.8:8443)',
      14,
    ],
    [
      'step_failing',
      STUCK,
      'default',
      `${failing} (verify, attempt 14: SSH at auth: the server refused the key)`,
      12,
    ],
    [
      'step_failing',
      LINGERING,
      'default',
      `${failing} (destroy, attempt 38: conflict: the volume berth-disk-77 is still attached)`,
      44,
    ],
    ['orphan_machine', 'berth-inst-77aa01c9', 'default', orphan, 190],
  ] as const;
  await store.transact(async (tx) => {
    await tx.marks.put(markOf('west', 'platform_down_since'), now - 14 * MINUTE);
    for (const [kind, subject, platform, text, minutes] of all)
      await tx.alarms.put({
        kind,
        subject,
        platform,
        text,
        since: now - minutes * MINUTE,
        lastSeenAt: now - 8_000,
        acknowledgedBy: null,
        note: null,
      });
    await tx.alarms.acknowledge({ kind: 'orphan_machine' }, 'jonas', null);
    for (const [index, [action, subject]] of (
      [
        ['console.login', null],
        ['alarm.acknowledge', 'orphan_machine berth-inst-77aa01c9'],
        ['offer.cordon', 'l40s-1x'],
      ] as const
    ).entries())
      await tx.audit.add({
        at: now - (200 - index * 4) * MINUTE,
        actor: 'jonas',
        source: 'console',
        address: '10.0.4.17',
        action,
        subject,
        detail: {},
        outcome: 'done',
      });
  });
}
