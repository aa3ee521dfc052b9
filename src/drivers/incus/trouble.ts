import type { MachineFault } from '../../orchestrator/model/platform-driver.ts';
import type { Instance } from './api.ts';
import type { Platform } from './platform.ts';
import { isRoot, isRunning, isUnknown, mark } from './translate.ts';

/** Storage drivers that always report the use of a container's disk, unless it is not there. */
const MEASURED: ReadonlySet<string> = new Set(['btrfs']);

/** A problem of a listed machine that does not stop it. Its pool is that of the last count of free units. */
export function faultOf({ fleet }: Pick<Platform, 'fleet'>, instance: Instance): { fault?: MachineFault } {
  const { name, location, type, config, state } = instance;
  if (isUnknown(instance))
    return {
      fault: {
        finding: `Incus shows ${name} in the state Error`,
        remedy: `See incus info --show-log ${name} and the log of incusd. The instance keeps its status.`,
      },
    };
  const [device, root] = Object.entries(instance.expanded_devices).find(([, one]) => isRoot(one)) ?? [];
  const poolName = root?.['pool'] ?? '';
  const pool = fleet.poolAt(location, poolName);
  const isMade = config[mark.phase] !== undefined;
  if (device === undefined || pool === undefined || !isMade) return {};
  if (pool.problem !== undefined)
    return {
      fault: {
        finding: `its storage pool ${poolName} on ${location} is ${pool.problem}: the machine cannot write`,
        remedy:
          'Free space below the pool, then follow docs/runbook.md ("A storage pool is full or read-only").',
      },
    };
  const isLost = type === 'container' && MEASURED.has(pool.driver) && state?.disk && !(device in state.disk);
  if (!isLost) return {};
  return {
    fault: {
      finding: `its disk in the pool ${poolName} is missing`,
      remedy: isRunning(instance)
        ? 'Copy its data from inside the guest while it runs: a stop loses the data. Berth does not stop it.'
        : `Restore its subvolume containers/${name} in the pool, or delete the instance: Incus does not start it.`,
    },
  };
}
