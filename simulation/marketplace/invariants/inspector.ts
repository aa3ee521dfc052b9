import { activeStatuses, deploymentTransitions } from '../../../src/marketplace/contract/deployment.ts';
import type { DeploymentRecord } from '../../../src/marketplace/model/deployment-record.ts';
import type { SubjectKind } from '../../../src/marketplace/model/ledger-records.ts';
import type { Transaction } from '../../../src/marketplace/model/store.ts';
import type { VolumeRecord } from '../../../src/marketplace/model/volume-record.ts';
import type { ServerProcess } from '../../kernel/process.ts';
import { hold, Violation } from '../../kernel/violation.ts';
import type { MarketBase } from '../providers/market-base.ts';
import type { Machine, SimulatedProvider } from '../providers/simulated-provider.ts';
import type { Written, WrittenVolume } from '../replicas/store.ts';
import { type Cause, causeOfDeployment, causeOfVolume } from './causes.ts';
import { endIsTrue, isDeadForGood, isNoBlink, lossIsKept, startIsTrue, stopIsTrue } from './deployments.ts';
import type { PostedBefore } from './integral.ts';
import { lossesAreCapped, type WrongLoss } from './losses.ts';
import { volumeIsTrue, volumeIsWhole } from './volumes.ts';

/** One deployment or volume, and the changes of its price. */
export interface Subject<Record_> {
  record: Record_;
  causes: Cause[];
}

/** What the checks between commands and at rest use of the world. */
export type CheckedWorld = MarketBase & { readonly inspector: MarketInspector };

/** Compares every commit with the true state of the providers, and records each change of a price. */
export class MarketInspector {
  readonly #world: MarketBase;
  readonly deployments = new Map<string, Subject<DeploymentRecord>>();
  /** By deployment: how long the process stood still during the poll that first saw its machine away. */
  readonly #stoodStill = new Map<string, number>();
  readonly volumes = new Map<string, Subject<VolumeRecord>>();
  /** The credits of each team, in micro-USD. */
  readonly credits = new Map<string, bigint>();
  readonly mails = new Map<string, number>();
  /** Lost deployments whose machines the operator has deleted. */
  readonly cleanUps = new Set<string>();
  /** What was ended although it exists, because its provider denied everything. */
  readonly wrongLosses: WrongLoss[] = [];
  /** For each deployment and volume, at each change of its team's discounts. */
  readonly postedBefore = new Map<string, PostedBefore[]>();

  constructor(world: MarketBase) {
    this.#world = world;
  }

  deploymentsOf(teamId: string): DeploymentRecord[] {
    return [...this.deployments.values()].flatMap(({ record }) => (record.teamId === teamId ? [record] : []));
  }

  /** Without those that are deleted. */
  volumesOf(teamId: string): VolumeRecord[] {
    return [...this.volumes.values()].flatMap(({ record }) =>
      record.teamId === teamId && record.deletedAt === null ? [record] : [],
    );
  }

  credited(teamId: string, amountMicroUsd: number): void {
    this.credits.set(teamId, (this.credits.get(teamId) ?? 0n) + BigInt(amountMicroUsd));
  }

  /** A team's discounts change in this transaction. What a server whose clock is ahead has already posted stays. */
  async discountsChange({ ledger, discounts }: Transaction, teamId: string): Promise<void> {
    const { scheduler, clockErrorMs } = this.#world;
    const latest = Math.floor(scheduler.now) + clockErrorMs;
    const before = await discounts.ofTeam(teamId);
    const remember = async (kind: SubjectKind, { record }: { record: { id: string; teamId: string } }) => {
      if (record.teamId !== teamId) return;
      const segments = await ledger.segmentsOf(kind, record.id);
      const until = Math.min(latest, Math.max(0, ...segments.map(({ postedUntil }) => postedUntil)));
      const known = this.postedBefore.get(record.id) ?? [];
      this.postedBefore.set(record.id, [...known, { until, discounts: before }]);
    };
    for (const subject of this.deployments.values()) await remember('deployment', subject);
    for (const subject of this.volumes.values()) await remember('volume', subject);
  }

  mailed(id: string): void {
    this.mails.set(id, (this.mails.get(id) ?? 0) + 1);
  }

  /** Checks a commit of a process; a violation ends the run. */
  committed(process: ServerProcess, written: Written): void {
    try {
      for (const record of written.deployments) this.#deployment(process, record);
      for (const volume of written.volumes) this.#volume(process, volume);
    } catch (error) {
      if (!(error instanceof Violation)) throw error;
      this.#world.fail(error);
    }
  }

  /** I9: what was committed before a power cut is there after it. */
  async recovered(): Promise<void> {
    const { read } = this.#world.database.store;
    for (const { record } of this.deployments.values())
      isKept(record, await read.deployments.byId(record.id));
    for (const { record } of this.volumes.values()) isKept(record, await read.volumes.byId(record.id));
  }

  /** I43: an instance is deleted for a deployment that is over, and not by itself for one that ended by a 404. */
  deletes(providerId: string, machine: Machine | undefined): void {
    if (machine === undefined) return;
    for (const { record } of this.deployments.values()) {
      const { id, status, cleanup } = record;
      if (record.providerId !== providerId || record.providerInstanceId !== machine.id) continue;
      const isOrdered = cleanup !== 'none' || this.cleanUps.has(id);
      if (!activeStatuses.includes(status) && isOrdered) continue;
      const what = `${machine.id} is deleted, and ${id} is ${status}, with the clean-up ${cleanup}`;
      this.#world.fail(new Violation('I43', what, [id, machine.id]));
    }
  }

