import type { Clock } from '../../ports/clock.ts';
import type { Log } from '../../ports/log.ts';
import type { ProbeStep } from '../../ports/ssh-probe.ts';
import type { DeploymentRecord } from '../model/deployment-record.ts';
import type { Store } from '../model/store.ts';

/** An SSH server may start a little later than its machine. */
const BOOT_MS = 60_000;
/** A proof within this time shows that the provider's machines are reachable. */
const RECENT_MS = 10 * 60_000;
const AGAIN_AFTER_MS = 60 * 60_000;

interface Deps {
  store: Store;
  clock: Clock;
  log: Log;
}

/** Alerts the operator when none of a provider's new machines accepts a login, because its offers are then useless. */
export class SshAlarm {
  readonly #deps: Deps;
  readonly #providerId: string;
  /** The step at which the last attempt failed, for each waiting machine. */
  readonly #failing = new Map<string, ProbeStep>();
  #alarmedAt: number | null = null;
  /** The last known proof of a machine. An earlier process may have made a later one. */
  #provedAt = 0;

  constructor(deps: Deps, providerId: string) {
    this.#deps = deps;
    this.#providerId = providerId;
  }

  /** Records that a machine accepted a login. */
  proved(id: string): void {
    this.#failing.delete(id);
    this.#provedAt = this.#deps.clock.now();
    if (this.#alarmedAt === null) return;
    this.#alarmedAt = null;
    this.#deps.log.info(
      { provider: this.#providerId },
      'SSH login to new machines of the provider works again',
    );
  }

  /** Records that a machine, ONLINE since `onlineAt`, did not accept a login. */
  async failed({ id }: DeploymentRecord, onlineAt: number | null, step: ProbeStep): Promise<void> {
    const { clock, store } = this.#deps;
    const now = clock.now();
    this.#failing.set(id, step);
    if (onlineAt === null || now - onlineAt < BOOT_MS) return;
    if (this.#alarmedAt !== null && now - this.#alarmedAt < AGAIN_AFTER_MS) return;
    if (now - this.#provedAt < RECENT_MS) return;
    const { newToSync, lastProvedAt } = store.read.deployments;
    const lastAt = (await lastProvedAt(this.#providerId)) ?? 0;
    // Another process may have proved a machine meanwhile.
    this.#provedAt = Math.max(this.#provedAt, lastAt);
    if (now - this.#provedAt < RECENT_MS) return;
    const records = await newToSync(this.#providerId);
    const waiting = new Set(records.filter(({ status }) => status === 'deploying').map((it) => it.id));
    for (const failing of this.#failing.keys()) if (!waiting.has(failing)) this.#failing.delete(failing);
    this.#alarmedAt = now;
    this.#alarm();
  }

  #alarm(): void {
    const steps = [...this.#failing.values()];
    const fields = { provider: this.#providerId, machines: steps.length, steps: [...new Set(steps)] };
    // A machine that refuses the key was reached.
    if (steps.includes('auth'))
      this.#deps.log.error(
        fields,
        'none of the new machines of the provider accepts an SSH login with its key: their deployments fail ' +
          'and are not billed. Ask the provider whether it injects the keys; its offers are still sold',
      );
    else
      this.#deps.log.error(
        fields,
        'none of the new machines of the provider can be reached by SSH from here: their deployments fail and are ' +
          'not billed. Allow this server to connect to their SSH ports; if it never can, set `verify_ssh: false` ' +
          'for the provider in marketplace.yaml to skip the login check',
      );
  }
}
