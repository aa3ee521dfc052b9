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

/** What is known of something that a listing showed, and that has no row. */
export interface Unowned {
  id: string;
  /** What a client of its account reads. */
  status: number | undefined;
  /** Whether an alarm names it. */
  isAlarmed: boolean;
}

/** I39: what was once seen without a row has its row again, or reads 503, or has an alarm, until it is gone. */
export function isAccountedFor({ id, status, isAlarmed }: Unowned): void {
  hold(
    'I39',
    status === 503 || isAlarmed,
    () => `${id} is at the engine without a row, reads ${status ?? 'nothing'}, and has no alarm`,
    [id],
  );
}

/** I39: what is at the engine, and whose row was lost, does not read 404. */
export function absenceIsNotTold(id: string, traces: readonly string[]): void {
  hold('I39', traces.length === 0, () => `${id} reads 404, and there is ${traces.join(', ')}`, [id]);
}

/** I40: nothing that is named after a resource is left on any host after its end. */
export function nothingIsLeftOf(id: string, traces: readonly string[]): void {
  hold('I40', traces.length === 0, () => `${id} has ended, and left ${traces.join(', ')}`, [id]);
}
