import type { Log } from '../../../ports/log.ts';
import type { ScriptPlace } from '../hosts/host-facts.ts';
import type { HostShell } from '../hosts/host-shell.ts';
import { type GpuTypes, listGpus } from './gpus.ts';
import type { PciAddress } from './pci-address.ts';
import { scanGpus } from './pci-functions.ts';
import { sanitizeGpu } from './sanitize.ts';

/**
 * Resets every GPU that a machine had and no domain has any more, so that it can be sold again. `claimed`: the
 * functions that domains named before this call; a later claim cannot take a dirty GPU. Returns how many GPUs were
 * freed.
 *
 * @throws {VirshError} if the host does not answer
 */
export async function sweepGpus(
  shell: HostShell,
  place: ScriptPlace,
  types: GpuTypes,
  claimed: ReadonlySet<PciAddress>,
  log: Log,
): Promise<number> {
  const scan = await scanGpus(shell, place);
  let freed = 0;
  for (const gpu of listGpus(scan, types, claimed)) {
    if (gpu.state !== 'dirty') continue;
    const swept = await sanitizeGpu(shell, place, gpu, scan);
    const fields = { host: shell.name, gpu: gpu.address, gpu_type: gpu.type };
    if (swept.outcome === 'clean') {
      freed++;
      log.info(fields, 'a GPU was reset and can be sold again');
    } else if (swept.outcome === 'quarantined')
      log.error(
        { ...fields, reason: swept.reason },
        'a GPU is out of use: it failed its reset; docs/how-to/gpus.md describes how to return it to use',
      );
  }
  return freed;
}
