import type { Lease } from '../model/work.ts';

/**
 * What has changed since the backup that a database was restored from, for all that is known: work that the backup
 * held, or that a look puts, waits until the platform has shown where its resource is. All else goes on.
 */
export class RestoreHold {
  readonly #instances = new Set<string>();
  #areVolumesHeld = false;

  /** Every row that the backup held. */
  begin(instanceIds: readonly string[]): void {
    for (const id of instanceIds) this.#instances.add(id);
    this.#areVolumesHeld = true;
  }

  get instances(): ReadonlySet<string> {
    return this.#instances;
  }

  get areVolumesHeld(): boolean {
    return this.#areVolumesHeld;
  }

  get areOver(): boolean {
    return this.#instances.size === 0 && !this.#areVolumesHeld;
  }

  /** It is known where the machine of this instance is. */
  endInstance(id: string): void {
    this.#instances.delete(id);
  }

  endVolumes(): void {
    this.#areVolumesHeld = false;
  }

  /** Whether the work waits. What is to be removed stays so, but for a cookie of before the backup. */
  holds({
    resourceKind,
    resourceId,
    kind,
    cookie,
  }: Pick<Lease, 'resourceKind' | 'resourceId' | 'kind' | 'cookie'>): boolean {
    if (kind === 'destroy' && cookie === null) return false;
    return resourceKind === 'instance' ? this.#instances.has(resourceId) : this.#areVolumesHeld;
  }
}
