import type { InstanceRecord } from '../../../src/orchestrator/model/records.ts';
import { hold } from '../../kernel/violation.ts';
import type { Machine } from '../engine.ts';

/** I3: at rest each live row has its machine, under whatever name, in the state and at the address that the row says. */
export function rowsMatchEngine(instances: readonly InstanceRecord[], machines: readonly Machine[]): void {
  for (const { id, ownerRef, status, endpoint } of instances) {
    if (status !== 'ONLINE' && status !== 'STOPPED') continue;
    const own = machines.filter(({ ref }) => ref === ownerRef);
    hold('I3', own.length === 1, () => `${id} is ${status} and has ${own.length} machines`, [id]);
    const [machine] = own;
    const isAsTold = (machine?.power === 'running') === (status === 'ONLINE');
    hold('I3', isAsTold, () => `${id} is ${status}, its machine ${machine?.power}`, [id]);
    if (status !== 'ONLINE') continue;
    const { host, port } = machine?.address ?? {};
    hold(
      'I3',
      endpoint?.publicIp === host && endpoint?.sshPort === port,
      () => `${id} tells ${endpoint?.publicIp}:${endpoint?.sshPort}, its machine has ${host}:${port}`,
      [id],
    );
  }
}

/** I44: what stays refused for two minutes has an alarm. */
export function refusalsAreTold(
  refused: readonly Pick<InstanceRecord, 'id'>[],
  alarms: readonly { subject: string }[],
): void {
  const told = new Set(alarms.map(({ subject }) => subject));
  for (const { id } of refused)
    hold('I44', told.has(id), () => `the removal of ${id} is refused, without an alarm`, [id]);
}
