import { deployment, runningDeployment, now as start } from '../../../test/support/rows/marketplace-rows.ts';
import type { Instance, InstanceStatus } from '../../contract/instance.ts';
import type { DeploymentStatus } from '../contract/deployment.ts';
import type { DeploymentRecord } from '../model/deployment-record.ts';
import { defaultOptions } from '../model/options.ts';
import { type Judgement, judge, type Observation } from './observe.ts';

export { start };
export const { polling } = defaultOptions;
export const statuses = [
  ...(['PROVISIONING', 'ONLINE', 'STOPPING', 'STOPPED'] as const),
  ...(['OFFLINE', 'DESTROYING', 'DESTROYED', 'ERROR'] as const),
];
export const actionKinds = ['pause', 'resume', 'restart'] as const;
export const iso = (ms: number) => new Date(ms).toISOString();

/** `dep-1`, with a known instance, last confirmed at {@link start}. */
export function recordOf(
  status: DeploymentStatus,
  changes: Partial<DeploymentRecord> = {},
): DeploymentRecord {
  if (status === 'deploying')
    return deployment({
      providerInstanceId: 'inst-dep-1',
      observedAt: start,
      launch: { state: 'made', request: null, sentAt: start },
      ...changes,
    });
  const isOver = status !== 'running' && status !== 'stopped';
  return runningDeployment({
    status,
    // Long ago, because an observation right after a stop may show an older state.
    pausedAt: status === 'stopped' ? start - 3_600_000 : null,
    stoppedAt: isOver ? start : null,
    ...changes,
  });
}

/** The instance of `dep-1`. */
export function instanceOf(status: InstanceStatus, changes: Partial<Instance> = {}): Instance {
  return {
    id: 'inst-dep-1',
    configuration_id: 'offer-1',
    region: 'eu-1',
    status,
    public_ip: '192.0.2.1',
    ssh_port: 22,
    ssh_username: 'ubuntu',
    created_at: iso(start),
    updated_at: iso(start + 15_000),
    ...changes,
  };
}

/** An observation with this status, which the instance has had since `updatedMs` after {@link start}. */
export const read = (status: InstanceStatus, updatedMs = 0): Observation => ({
  instance: instanceOf(status, { updated_at: iso(start + updatedMs) }),
});

/** Judges an observation against the record's own price. The observation took no time unless `seenAt` is given. */
export function judgeAt(
  record: DeploymentRecord,
  observation: Observation,
  now: number,
  seenAt = now,
): Judgement {
  return judge(record, observation, { now, seenAt, polling });
}
