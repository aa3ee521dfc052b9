import { randomUUID } from 'node:crypto';
import type { OwnerRef } from '../../../orchestrator/model/platform-driver.ts';
import type { Log } from '../../../ports/log.ts';
import type { Change } from '../change.ts';
import type { Host } from '../client.ts';
import { listDomains } from '../hosts/domains.ts';
import type { HostShell } from '../hosts/host-shell.ts';
import type { HostView } from '../hosts/room.ts';
import type { GpuTypes } from './gpus.ts';
import type { PciAddress } from './pci-functions.ts';
import { markGpu, sweepGpus } from './sanitize.ts';

type HostWithShell = Host & { shell: HostShell };

/** All PCI functions of the chosen GPUs: a guest gets the whole slot. */
export function functionsOf({ gpus }: Pick<HostView, 'gpus'>, chosen: readonly PciAddress[]): PciAddress[] {
  return gpus
    .filter(({ address }) => chosen.includes(address))
    .flatMap(({ functions }) => functions.map(({ address }) => address));
}

/** Marks the machine's GPUs before it starts. Returns a GPU that has another mark, or undefined if all are marked. */
export async function markGpus(
  change: Change,
  host: HostWithShell,
  ref: OwnerRef,
  gpus: readonly PciAddress[],
): Promise<PciAddress | undefined> {
  const [shell, place] = [change.shellOf(host), { stateDir: host.options.state_dir }];
  for (const address of gpus) if (!(await markGpu(shell, place, address, ref, randomUUID()))) return address;
  return undefined;
}

/** Resets the GPUs that machines of the host have left, within the limits of `change`. @throws {VirshError} */
export async function sweepHost(
  host: HostWithShell,
  types: GpuTypes,
  log: Log,
  change?: Change,
): Promise<void> {
  if (Object.keys(types).length === 0) return;
  const domains = await listDomains(host);
  const claimed = new Set(
    domains.flatMap(({ pciFunctions, mark }) => [...pciFunctions, ...(mark?.gpus ?? [])]),
  );
  const shell = change?.shellOf(host) ?? host.shell;
  await sweepGpus(shell, { stateDir: host.options.state_dir }, types, claimed, log);
}
