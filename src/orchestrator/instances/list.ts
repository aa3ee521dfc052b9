import type { Instance } from '../../contract/instance.ts';
import { usdFromMicroUsd } from '../../contract/values.ts';
import { nextTurn } from '../../ports/clock.ts';
import type { InstanceRecord } from '../model/records.ts';
import type { InstanceReader, ListedInstance, LiveInstance } from '../model/store.ts';

/** Instances that are read at once: some hundred KB of them. */
const INSTANCES_PER_PAGE = 500;

interface ListPage {
  /** Instances in JSON. */
  items: readonly string[];
  isLast: boolean;
}

/**
 * O: GET /instances, page by page: oldest first, without the destroyed ones; an unknown region is an empty list
 * (settled). What is there from the first page to the last is in it once, whatever is made or destroyed meanwhile: the
 * next page begins after the last instance of the one before, and neither its age nor its id ever changes. `prepare` makes
 * the instances of a page, in its order, without those that are destroyed by now.
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

/** All that are not destroyed, page by page, so that they are never in memory as a whole. */
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

/** O: Instance, as the wire has it. */
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
