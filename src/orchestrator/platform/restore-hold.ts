import type { Lease } from '../model/work.ts';

/**
 * Holds the work of restored rows back. After a restore, rows may be older than their machines: work from the backup
 * waits until the resource was reconciled with the platform. All other work continues.
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

  /** The instance was reconciled with the platform. */
  endInstance(id: string): void {
    this.#instances.delete(id);
  }

  endVolumes(): void {
    this.#areVolumesHeld = false;
  }

  /** Whether the work waits. A destroy does not wait, unless it has a cookie from before the backup. */
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
