import { type Instance, type InstanceStatus, instanceTransitions } from '../../contract/instance.ts';
import { assertTransition } from '../../contract/transitions.ts';
import { usdFromMicroUsd } from '../../contract/values.ts';
import type { InstanceRecord, untouchedInstance } from '../model/records.ts';
import type { Transaction } from '../model/store.ts';

/** The columns that may change besides the status: those that begin untouched, and some that a create writes. */
type Changes = Partial<
  Pick<
    InstanceRecord,
    | Exclude<keyof typeof untouchedInstance, 'version'>
    | 'spec'
    | 'createOpenUntil'
    | 'ownerRef'
    | 'priceMicroUsdPerHour'
  >
>;

/**
 * The cause of a change for the history, if it is not a step of the instance's own work, and the details for the
 * operator.
 */
interface Why {
  cause?: 'request' | 'attach';
  detail?: string | null;
}

/**
 * Changes an instance's status. Nothing else may write it.
 *
 * @throws {IllegalTransition} if the table has no such transition
 */
export async function transition(
  tx: Transaction,
  record: InstanceRecord,
  to: InstanceStatus,
  now: number,
  changes: Changes = {},
  { cause = 'request', detail = null }: Why = {},
): Promise<InstanceRecord> {
  assertTransition(instanceTransitions, record.status, to, `instance ${record.id}`);
  const { id: instanceId, status: fromStatus } = record;
  await tx.history.moved({ instanceId, at: now, cause, fromStatus, toStatus: to, detail });
  return write(tx, { ...record, ...changes, status: to, updatedAt: Math.max(now, record.updatedAt) });
}

/** Changes an instance without its status. `updated_at` moves only if a client can see the change. */
export async function amend(
  tx: Transaction,
  record: InstanceRecord,
  now: number,
  changes: Changes,
): Promise<InstanceRecord> {
  const changed = { ...record, ...changes };
  if (looksSame(record, changed)) return write(tx, changed);
  return write(tx, { ...changed, updatedAt: Math.max(now, record.updatedAt) });
}

async function write(tx: Transaction, changed: InstanceRecord): Promise<InstanceRecord> {
  const record = { ...changed, version: changed.version + 1 };
  await tx.instances.update(record);
  return record;
}

/** O: Instance, as a client sees it. */
export function toInstance(record: InstanceRecord): Instance {
  const { spec, endpoint } = record;
  return {
    id: record.id,
    name: record.name ?? undefined,
    configuration_id: record.offerId,
    region: record.region,
    status: record.status,
    ...(endpoint !== null && {
      public_ip: endpoint.publicIp,
      private_ip: endpoint.privateIp,
      ssh_port: endpoint.sshPort,
      ssh_username: endpoint.sshUsername,
      port_forwards: endpoint.portForwards,
    }),
    vcpus: spec.vcpus,
    memory_gb: spec.memoryGb,
    storage_gb: spec.storageGb,
    gpu_count: spec.gpuCount,
    gpu_type: spec.gpuType,
    image: spec.image,
    price_per_hour: usdFromMicroUsd(record.priceMicroUsdPerHour),
    error: record.status === 'ERROR' ? (record.error ?? 'The instance failed.') : undefined,
    created_at: new Date(record.createdAt).toISOString(),
    updated_at: new Date(record.updatedAt).toISOString(),
  };
}

/** Whether a client sees two states of an instance as the same, apart from `updated_at`. */
function looksSame(before: InstanceRecord, after: InstanceRecord): boolean {
  const updatedAt = 0;
  const [first, second] = [before, after].map((record) =>
    JSON.stringify(toInstance({ ...record, updatedAt })),
  );
  return first === second;
}
