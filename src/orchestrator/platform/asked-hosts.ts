import type { AskedHosts, OwnerRef } from '../model/platform-driver.ts';
import type { InstanceRecord } from '../model/records.ts';
import { areLossesAccepted, type Losing } from './loss-cap.ts';

/** The hosts behind an answer. */
export interface Hosts {
  /** `all`: the answer covers every host that the platform ever had. */
  answered: ReadonlySet<string> | 'all';
  silent: ReadonlySet<string>;
}

export function toHosts(hosts: AskedHosts | undefined): Hosts {
  if (hosts === undefined) return { answered: 'all', silent: new Set() };
  return { answered: new Set(hosts.answered), silent: new Set(hosts.silent) };
}

/**
 * Whether a machine that the answer does not show may still exist, since the host that last had it has not answered.
 */
export function isUnseen({ answered, silent }: Hosts, { host }: Pick<InstanceRecord, 'host'>): boolean {
  if (answered === 'all') return false;
  return host === null ? silent.size > 0 : !answered.has(host);
}

/**
 * The hosts of an answer after the operator's decision. While losses are accepted, the hosts that answer count as all
 * hosts of the platform. A silent host must still answer first.
 */
export async function judgeHosts(context: Losing, hosts: Hosts): Promise<Hosts> {
  if (hosts.answered === 'all' || hosts.silent.size > 0) return hosts;
  return (await areLossesAccepted(context)) ? { ...hosts, answered: 'all' } : hosts;
}

/** A sent removal is dropped after this many listings: about a day. */
const KEPT_LISTINGS = 10_000;

/**
 * The machines that the last listing showed while some hosts were silent. Each was on a host that answered. If a later
 * listing omits a machine, it may have moved to a silent host that answered for a moment, unless Berth has sent its
 * removal since.
 */
export class SeenBeside {
  readonly #silent = new Map<OwnerRef, ReadonlySet<string>>();
  /** For each machine, the number of the last listing before its removal was sent. */
  readonly #removalsSent = new Map<OwnerRef, number>();
  #listings = 0;
  #silentNow: ReadonlySet<string> = new Set();

  /** Records an accepted listing. `refs`: the machines that it shows. */
  note(refs: Iterable<OwnerRef>, { silent }: Pick<Hosts, 'silent'>): void {
    const shown = new Set(refs);
    this.#listings++;
    // Drops old removals: another server has ended those instances.
    for (const [ref, sentAt] of this.#removalsSent)
      if (this.#listings - sentAt > KEPT_LISTINGS) this.#removalsSent.delete(ref);
    for (const [ref, before] of this.#silent) {
      const still = new Set([...before].filter((host) => silent.has(host)));
      const isKnown = shown.has(ref) || this.#removalsSent.has(ref);
      if (isKnown && still.size > 0) this.#silent.set(ref, still);
      else this.#silent.delete(ref);
    }
    if (silent.size > 0) for (const ref of shown) this.#silent.set(ref, silent);
    this.#silentNow = silent;
  }

  /**
   * Call it after a listing that is not trusted. A silent host may have been back meanwhile, and a machine may have
   * moved to it.
   */
  forget(): void {
    this.#silent.clear();
  }

  /** Whether any host was silent in the last listing. */
  get isBesideSilence(): boolean {
    return this.#silentNow.size > 0;
  }

  /**
   * Whether another host showed the machine while all of `silent` were silent, so it cannot have moved to one of them.
   */
  has(ref: OwnerRef, silent: ReadonlySet<string>): boolean {
    const before = this.#silent.get(ref);
    return before !== undefined && [...silent].every((host) => before.has(host));
  }

  /** Records that a removal is sent now. Call the returned function if the removal was refused without effect. */
  removalSent(ref: OwnerRef): () => void {
    if (this.#removalsSent.has(ref)) return () => undefined;
    this.#removalsSent.set(ref, this.#listings);
    return () => void this.#removalsSent.delete(ref);
  }

  isRemovalSent(ref: OwnerRef): boolean {
    return this.#removalsSent.has(ref);
  }

  /** Records that the removal has ended. */
  removed(ref: OwnerRef): void {
    this.#removalsSent.delete(ref);
  }
}
