import type { Instance } from '../../contract/instance.ts';
import { usdFromMicroUsd } from '../../contract/values.ts';
import { nextTurn } from '../../ports/clock.ts';
import type { InstanceRecord } from '../model/records.ts';
import type { InstanceReader, ListedInstance, LiveInstance } from '../model/store.ts';

/** Instances read at once: some hundred KB. */
const INSTANCES_PER_PAGE = 500;

interface ListPage {
  /** Instances as JSON. */
  items: readonly string[];
  isLast: boolean;
}

/**
 * O: GET /instances, page by page: oldest first, without destroyed ones. An unknown region gives an empty list. An
 * instance that exists throughout is listed exactly once, since each page begins after the previous one by creation
 * time and id. `prepare` returns the bodies of a page in order, without instances destroyed meanwhile.
 */
export async function* listInstances(
  instances: InstanceReader,
  prepare: (ids: readonly string[]) => Promise<string[]>,
  accountId: string,
  region?: string,
): AsyncGenerator<ListPage, void> {
  let after: ListedInstance | undefined;
  do {
    const page = await instances.page({
      accountId,
      limit: INSTANCES_PER_PAGE,
      ...(region !== undefined && { region }),
      ...(after !== undefined && { after }),
    });
    after = page.length < INSTANCES_PER_PAGE ? undefined : page.at(-1);
    yield { items: await prepare(page.map(({ id }) => id)), isLast: after === undefined };
  } while (after !== undefined);
}

const LIVE_PER_PAGE = 1_000;

/** All instances that are not destroyed. They are read page by page to limit memory. */
export async function* eachLiveInstance(
  instances: Pick<InstanceReader, 'livePage'>,
  limit = LIVE_PER_PAGE,
): AsyncGenerator<LiveInstance, void> {
  let after: LiveInstance | undefined;
  do {
    const page = await instances.livePage({ limit, ...(after !== undefined && { after }) });
    yield* page;
    after = page.length < limit ? undefined : page.at(-1);
    if (after !== undefined) await nextTurn();
  } while (after !== undefined);
}

/** O: Instance, as JSON. */
export function toInstance(record: InstanceRecord): Instance {
  const { spec, endpoint } = record;
  return {
    id: record.id,
    ...(record.name !== null && { name: record.name }),
    configuration_id: record.offerId,
    region: record.region,
    status: record.status,
    ...(endpoint !== null && {
      public_ip: endpoint.publicIp,
      ...(endpoint.privateIp !== undefined && { private_ip: endpoint.privateIp }),
      ssh_port: endpoint.sshPort,
      ssh_username: endpoint.sshUsername,
      ...(endpoint.portForwards !== undefined && { port_forwards: endpoint.portForwards }),
    }),
    vcpus: spec.vcpus,
    memory_gb: spec.memoryGb,
    storage_gb: spec.storageGb,
    ...(spec.gpuCount !== undefined && { gpu_count: spec.gpuCount }),
    ...(spec.gpuType !== undefined && { gpu_type: spec.gpuType }),
    image: spec.image,
    price_per_hour: usdFromMicroUsd(record.priceMicroUsdPerHour),
    ...(record.status === 'ERROR' && {
      error: record.error ?? 'The instance failed.',
    }),
    created_at: new Date(record.createdAt).toISOString(),
    updated_at: new Date(record.updatedAt).toISOString(),
  };
}