  #deployment(process: ServerProcess, after: DeploymentRecord): void {
    const known = this.deployments.get(after.id);
    const before = known?.record;
    const causes = known?.causes ?? [];
    this.deployments.set(after.id, { record: after, causes });
    this.#noteStandstill(process, before, after);
    if (before?.status !== after.status)
      this.#world.journal.note(process.name, `${after.id} ${before?.status ?? 'new'} → ${after.status}`);
    if (before !== undefined) changesLawfully(before, after);
    if (before?.providerInstanceId !== after.providerInstanceId) this.#isAlone(after);
    const cause = causeOfDeployment(before, after);
    if (cause !== undefined) causes.push(cause);
    if (before !== undefined && before.status !== after.status) this.#newStatus(before, after);
  }

  #newStatus(before: DeploymentRecord, after: DeploymentRecord): void {
    const machine = this.#world.provider(after.providerId).machines.get(after.providerInstanceId ?? '');
    this.#world.provider(after.providerId).recordStatuses();
    const errorMs = this.#world.clockErrorMs;
    if (after.status === 'running' && before.status === 'deploying') startIsTrue(after, machine, errorMs);
    if (after.status === 'stopped')
      stopIsTrue(before, after, machine, { errorMs, stoodStillMs: this.#stoodStill.get(after.id) ?? 0 });
    // Only an end that follows a 404 can be a wrong loss; any other follows what the provider showed.
    const isDenied = after.status === 'terminated-provider' && before.suspicion?.status === 'GONE';
    if (isDenied && this.#isWronglyLost(after)) {
      lossIsKept(after);
      return;
    }
    const wasAskedFor = before.action?.kind === 'pause';
    if (after.status === 'terminated-provider' || (after.status === 'stopped' && !wasAskedFor))
      isNoBlink(after, machine, this.#world.scheduler.now);
    if (after.status === 'terminated-provider' || after.failureReason === 'runtime_failure')
      endIsTrue(after, machine, errorMs);
  }

  /** A poll sees a machine away: its process may have stood still since the poll began. */
  #noteStandstill(
    { pausedUntil }: ServerProcess,
    before: DeploymentRecord | undefined,
    { id, suspicion }: DeploymentRecord,
  ): void {
    if (suspicion === null || before?.suspicion?.since === suspicion.since) return;
    const stoodUntil = Math.min(pausedUntil, this.#world.scheduler.now);
    this.#stoodStill.set(id, Math.max(0, stoodUntil - suspicion.since));
  }

  /** I43: no instance is that of two deployments. */
  #isAlone({ id, providerId, providerInstanceId }: DeploymentRecord): void {
    if (providerInstanceId === null) return;
    const records = [...this.deployments.values()].map(({ record }) => record);
    const other = records.find(
      (it) => it.id !== id && it.providerId === providerId && it.providerInstanceId === providerInstanceId,
    );
    const isFree = other === undefined || other.cleanup === 'done';
    hold('I43', isFree, () => `${id} gets ${providerInstanceId}, which ${other?.id} has`, [id]);
  }

  /** A deployment whose machine is dead for good ends rightly, denied or not. */
  #isWronglyLost({ id, providerId, providerInstanceId }: DeploymentRecord): boolean {
    const provider = this.#world.provider(providerId);
    const machine = provider.machines.get(providerInstanceId ?? '');
    const isThere = provider.living.some((instance) => instance.id === providerInstanceId);
    if (!isThere || isDeadForGood(machine, this.#world.scheduler.now)) return false;
    return this.#wronglyLost(provider, id, providerInstanceId);
  }

  /** A volume whose deletion its provider accepted is no loss: any 404 may end it. */
  #isVolumeWronglyLost({ id, providerId, providerVolumeId, deletionTakenAt }: VolumeRecord): boolean {
    const provider = this.#world.provider(providerId);
    const isThere = provider.plain.volumes.some((volume) => volume.id === providerVolumeId);
    if (isThere && deletionTakenAt !== null) return provider.denied.has(providerVolumeId ?? '');
    return isThere && this.#wronglyLost(provider, id, providerVolumeId);
  }

  #wronglyLost(provider: SimulatedProvider, id: string, deniedId: string | null): boolean {
    if (!provider.denied.has(deniedId ?? '')) return false;
    this.wrongLosses.push({ id, providerId: provider.id, at: this.#world.scheduler.now });
    lossesAreCapped(this, this.#world, provider.id);
    return true;
  }

  #volume(process: ServerProcess, { record: after, attachments }: WrittenVolume): void {
    const known = this.volumes.get(after.id);
    const before = known?.record;
    const causes = known?.causes ?? [];
    this.volumes.set(after.id, { record: after, causes });
    if (before?.status !== after.status || before.action?.kind !== after.action?.kind)
      this.#world.journal.note(
        process.name,
        `${after.id} ${before?.status ?? 'new'} → ${after.status} ${after.action?.kind ?? ''}`,
      );
    const cause = causeOfVolume(before, after);
    if (cause !== undefined) causes.push(cause);
    volumeIsWhole(before, after, attachments);
    if (after.status === 'deleted' && before?.status !== 'deleted' && this.#isVolumeWronglyLost(after))
      return;
    volumeIsTrue(before, after, this.#world.provider(after.providerId));
  }
}

function isKept(
  known: { id: string; revision: number },
  found: { status: string; revision: number } | null,
): void {
  hold(
    'I9',
    found !== null && found.revision >= known.revision,
    () => `${known.id} had the revision ${known.revision} when the power was cut, and has ${found?.revision}`,
    [known.id],
  );
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
