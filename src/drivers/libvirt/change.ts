import type { Call } from '../../orchestrator/model/platform-driver.ts';
import type { Clock } from '../../ports/clock.ts';
import type { Host, VirshCall } from './client.ts';
import { VirshError } from './errors.ts';
import { guardProblems, type Limits } from './hosts/guard.ts';
import type { HostShell } from './hosts/host-shell.ts';

const REFUSED_BEFORE: ReadonlySet<string> = new Set(['stale', 'expired', 'unprepared']);

/**
 * One call that changes a machine or a volume. Each changing command goes through it: the command starts only within
 * the call's limits, and the host refuses it after a command with a higher fence. Without a `Call`, as in a manual
 * driver test, nothing is checked.
 */
export class Change {
  readonly #limits: Limits | undefined;
  readonly #fenced = new Set<string>();
  #hasChanged = false;

  constructor(clock: Clock, resource: `${string}.${'machine' | 'volume'}`, call: Call | undefined) {
    this.#limits = call && {
      resource,
      fence: call.fence,
      signal: call.signal,
      begin() {
        if (call.signal.aborted || clock.now() > call.deadline)
          throw new VirshError('expired', `the call for ${resource} is over: no further command is started`);
      },
    };
  }

  get hasChanged(): boolean {
    return this.#hasChanged;
  }

  /** @throws {VirshError} */
  virsh(host: Host, args: readonly string[], call: Omit<VirshCall, 'limits'> = {}): Promise<string> {
    return this.#begin(host.name, () => host.virsh(args, { ...call, limits: this.#limits }));
  }

  /** The host's shell with the same checks, for commands of `HOST_SCRIPT`. */
  shellOf({ shell }: { shell: HostShell }): HostShell {
    const limits = this.#limits;
    return {
      ...shell,
      run: (script, [command = '', root = '', state = '', ...args], timeoutMs) =>
        this.#begin(shell.name, async () => {
          const fenced = limits && ['fenced', root, state, limits.resource, String(limits.fence), command];
          const argv = [...(fenced ?? [command, root, state]), ...args];
          const answer = await shell.run(script, argv, timeoutMs, limits);
          const problem = limits && guardProblems[answer.status ?? 0];
          if (problem === undefined) return answer;
          throw new VirshError(problem, `${shell.name}: ${answer.stderr.trim()}`);
        }),
    };
  }

  /**
   * Fences the host, so that earlier calls can no longer change anything there. Returns true if the host was fenced
   * only now: state that was read before must then be read again.
   */
  async fence(host: Host): Promise<boolean> {
    if (this.#limits === undefined || this.#fenced.has(host.name)) return false;
    await host.virsh(['hostname'], { limits: this.#limits });
    this.#fenced.add(host.name);
    return true;
  }

  async #begin<T>(host: string, command: () => Promise<T>): Promise<T> {
    try {
      const answer = await command();
      this.#hasChanged = true;
      this.#fenced.add(host);
      return answer;
    } catch (error) {
      if (!(error instanceof VirshError && REFUSED_BEFORE.has(error.problem))) this.#hasChanged = true;
      throw error;
    }
  }
}
