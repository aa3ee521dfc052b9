import { deploymentTransitions } from '../../../src/marketplace/contract/deployment.ts';
import type { DeploymentRecord } from '../../../src/marketplace/records/deployment-record.ts';
import type { VolumeRecord } from '../../../src/marketplace/records/volume-record.ts';
import { hold, Violation } from '../../invariants/violation.ts';
import type { Life } from '../../replicas/life.ts';
import type { Written } from '../replicas/store.ts';
import type { MarketWorld } from '../world.ts';
import { type Cause, causeOfDeployment, causeOfVolume } from './causes.ts';
import { endIsTrue, isNoBlink, startIsTrue, stopIsTrue } from './truth.ts';

/** One deployment or volume, and why it cost what when. */
export interface Subject<Record_> {
  record: Record_;
  causes: Cause[];
}

/** Holds every commit against what is true, and remembers why things cost what they do. */
export class MarketInspector {
  readonly #world: MarketWorld;
  readonly deployments = new Map<string, Subject<DeploymentRecord>>();
  readonly volumes = new Map<string, Subject<VolumeRecord>>();
  /** What each team was given, in micro-USD. */
  readonly credits = new Map<string, bigint>();
  readonly mails = new Map<string, number>();

  constructor(world: MarketWorld) {
    this.#world = world;
  }

  deploymentsOf(teamId: string): DeploymentRecord[] {
    return [...this.deployments.values()].flatMap(({ record }) => (record.teamId === teamId ? [record] : []));
  }

  /** Without those that are gone. */
  volumesOf(teamId: string): VolumeRecord[] {
    return [...this.volumes.values()].flatMap(({ record }) =>
      record.teamId === teamId && record.deletedAt === null ? [record] : [],
    );
  }

  credited(teamId: string, amountMicroUsd: number): void {
    this.credits.set(teamId, (this.credits.get(teamId) ?? 0n) + BigInt(amountMicroUsd));
  }

  mailed(id: string): void {
    this.mails.set(id, (this.mails.get(id) ?? 0) + 1);
  }

  /** A process has committed. What it broke ends the run. */
  committed(life: Life, written: Written): void {
    try {
      for (const record of written.deployments) this.#deployment(life, record);
      for (const record of written.volumes) this.#volume(record);
    } catch (error) {
      if (!(error instanceof Violation)) throw error;
      this.#world.fail(error);
    }
  }

  #deployment(life: Life, after: DeploymentRecord): void {
    const known = this.deployments.get(after.id);
    const before = known?.record;
    const causes = known?.causes ?? [];
    this.deployments.set(after.id, { record: after, causes });
    if (before?.status !== after.status)
      this.#world.journal.note(life.name, `${after.id} ${before?.status ?? 'new'} → ${after.status}`);
    if (before !== undefined) changesLawfully(before, after);
    const cause = causeOfDeployment(before, after);
    if (cause !== undefined) causes.push(cause);
    if (before === undefined || before.status === after.status) return;
    const machine = this.#world.provider(after.providerId).machines.get(after.providerInstanceId ?? '');
    this.#world.provider(after.providerId).watch();
    if (after.status === 'running' && before.status === 'deploying') startIsTrue(after, machine);
    if (after.status === 'stopped')
      stopIsTrue(after, machine, before.suspicion === null && before.action?.kind === 'pause');
    const wasAskedFor = before.action?.kind === 'pause';
    if (after.status === 'terminated-provider' || (after.status === 'stopped' && !wasAskedFor))
      isNoBlink(after, machine, this.#world.scheduler.now);
    if (after.status === 'terminated-provider' || after.failureReason === 'runtime_failure')
      endIsTrue(after, machine);
  }

  #volume(after: VolumeRecord): void {
    const known = this.volumes.get(after.id);
    const causes = known?.causes ?? [];
    this.volumes.set(after.id, { record: after, causes });
    const cause = causeOfVolume(known?.record, after, Math.floor(this.#world.scheduler.now));
    if (cause !== undefined) causes.push(cause);
  }
}

function changesLawfully(before: DeploymentRecord, after: DeploymentRecord): void {
  const words = [after.id];
  hold(
    'I5',
    before.status === after.status || deploymentTransitions[before.status].includes(after.status),
    () => `${after.id} went from ${before.status} to ${after.status}`,
    words,
  );
  hold(
    'I16',
    after.revision > before.revision || before.cleanup !== after.cleanup,
    () => `${after.id} was written with the revision ${after.revision}, after ${before.revision}`,
    words,
  );
  const isOver = before.stoppedAt !== null;
  hold(
    'I21',
    !isOver || (before.stoppedAt === after.stoppedAt && before.pausedMs === after.pausedMs),
    () => `${after.id} ended at ${before.stoppedAt}, and then at ${after.stoppedAt}`,
    words,
  );
}
