import type { InstanceRecord } from '../../../src/orchestrator/model/records.ts';
import { hold } from '../../kernel/violation.ts';

/** I41: two live instances share no address. `isExcused`: somebody moved or copied its machine at the engine. */
export function addressesDiffer(
  live: readonly Pick<InstanceRecord, 'id' | 'status' | 'endpoint'>[],
  isExcused: (id: string) => boolean,
): void {
  const owners = new Map<string, string>();
  for (const { id, status, endpoint } of live) {
    if (status !== 'ONLINE' || endpoint === null || isExcused(id)) continue;
    const address = `${endpoint.publicIp}:${endpoint.sshPort}`;
    const owner = owners.get(address);
    hold('I41', owner === undefined, () => `${id} and ${owner} are both at ${address}`, [id, owner ?? '']);
    owners.set(address, id);
  }
}
