import type { OwnerRef } from '../../../orchestrator/model/platform-driver.ts';
import type { SshProbe } from '../../../ports/ssh-probe.ts';
import type { Targets } from '../../provider.ts';
import type { ArmedFault, ArmedFaults, Occasion } from '../arming.ts';
import type { MachineFault, SshFault } from '../fault.ts';

/** Changes of machines that no request caused. */
export class MachineFaults {
  readonly #armed: ArmedFaults;
  readonly #targets: Targets;
  /** The changes of each provider at the last check of its machines. */
  readonly #checked = new Map<string, number>();

  constructor(armed: ArmedFaults, targets: Targets) {
    this.#armed = armed;
    this.#targets = targets;
  }

  /** Forgets what was checked: the armed faults have changed. */
  forget(): void {
    this.#checked.clear();
  }

  /**
   * Applies due faults to machines. `poll` is a request that reads one instance or all. Without a change since the last
   * check, only faults that count polls can trigger.
   */
  async trigger(provider: string, poll: Occasion | undefined): Promise<void> {
    const isPoll = isPollOfMachines(poll);
    const due = this.#armed.all.filter(
      (armed) =>
        armed.fault.layer === 'machine' && armed.fitsProvider(provider) && (isPoll || !armed.isCounted),
    );
    const target = due.length === 0 ? undefined : this.#targets.get(provider);
    if (target === undefined) return;
    const refs = target.platform.machines.all().map(({ spec }) => spec.ref);
    const isChecked = this.#checked.get(provider) === target.changes;
    this.#checked.set(provider, target.changes);
    for (const armed of due)
      if (!isChecked || armed.isCounted)
        for (const ref of refs) await this.#triggerOne(armed, provider, ref, poll);
  }

  async #triggerOne(
    armed: ArmedFault,
    provider: string,
    ref: OwnerRef,
    poll: Occasion | undefined,
  ): Promise<void> {
    const fault = armed.fault as MachineFault;
    const target = this.#targets.get(provider);
    if (target === undefined) return;
    const { machines } = target.platform;
    const fitting = () => {
      const [machine] = machines.of(ref);
      return machine && fault.fits(machine) ? machine : undefined;
    };
    const resource = fitting() && (await target.resourceOf(ref));
    // It may have changed meanwhile.
    const machine = fitting();
    if (machine === undefined) return;
    if (fault.status !== undefined && fault.status !== resource?.status) return;
    const occasion = { provider, resource: resource?.id };
    if (armed.isCounted && !isPollOf(poll, occasion)) return;
    const trigger = this.#armed.trigger(armed, occasion);
    if (trigger === undefined) return;
    fault.happen(trigger, { machines, machine });
    target.wake(ref);
  }
}

/** Whether the request reads the machine: its instance, or all instances. */
function isPollOf(poll: Occasion | undefined, machine: Occasion): boolean {
  return isPollOfMachines(poll) && (poll?.resource ?? machine.resource) === machine.resource;
}

function isPollOfMachines(poll: Occasion | undefined): boolean {
  return ['GET /instances', 'GET /instances/{id}'].includes(poll?.on ?? '');
}

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
        const trigger = each.fault.layer === 'ssh' && armed.trigger(each, occasion);
        if (trigger) return (each.fault as SshFault).probe({ ...trigger, keys, pinned, withinMs }, ask);
      }
      return ask();
    },
  };
}
