import type { OwnerRef } from '../../../orchestrator/model/platform-driver.ts';
import type { SshProbe } from '../../../ports/ssh-probe.ts';
import type { ArmedFaults } from '../armed-faults.ts';
import type { SshFault } from '../fault.ts';
import type { Targets } from './targets.ts';

/** Faults of the SSH proof of a provider's machines. */
export function sshFaults(armed: ArmedFaults, targets: Targets, provider: string, own: SshProbe): SshProbe {
  const machineAt = ({ host, port }: { host: string; port: number }): OwnerRef | undefined => {
    const machines = targets.get(provider)?.platform.machines.list() ?? [];
    return machines.find(({ endpoint }) => endpoint?.publicIp === host && endpoint.sshPort === port)?.ref;
  };
  return {
    probe: async (target, keys, pinned, withinMs) => {
      const ask = () => own.probe(target, keys, pinned, withinMs);
      if (!armed.has('ssh')) return ask();
      const ref = machineAt(target);
      const resource = ref && (await targets.get(provider)?.resourceOf(ref))?.id;
      const occasion = { provider, resource };
      for (const each of armed.all) {
        const strike = each.fault.layer === 'ssh' && armed.strike(each, occasion);
        if (strike) return (each.fault as SshFault).probe({ ...strike, keys, pinned, withinMs }, ask);
      }
      return ask();
    },
  };
}
