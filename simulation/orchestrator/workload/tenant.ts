import type { Account, TenantName } from '../accounts.ts';

/** A key, and when it may be used. Times are virtual. */
export interface Key {
  id: string;
  text: string;
  validFrom: number;
  revokedAt: number | undefined;
}

/** A create that was sent, and its outcome as far as its client knows. */
export interface CreateSent {
  name: string;
  /** `refused`: it must leave nothing behind · `unknown`: it was applied or not, and the next list shows which. */
  outcome: 'unknown' | 'created' | 'refused';
  /** The database went back since: its row may be lost, or be there twice. */
  isForgotten: boolean;
  isRetried: boolean;
}

/** What one client knows of its resources. */
export class Tenant {
  readonly name: TenantName;
  readonly accountId: string;
  readonly keys: Key[];
  readonly instances: string[] = [];
  readonly volumes: string[] = [];
  /** By the name of the instance, which the client uses for one create only. */
  readonly creates = new Map<string, CreateSent>();
  readonly deleteSent = new Set<string>();

  constructor(name: TenantName, { id, key, keyId }: Account, now: number) {
    this.name = name;
    this.accountId = id;
    this.keys = [{ id: keyId, text: key, validFrom: now, revokedAt: undefined }];
  }

  /** The database went back to a time before: what its creates and keys came to is not known any more. */
  forget(): void {
    for (const sent of this.creates.values()) sent.isForgotten = true;
    for (const key of this.keys)
      Object.assign(key, { validFrom: Number.POSITIVE_INFINITY, revokedAt: undefined });
  }

  learnInstance(id: string): void {
    if (!this.instances.includes(id)) this.instances.push(id);
  }

  learnVolume(id: string): void {
    if (!this.volumes.includes(id)) this.volumes.push(id);
  }
}
