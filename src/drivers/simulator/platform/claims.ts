import type { Call } from '../../../orchestrator/model/platform-driver.ts';
import type { Answer } from '../../../platform-model/platform.ts';
import { failed } from '../../../platform-model/steps.ts';
import type { Clock } from '../../../ports/clock.ts';

/** Refuses calls that are past their deadline, cancelled, or older than a claim already seen. */
export class Claims {
  readonly #clock: Pick<Clock, 'now'>;
  /** The highest fence seen, by resource. */
  readonly #seen = new Map<string, number>();

  constructor(clock: Pick<Clock, 'now'>) {
    this.#clock = clock;
  }

  /** Wraps `call` so that its claim is checked when it begins. Once begun, it may be called again for its result. */
  guard<T extends Answer>(resource: string, call: () => T, limits: Call | undefined): () => T {
    if (limits === undefined) return call;
    let isBegun = false;
    return () => {
      const problem = isBegun ? undefined : this.#findProblem(resource, limits);
      if (problem !== undefined) return failed('transient', problem) as T;
      isBegun = true;
      return call();
    };
  }

  /** Why the call may not begin. */
  #findProblem(resource: string, { deadline, fence, signal }: Call): string | undefined {
    if (signal.aborted) return 'the call was cancelled before it was started';
    if (this.#clock.now() > deadline) return 'the call arrived after its deadline, and was not started';
    const seen = this.#seen.get(resource) ?? 0;
    if (fence < seen) return `a later claim of this ${resource} was seen: nothing was started`;
    this.#seen.set(resource, fence);
    return undefined;
  }
}
