import type { Account, TenantName } from '../accounts.ts';

/** A key, and when it may be used. Times are virtual. */
export interface Key {
  id: string;
  text: string;
  validFrom: number;
  revokedAt: number | undefined;
}

/** A create that was sent: what came of it, as far as its client knows. */
export interface CreateSent {
  name: string;
  /** `refused`: nothing may come of it · `unknown`: it was applied or not, and the next list tells. */
  outcome: 'unknown' | 'created' | 'refused';
  isRetried: boolean;
}

/** What one client believes. */
export class Tenant {
  readonly name: TenantName;
  readonly accountId: string;
  readonly keys: Key[];
  readonly instances: string[] = [];
  readonly volumes: string[] = [];
  /** By the name that the client gave, which is unique to the create. */
  readonly creates = new Map<string, CreateSent>();
  readonly deleteSent = new Set<string>();

  constructor(name: TenantName, { id, key, keyId }: Account, now: number) {
    this.name = name;
    this.accountId = id;
    this.keys = [{ id: keyId, text: key, validFrom: now, revokedAt: undefined }];
  }

  learnInstance(id: string): void {
    if (!this.instances.includes(id)) this.instances.push(id);
  }

  learnVolume(id: string): void {
    if (!this.volumes.includes(id)) this.volumes.push(id);
  }
}
