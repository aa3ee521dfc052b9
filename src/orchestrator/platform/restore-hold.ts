import type { Lease } from '../model/work.ts';

/**
 * Holds back the work of restored rows. After a restore, rows may be older than their machines. Work from the backup
 * waits until the resource was reconciled with the platform. All other work continues.
 */
export class RestoreHold {
  /** Rows of the backup that are not reconciled with the platform yet. */
  readonly instances = new Set<string>();
  areVolumesHeld = false;

  get areOver(): boolean {
    return this.instances.size === 0 && !this.areVolumesHeld;
  }

  /** Whether the work waits. A destroy waits only if it has a cookie from before the backup. */
  holds({ resourceKind, resourceId, kind, cookie }: Lease): boolean {
    if (kind === 'destroy' && cookie === null) return false;
    return resourceKind === 'instance' ? this.instances.has(resourceId) : this.areVolumesHeld;
  }
}
