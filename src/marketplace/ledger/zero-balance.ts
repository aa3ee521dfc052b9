import { ApiError } from '../contract/errors.ts';
import type { Deps } from '../deps.ts';
import type { DeploymentRecord } from '../records/deployment-record.ts';

/** How a deployment is ended by the house, whatever its minimum runtime. Both reject where it did not happen. */
export interface Enforcement {
  /** Rejects with an {@link ApiError} ACTION_UNSUPPORTED where the machine cannot be stopped. */
  stop(deploymentId: string): Promise<void>;
  terminate(deploymentId: string): Promise<void>;
}

/** A machine whose stop has failed for so long is terminated: nobody runs for free. */
const TRY_TO_STOP_MS = 30 * 60_000;

type Step = 'stop' | 'terminate';

/**
 * What happens after the balance has reached zero: once the grace is over, what runs is stopped where it can be and
 * terminated where it cannot; what is stopped is terminated after a longer one. A provider that hangs delays nobody.
 */
export class ZeroBalance {
  readonly #deps: Pick<Deps, 'store' | 'log' | 'options'>;
  readonly #enforce: Enforcement;
  readonly #underWay = new Map<string, Promise<void>>();

  constructor(deps: Pick<Deps, 'store' | 'log' | 'options'>, enforce: Enforcement) {
    this.#deps = deps;
    this.#enforce = enforce;
  }

  /** Begins what is due for a team whose balance has been used up since `exhaustedAt`, and does not wait for it. */
  async look(teamId: string, exhaustedAt: number, now: number): Promise<void> {
    const { store, options } = this.#deps;
    const deployments = await store.read.deployments.list({
      teamIds: [teamId],
      statuses: ['running', 'stopped'],
    });
    for (const deployment of deployments) {
      const step = dueStep(deployment, exhaustedAt, options.billing.zeroBalance, now);
      if (step !== null) this.#begin(deployment, step);
    }
  }

  /** Waits for what was begun. */
  async settled(): Promise<void> {
    await Promise.all(this.#underWay.values());
  }

  #begin({ id, teamId }: DeploymentRecord, step: Step): void {
    if (this.#underWay.has(id)) return;
    const { log } = this.#deps;
    log.warn(
      { deploymentId: id, teamId, step },
      'the balance of the team is used up: its deployment is ended',
    );
    const work = this.#do(id, step)
      .catch((err) => log.error({ err, deploymentId: id, step }, 'a deployment without balance goes on'))
      .finally(() => this.#underWay.delete(id));
    this.#underWay.set(id, work);
  }

  async #do(id: string, step: Step): Promise<void> {
    if (step === 'terminate') return this.#enforce.terminate(id);
    try {
      await this.#enforce.stop(id);
    } catch (error) {
      if (!(error instanceof ApiError) || error.code !== 'ACTION_UNSUPPORTED') throw error;
      await this.#enforce.terminate(id);
    }
  }
}

/** What is due for a deployment of a team without balance; null: nothing yet. */
export function dueStep(
  { status, pausedAt }: Pick<DeploymentRecord, 'status' | 'pausedAt'>,
  exhaustedAt: number,
  { graceMs, stoppedGraceMs }: { graceMs: number; stoppedGraceMs: number },
  now: number,
): Step | null {
  const sinceMs = now - exhaustedAt;
  if (status === 'running' && sinceMs >= graceMs)
    return sinceMs >= graceMs + TRY_TO_STOP_MS ? 'terminate' : 'stop';
  const stoppedMs = now - Math.max(exhaustedAt, pausedAt ?? exhaustedAt);
  return status === 'stopped' && stoppedMs >= stoppedGraceMs ? 'terminate' : null;
}
