import { idOf } from '../model/attempt.ts';
import type { CopyOfResource, Leftover, OwnerRef } from '../model/platform-driver.ts';
import type { InstanceRecord, VolumeRecord } from '../model/records.ts';
import { putInstanceWork, putVolumeWork } from '../model/rows.ts';
import type { ResourceKind } from '../model/work.ts';
import type { ReconcileContext } from '../platform/context.ts';
import { removeAttempt } from '../platform/superseded-attempts.ts';

const LEFT =
  'disks with the name of a machine or a volume of ours are there, and it is not: they may hold data. Nobody asked for their ' +
  'removal, so they stay';
const COPIED =
  'somebody copied a machine or a volume of ours, mark included: the copy is never counted, adopted or removed. Delete it, or take ' +
  'the mark off it';

/** The disks without a machine or volume, and the copies, that the listings of one kind of resource show. */
export class Leftovers {
  readonly #context: ReconcileContext;
  readonly #kind: ResourceKind;
  #before: ReadonlySet<OwnerRef> = new Set();
  readonly #alarmed: Record<'disk_left' | 'resource_copied', ReadonlySet<string>> = {
    disk_left: new Set(),
    resource_copied: new Set(),
  };

  constructor(context: ReconcileContext, kind: ResourceKind) {
    this.#context = context;
    this.#kind = kind;
  }

  /** What is left of a resource whose end was asked for is removed, once two listings show it. All else is an alarm. */
  async sweep(leftovers: readonly Leftover[], copies: readonly CopyOfResource[]): Promise<void> {
    const before = this.#before;
    this.#before = new Set(leftovers.map(({ ref }) => ref));
    const left = new Set<string>();
    for (const leftover of leftovers) {
      const isListedAgain = before.has(leftover.ref);
      if (!isListedAgain || (await this.#remove(leftover))) continue;
      left.add(leftover.ref);
      this.#raise('disk_left', leftover.ref, LEFT, leftover);
    }
    this.#endOthers('disk_left', left);
    const copied = new Set<string>();
    for (const copy of copies) {
      copied.add(copy.name);
      this.#raise('resource_copied', copy.name, COPIED, { ...copy, detail: `of ${copy.ref}` });
    }
    this.#endOthers('resource_copied', copied);
  }

  /** Whether it is being removed, under the order of its resource or of the attempt that left it. */
  async #remove({ ref }: Leftover): Promise<boolean> {
    const { store, platform, clock, log } = this.#context;
    const row = await this.#rowOf(ref);
    if (row === null || row.platform !== platform || idOf(row.ownerRef) !== idOf(ref)) return false;
    if (row.ownerRef !== ref) {
      await removeAttempt(this.#context, { ...row, resourceKind: this.#kind }, ref);
      return true;
    }
    if (row.destroyOrder === null) return false;
    await store.transact(async (tx) => {
      const reader = this.#kind === 'instance' ? tx.instances : tx.volumes;
      const current: InstanceRecord | VolumeRecord | null = await reader.byId(row.id);
      if (current?.destroyOrder == null || (await tx.work.of(row.id)) !== null) return;
      const put = this.#kind === 'instance' ? putInstanceWork : putVolumeWork;
      await put(tx, row.id, 'destroy', clock.now());
      log.warn({ ref, [this.#kind]: row.id }, 'disks of what was removed are there: they are removed');
    });
    return true;
  }

  async #rowOf(ref: OwnerRef): Promise<InstanceRecord | VolumeRecord | null> {
    const { instances, volumes } = this.#context.store.read;
    const rows = this.#kind === 'instance' ? instances : volumes;
    return (await rows.byOwnerRef(ref)) ?? (await rows.byId(idOf(ref)));
  }

  #raise(
    kind: 'disk_left' | 'resource_copied',
    subject: string,
    text: string,
    { host, detail }: { host?: string; detail: string },
  ): void {
    const { alarms, platform, log } = this.#context;
    const where = host === undefined ? detail : `${detail}, on ${host}`;
    alarms.raise({ kind, subject, platform, text, detail: where, fields: { subject, detail: where } }, log);
  }

  /** Those that this kind of resource raised before. */
  #endOthers(kind: 'disk_left' | 'resource_copied', subjects: ReadonlySet<string>): void {
    for (const subject of this.#alarmed[kind])
      if (!subjects.has(subject)) this.#context.alarms.end({ kind, subject });
    this.#alarmed[kind] = subjects;
  }
}
