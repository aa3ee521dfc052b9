import { PlainProvider, type PlainProviderOptions } from '../../../test/support/doubles/plain-provider.ts';
import { PlainSsh } from '../../../test/support/doubles/plain-ssh.ts';
import { deployment, sshKey } from '../../../test/support/rows/marketplace-rows.ts';
import type { VirtualClock } from '../../../test/support/time/virtual-clock.ts';
import type { InstanceStatus } from '../../contract/instance.ts';
import type { Random } from '../../ports/clock.ts';
import type { Log } from '../../ports/log.ts';
import { openMarket, publicKey } from '../deployments/market.fixture.ts';
import { toLaunchRequest } from '../deployments/plan-deployment.ts';
import type { Deps } from '../deps.ts';
import type { DeploymentRecord } from '../model/deployment-record.ts';
import { toProviderName } from '../model/names.ts';
import type { Store } from '../model/store.ts';
import type { Provider } from '../providers/provider.ts';
import type { SyncDeps } from './context.ts';
import { ProviderWorkers } from './provider-workers.ts';

export const MINUTE_MS = 60_000;
export const HOUR_MS = 60 * MINUTE_MS;

export interface LogLine {
  level: keyof Log;
  message: string;
  fields: Record<string, unknown>;
}

/** A provider in memory, `provider-x`, perhaps a second one, `provider-y`, and their workers. `usr-1` of `team-1` deploys. */
export interface SyncSetup {
  deps: SyncDeps & Deps;
  clock: VirtualClock;
  store: Store;
  /** `provider-x` */
  plain: PlainProvider;
  ssh: PlainSsh;
  /** `provider-y`, which exists with `hasOther`. */
  other: PlainProvider;
  provider: Provider;
  workers: ProviderWorkers;
  logged: LogLine[];
  close(): Promise<void>;
}

export async function openProviderWorkers({
  hasOther = false,
  ...options
}: PlainProviderOptions & { hasOther?: boolean } = {}): Promise<SyncSetup> {
  const market = await openMarket(options);
  const { clock, store, plain, ssh, provider, worker } = market;
  // The real workers replace it.
  worker.stop();
  const other = new PlainProvider(clock, options);
  const second: Provider = {
    ...provider,
    id: 'provider-y',
    client: other.client,
    sshProbe: new PlainSsh(other, clock).probe,
  };
  const providers = hasOther ? [provider, second] : [provider];
  const logged: LogLine[] = [];
  const deps = {
    ...market.deps,
    refreshCatalog: async () => undefined,
    random: seededRandom(1),
    log: recordLines(logged),
    providers: {
      ids: () => providers.map(({ id }) => id),
      get: (id: string) => providers.find((it) => it.id === id),
    },
  };
  const workers = new ProviderWorkers(deps);
  const close = async () => {
    await stopped(clock, workers);
    await store.close();
  };
  return { deps, clock, store, plain, ssh, other, provider, workers, logged, close };
}

/** Stops the workers, and advances the clock while their calls finish. */
export async function stopped(clock: VirtualClock, workers: ProviderWorkers): Promise<void> {
  let isStopped = false;
  const stop = workers.stop().then(() => {
    isStopped = true;
  });
  for (let seconds = 0; !isStopped && seconds < 60; seconds++) await clock.advance(1_000);
  await stop;
}

/** Inserts a new deployment as the use case does. */
export async function accept(
  { store, clock, deps }: Pick<SyncSetup, 'store' | 'clock' | 'deps'>,
  changes: Partial<DeploymentRecord> & { number?: number } = {},
): Promise<string> {
  const { number = 1, ...fields } = changes;
  const id = `dep-${String(number).padStart(32, '0')}`;
  const providerName = toProviderName(deps.installationId, id);
  const { offerId = 'gpu-1', instanceType = 'DEDICATED', tempSshKeyId = null } = fields;
  const request = toLaunchRequest({
    providerName,
    offerId,
    region: 'eu-one',
    image: 'ubuntu-24.04',
    publicKey,
    cloudInit: undefined,
    providerVolumeIds: [],
  });
  await store.transact(async (tx) => {
    if (tempSshKeyId !== null) await tx.sshKeys.insert(sshKey({ id: tempSshKeyId, isTemporary: true }));
    await tx.deployments.insert(
      deployment({
        id,
        providerId: 'provider-x',
        offerId,
        instanceType,
        region: 'eu-one',
        createdAt: clock.now(),
        providerName,
        launch: { state: 'wanted', request, sentAt: null },
        ...fields,
      }),
    );
    await tx.signals.wake(fields.providerId ?? 'provider-x', id);
  });
  return id;
}

/** A running deployment, with started provider workers. */
export async function running(
  setup: SyncSetup,
  changes: Parameters<typeof accept>[1] = {},
): Promise<{ id: string; instanceId: string }> {
  const id = await accept(setup, changes);
  setup.workers.start();
  await setup.clock.advance(2 * MINUTE_MS);
  const { status, providerInstanceId } = await read(setup, id);
  if (status !== 'running' || providerInstanceId === null) throw new Error(`${id} is ${status}`);
  return { id, instanceId: providerInstanceId };
}

export async function read({ store }: Pick<SyncSetup, 'store'>, id: string): Promise<DeploymentRecord> {
  const record = await store.read.deployments.byId(id);
  if (record === null) throw new Error(`there is no ${id}`);
  return record;
}

/** All segments, as `state rate from–until`, in seconds since `since`. */
export async function billed(
  { store }: Pick<SyncSetup, 'store'>,
  id: string,
  since: number,
): Promise<string[]> {
  const segments = await store.read.ledger.segmentsOf('deployment', id);
  const seconds = (at: number | null) => (at === null ? '' : String((at - since) / 1_000));
  return segments.map(
    (it) => `${it.state} ${it.rateMicroUsdPerHour} ${seconds(it.startedAt)}–${seconds(it.endedAt)}`,
  );
}

export function statuses(plain: PlainProvider): InstanceStatus[] {
  return plain.instances.map(({ status }) => status);
}

/** How often a message with this part was logged at this level. */
export function countLines(logged: readonly LogLine[], level: keyof Log, part: string): number {
  return logged.filter((it) => it.level === level && it.message.includes(part)).length;
}

function recordLines(logged: LogLine[]): Log {
  const at = (level: keyof Log) => (fields: object, message: string) =>
    void logged.push({ level, message, fields: { ...fields } });
  return { debug: at('debug'), info: at('info'), warn: at('warn'), error: at('error') };
}

/** A deterministic random source. */
export function seededRandom(seed: number): Random {
  let state = seed;
  const next = () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return state / 2 ** 32;
  };
  return { next, bytes: (length) => Buffer.from(Array.from({ length }, () => Math.floor(next() * 256))) };
}
