import { LeaseLost } from '../../work/lease.ts';
import { ApiError } from '../contract/errors.ts';
import type { Deps } from '../deps.ts';
import { type DeploymentRecord, logNames } from '../model/deployment-record.ts';
import type { Store } from '../model/store.ts';
import { type VolumeRecord, logNames as volumeNames } from '../model/volume-record.ts';
import { VolumesAreKept, volumesToDelete } from './watch-volumes.ts';

/** The steps for a team without balance. They ignore the minimum runtime. `store` is fenced by the round's lease. */
export interface Enforcement {
  /** Rejects with ACTION_UNSUPPORTED if the machine cannot stop, and with {@link BalanceIsBack} if the team has paid. */
  stop(deploymentId: string, store: Store): Promise<void>;
  /** Rejects with {@link BalanceIsBack} if the step is no longer due. */
  terminate(deploymentId: string, store: Store): Promise<void>;
  /** Rejects with {@link VolumesAreKept} if the team has a balance again. */
  deleteVolume(volume: VolumeRecord, store: Store): Promise<void>;
}

/** The balance was above zero again before the deployment was ended, so the deployment continues. */
export class BalanceIsBack extends Error {
  override readonly name = 'BalanceIsBack';
}

/** How long a failing stop is retried before the deployment is terminated instead, so that it does not run unpaid. */
const TRY_TO_STOP_MS = 30 * 60_000;

type Step = 'stop' | 'terminate';

/**
 * For teams without balance: stops or terminates running deployments after a grace, terminates stopped ones after a
 * longer grace, and deletes volumes as announced. A provider that hangs does not delay the others.
 */
export class ZeroBalance {
  readonly #deps: Pick<Deps, 'clock' | 'random' | 'log' | 'options'>;
  readonly #enforce: Enforcement;
  readonly #underWay = new Map<string, Promise<void>>();

  constructor(deps: Pick<Deps, 'clock' | 'random' | 'log' | 'options'>, enforce: Enforcement) {
    this.#deps = deps;
    this.#enforce = enforce;
  }

  /** Starts the due steps for a team whose balance has been used up since `exhaustedAt`, without waiting for them. */
  async check(store: Store, teamId: string, exhaustedAt: number, now: number): Promise<void> {
    const { options } = this.#deps;
    const deployments = await store.read.deployments.list({
      teamIds: [teamId],
      statuses: ['running', 'stopped'],
    });
    for (const deployment of deployments) {
      const step = dueStep(deployment, exhaustedAt, options.billing.zeroBalance, now);
      if (step !== null) this.#begin(store, deployment, step);
    }
    for (const volume of await volumesToDelete(store.read, teamId, now)) this.#beginDeletion(store, volume);
  }

  async settled(): Promise<void> {
    await Promise.all(this.#underWay.values());
  }

  #begin(store: Store, deployment: DeploymentRecord, step: Step): void {
    const { id } = deployment;
    this.#run(id, { ...logNames(deployment), step }, () => this.#do(store, id, step), {
      begun: 'the balance of the team is used up: its deployment is being ended',
      kept: 'the team has paid: its deployment continues',
      failed:
        'could not end a deployment of a team without balance; it still costs money: it will be retried',
    });
  }

  #beginDeletion(store: Store, volume: VolumeRecord): void {
    this.#run(volume.id, volumeNames(volume), () => this.#enforce.deleteVolume(volume, store), {
      begun: 'the balance of the team is used up and the grace period is over: its volume is being deleted',
      kept: 'the volumes of the team are kept',
      failed: 'a volume of a team without balance still exists; its deletion is retried',
    });
  }

  #run(
    id: string,
    fields: object,
    work: () => Promise<void>,
    texts: { begun: string; kept: string; failed: string },
  ): void {
    if (this.#underWay.has(id)) return;
    const { log } = this.#deps;
    log.warn(fields, texts.begun);
    const running = work().catch((err) => {
      if (err instanceof LeaseLost) return;
      if (err instanceof BalanceIsBack || err instanceof VolumesAreKept) log.info(fields, texts.kept);
      else log.error({ err, ...fields }, texts.failed);
    });
    this.#underWay.set(
      id,
      running.finally(() => this.#underWay.delete(id)),
    );
  }

  async #do(store: Store, id: string, step: Step): Promise<void> {
    if (step === 'terminate') return this.#enforce.terminate(id, store);
    try {
      await this.#enforce.stop(id, store);
    } catch (error) {
      if (!(error instanceof ApiError) || error.code !== 'ACTION_UNSUPPORTED') throw error;
      await this.#enforce.terminate(id, store);
    }
  }
}

/** The step that is due for a deployment of a team without balance; null: none yet. */
export function dueStep(
  deployment: Pick<DeploymentRecord, 'status' | 'pausedAt'>,
  exhaustedAt: number,
  graces: Graces,
  now: number,
): Step | null {
  const from = stepDueAt(deployment, exhaustedAt, graces);
  if (now < from) return null;
  return deployment.status === 'stopped' || now >= from + TRY_TO_STOP_MS ? 'terminate' : 'stop';
}

/** When the first step is due for a deployment of a team without balance; infinite in any other status. */
export function stepDueAt(
  { status, pausedAt }: Pick<DeploymentRecord, 'status' | 'pausedAt'>,
  exhaustedAt: number,
  { graceMs, stoppedGraceMs }: Graces,
): number {
  if (status === 'running') return exhaustedAt + graceMs;
  if (status === 'stopped') return Math.max(exhaustedAt, pausedAt ?? exhaustedAt) + stoppedGraceMs;
  return Number.POSITIVE_INFINITY;
}

interface Graces {
  graceMs: number;
  stoppedGraceMs: number;
}
