import type { OwnerRef } from '../../../orchestrator/model/platform-driver.ts';
import { FaultInjector, isStep } from '../../../platform-model/call-faults.ts';
import type { Carry, Method } from '../../../platform-model/platform.ts';
import type { Targets } from '../../provider.ts';
import type { ArmedFault, ArmedFaults } from '../arming.ts';
import type { PlatformFault } from '../fault.ts';
import type { MachineFaults } from './machines.ts';

/** A call that has no effect until its fault is over. */
interface StuckCall {
  fault: string;
  provider: string;
  ref: OwnerRef;
}

export type SavedStuck = [key: string, stuck: StuckCall][];

/** Faults of the calls of the drivers to their platforms. */
export class PlatformFaults {
  readonly #armed: ArmedFaults;
  readonly #targets: Targets;
  /** The last call for each machine and volume, if it is stuck. By provider and ref. */
  readonly #stuck = new Map<string, StuckCall>();

  constructor(armed: ArmedFaults, targets: Targets) {
    this.#armed = armed;
    this.#targets = targets;
  }

  /** The calls of a provider's driver, which are also the moments at which its machines may trigger a fault. */
  carry(provider: string, machines: MachineFaults): Carry {
    const injector = new FaultInjector(({ method, ref }) => {
      if (!this.#armed.has('platform')) return 'none';
      return this.#planned(provider, method as Method, ref);
    }, this.#armed.clock);
    return async (method, ref, call) => {
      await machines.trigger(provider, undefined);
      const answer = await injector.carry(method, ref, call);
      await machines.trigger(provider, undefined);
      return answer;
    };
  }

  /** Continues the work that was stuck because of a fault. */
  release(fault: string): void {
    for (const [key, { fault: by, provider, ref }] of this.#stuck) {
      if (by !== fault) continue;
      this.#stuck.delete(key);
      this.#targets.get(provider)?.wake(ref);
    }
  }

  /** Lets a new fault affect work that no passing of time continues: stuck calls, and those of `held`. */
  askAgain(armed: ArmedFault, held: readonly { provider: string; ref: OwnerRef }[]): void {
    for (const { provider, ref } of [...this.#stuck.values(), ...held])
      if (armed.fitsProvider(provider)) this.#targets.get(provider)?.wake(ref);
  }

  save(): SavedStuck {
    return [...this.#stuck];
  }

  load(stuck: SavedStuck): void {
    this.#stuck.clear();
    for (const [key, call] of stuck) this.#stuck.set(key, call);
  }

  async #planned(provider: string, method: Method, ref: OwnerRef | undefined) {
    const key = `${provider} ${ref}`;
    if (isStep({ method })) this.#stuck.delete(key);
    const on = method;
    const fitting = this.#armed.all.filter(
      (armed) => armed.fault.layer === 'platform' && armed.fits({ provider, on, resource: armed.resource }),
    );
    if (fitting.length === 0) return 'none';
    const resource = ref && (await this.#targets.get(provider)?.resourceOf(ref))?.id;
    const occasion = { provider, on, resource };
    for (const armed of fitting) {
      const trigger = this.#armed.trigger(armed, occasion);
      if (trigger === undefined) continue;
      const planned = (armed.fault as PlatformFault).fault(trigger, method);
      if (ref !== undefined && typeof planned === 'object' && planned.kind === 'stuck')
        this.#stuck.set(key, { fault: armed.id, provider, ref });
      return planned;
    }
    return 'none';
  }
}
