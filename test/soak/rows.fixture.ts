import type { Instance } from '../../src/contract/instance.ts';
import type { Volume } from '../../src/contract/volume.ts';
import type { Deed, ProviderTruth } from '../support/doubles/journaled-provider.ts';
import type { Order } from './orders.ts';
import type { DeploymentRow, Rows, VolumeRow } from './rows.ts';

export const HOUR_MS = 3_600_000;

export interface World {
  rows: Rows;
  truth: { deeds: Deed[]; instances: Instance[]; volumes: Volume[]; repeatedCreates: string[] };
  orders: Order[];
}

/** Accepted at once, unless `changes` say otherwise. */
export function order(
  verb: Order['verb'],
  subject: string,
  sentAt: number,
  changes: Partial<Order> = {},
): Order {
  return { verb, subject, sentAt, answeredAt: sentAt + 100, status: 200, ...changes };
}

/**
 * A deployment that ran for an hour, was stopped for an hour and runs again, with a volume of 100 GB that was attached
 * and has grown to 150 GB; all of it is right.
 */
export function rightWorld(): World {
  const deployment: DeploymentRow = {
    ...{ id: 'dep-a', teamId: 'team-1', status: 'running', providerName: 'name-a' },
    ...{ providerInstanceId: 'i-a', cleanup: 'none', failureReason: null, startedAt: 1_000, stoppedAt: null },
    ...{ rateMicroUsd: 2_000_000, stoppedRateMicroUsd: 500_000, totalCostMicroUsd: 0 },
  };
  const volume: VolumeRow = {
    ...{ id: 'internal-v', volumeId: 'vol-v', teamId: 'team-1', status: 'attached', sizeGb: 150 },
    ...{
      providerName: 'name-v',
      providerVolumeId: 'v-1',
      cleanup: 'none',
      startedAt: 1_000,
      deletedAt: null,
    },
    totalCostMicroUsd: 0,
  };
  const at = (ms: number) => ({ at: ms, doneAt: ms });
  return {
    rows: {
      deployments: [deployment],
      volumes: [volume],
      attachments: [{ volumeId: 'internal-v', deploymentId: 'dep-a', state: 'attached' }],
    },
    truth: {
      deeds: [
        { kind: 'create', id: 'i-a', name: 'name-a', ...at(500) },
        { kind: 'create volume', id: 'v-1', name: 'name-v', sizeGb: 100, ...at(500) },
        { kind: 'stop', id: 'i-a', ...at(1_000 + HOUR_MS) },
        { kind: 'start', id: 'i-a', ...at(1_000 + 2 * HOUR_MS) },
        { kind: 'attach', id: 'v-1', instanceId: 'i-a', ...at(2_000 + 2 * HOUR_MS) },
        { kind: 'resize', id: 'v-1', sizeGb: 150, ...at(1_000 + 3 * HOUR_MS) },
      ],
      instances: [machine('i-a')],
      volumes: [
        {
          ...{ id: 'v-1', name: 'name-v', size_gb: 150, region: 'eu-one', status: 'ATTACHED' },
          attached_instance_ids: ['i-a'],
        },
      ],
      repeatedCreates: [],
    },
    orders: [
      order('create', 'dep-a', 0, { status: 201 }),
      order('create volume', 'vol-v', 0, { status: 201 }),
      order('pause', 'dep-a', 990 + HOUR_MS),
      order('resume', 'dep-a', 990 + 2 * HOUR_MS),
      order('attach', 'vol-v', 1_990 + 2 * HOUR_MS, { deploymentId: 'dep-a' }),
      order('resize', 'vol-v', 990 + 3 * HOUR_MS, { sizeGb: 150 }),
    ],
  };
}

/** The same after all of it was ended, four hours after its start, and billed. */
export function endedWorld(): World {
  const world = rightWorld();
  const endedAt = 1_000 + 4 * HOUR_MS;
  Object.assign(world.rows.deployments[0] ?? {}, {
    ...{ status: 'terminated', stoppedAt: endedAt, cleanup: 'done', totalCostMicroUsd: 6_500_000 },
  });
  Object.assign(world.rows.volumes[0] ?? {}, {
    ...{ status: 'deleted', deletedAt: endedAt, cleanup: 'done', totalCostMicroUsd: 45_000 },
  });
  world.rows.attachments = [];
  world.truth.instances = [];
  world.truth.volumes = [];
  world.truth.deeds.push(
    { kind: 'delete', id: 'i-a', at: endedAt + 10, doneAt: endedAt + 10 },
    { kind: 'delete volume', id: 'v-1', at: endedAt + 20, doneAt: endedAt + 20 },
  );
  world.orders.push(order('terminate', 'dep-a', endedAt - 10), order('delete volume', 'vol-v', endedAt - 10));
  return world;
}

export function machine(id: string, changes: Partial<Instance> = {}): ProviderTruth['instances'][number] {
  const times = { created_at: '2026-11-26T00:00:00.000Z', updated_at: '2026-11-26T00:00:00.000Z' };
  return {
    id,
    name: `name-of-${id}`,
    configuration_id: 'gpu-1',
    region: 'eu-one',
    status: 'ONLINE',
    ...times,
    ...changes,
  };
}
