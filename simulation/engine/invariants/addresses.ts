import type { InstanceRecord } from '../../../src/orchestrator/model/records.ts';
import { hold } from '../../kernel/violation.ts';
import type { Machine } from '../engine.ts';

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

/** I41: no machine boots at the address of another one that runs. */
export function machinesDiffer(
  booted: Machine,
  machines: readonly Machine[],
  isExcused: (machine: Machine) => boolean,
): void {
  if (isExcused(booted) || booted.address === undefined) return;
  const { host, port } = booted.address;
  const other = machines.find(
    (one) =>
      one.identity !== booted.identity &&
      one.address?.host === host &&
      one.address.port === port &&
      !isExcused(one),
  );
  hold('I41', other === undefined, () => `${booted.name} and ${other?.name} are both at ${host}:${port}`, [
    booted.name,
  ]);
}
