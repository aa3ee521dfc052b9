import type { InstanceRecord, VolumeRecord } from '../../src/orchestrator/model/records.ts';
import { BaseWorld } from '../runner/world.ts';
import { nothingIsLeft } from './invariants/quiescence.ts';
import type { Commit } from './replicas/commit-feed.ts';
import type { Database } from './replicas/database.ts';
import type { OrchestratorReplica } from './replicas/replica.ts';

/** A world of orchestrators, on simulated platforms or on the real drivers. */
export abstract class OrchestratorWorld extends BaseWorld {
  abstract readonly database: Database;
  abstract readonly replicas: readonly OrchestratorReplica[];
  abstract readonly inspector: {
    readonly history: { instances(): InstanceRecord[]; volumes(): VolumeRecord[] };
    instancesWritten(records: readonly InstanceRecord[]): void;
  };
  /** Commands of clients that are not finished. */
  running = 0;

  /** Notifies the inspector and all servers of a commit. */
  protected committed(commit: Commit): void {
    if ('instances' in commit) this.inspector.instancesWritten(commit.instances);
    const { writer } = this.database;
    for (const { process, feed } of this.replicas)
      if (process !== undefined && process === writer) feed?.tellNow(commit);
      else feed?.tellSoon(commit);
  }

  /** Ends the faults of the servers. */
  healReplicas(): void {
    for (const replica of this.replicas) {
      replica.clockOffsetMs = 0;
      replica.process?.resume();
      replica.feed?.heal();
    }
  }

  /** Closes the servers within `limitMs`, and checks that no timer and no subscription is left. */
  async shutDown(limitMs: number): Promise<void> {
    this.isOver = true;
    const closing = this.replicas.map(({ serving }) => serving?.orchestrator.close());
    await this.scheduler.runUntil(this.scheduler.now + limitMs);
    await Promise.all(closing);
    for (const { process, feed } of this.replicas)
      nothingIsLeft({ timers: process?.openTimers ?? 0, subscriptions: feed?.subscriptions ?? 0 });
  }
}
