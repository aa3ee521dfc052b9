import { inSlices } from '../../ports/in-slices.ts';
import { raiseFolded } from '../alarms/fold.ts';
import type { AlarmKind } from '../model/alarm.ts';
import { idOf } from '../model/attempt.ts';
import { disksKeptUntil } from '../model/destroy-order.ts';
import type { Leftover, ObservedMachine, ObservedVolume, OwnerRef } from '../model/platform-driver.ts';
import { readNote } from '../model/platform-resource.ts';
import { rowShownAs } from '../model/rows.ts';
import type { Sighting } from '../model/sighting.ts';
import type { ResourceKind } from '../model/work.ts';
import type { ReconcileContext } from '../platform/context.ts';
import type { Listed } from '../platform/shared-listing.ts';
import type { Seen } from '../platform/sightings.ts';
import { removeAgain, removeOtherAttempt, removeWithoutRow } from '../platform/superseded-attempts.ts';
import { anyNote } from './without-row.ts';

type Shown = Pick<Seen, 'name' | 'ref'> & { host?: string | undefined; problem?: string | undefined };

const RENAMED =
  'a machine or a volume of ours was renamed on the platform: Berth tracks it under the new name, and its DELETE works. Restore its ' +
  'name when you can';
const COPIED =
  'a machine or a volume of ours was copied together with its tag: the copy is never counted, adopted or removed. Delete it, or remove ' +
  'the tag from it';
const LEFT =
  'parts of a machine or a volume of ours remain that is missing from the platform: they may hold data. Their ' +
  'removal was not requested, so they stay. Inspect them; if nothing owns them, `berth orphans rm` removes them';

/** Renamed resources, copies and leftovers in the listings of one kind. Each is recorded and raises an alarm. */
export class Deviations {
  readonly #context: ReconcileContext;
  readonly #kind: ResourceKind;

  constructor(context: ReconcileContext, kind: ResourceKind) {
    this.#context = context;
    this.#kind = kind;
  }

  /** Records the deviations of a listing. A leftover with a destroy order is removed at its second listing. */
  async sweep({
    items,
    copies,
    leftovers,
    hosts,
    begunAt,
  }: Listed<ObservedMachine | ObservedVolume>): Promise<void> {
    const renamed: Shown[] = [];
    for await (const slice of inSlices(items.values()))
      for (const { ref, host, renamedTo } of slice)
        if (renamedTo !== undefined)
          renamed.push({ name: renamedTo, ref, host, problem: `it is called ${renamedTo}` });
    const left: Shown[] = [];
    for (const leftover of leftovers)
      if (!this.#isForeign(leftover)) left.push(await this.#judgeLeftover(leftover, begunAt));
    await this.#record('renamed', renamed, hosts.silent);
    const copied = copies.map(({ name, ref, host }) => ({ name, ref, host, problem: `of ${ref}` }));
    await this.#record('copy', copied, hosts.silent);
    await this.#record('leftover', left, hosts.silent);
    this.#alarm('renamed', 'resource_renamed', RENAMED, ({ resourceId }) => resourceId);
    this.#alarm('copy', 'resource_copied', COPIED, ({ name }) => name);
    this.#alarm('leftover', 'leftover', LEFT, ({ ref }) => ref);
  }

  #isForeign(leftover: Leftover): boolean {
    const { installationId, otherPlatforms } = this.#context;
    return readNote(leftover, installationId, anyNote, otherPlatforms).owner === 'foreign';
  }

  /**
   * Judges a leftover. No problem is reported while only one listing has shown it, while its disks are kept for its tenant,
   * or while it is being removed.
   */
  async #judgeLeftover(leftover: Leftover, begunAt: number): Promise<Shown> {
    const { ref, host, detail } = leftover;
    const since = this.#context.sightings.since({ resourceKind: this.#kind, what: 'leftover', name: ref });
    if (since === undefined || since >= begunAt) return { name: ref, ref, host };
    const isOrdered = await this.#remove(ref, begunAt);
    return { name: ref, ref, host, problem: isOrdered ? undefined : detail };
  }

  async #record(what: Sighting['what'], shown: readonly Shown[], silent: ReadonlySet<string>): Promise<void> {
    const seen = shown.map(({ name, ref, host, problem }) => ({
      name,
      ref,
      resourceId: idOf(ref),
      host: host ?? null,
      detail: problem === undefined ? {} : { problem },
    }));
    await this.#context.sightings.replace({ resourceKind: this.#kind, what }, seen, silent);
  }

  /** Raises the alarms for machines and volumes together, since both use the same kind of alarm. */
  #alarm(
    what: Sighting['what'],
    kind: Extract<AlarmKind, 'resource_renamed' | 'resource_copied' | 'leftover'>,
    text: string,
    subjectOf: (sighting: Sighting) => string,
  ): void {
    const { alarms, platform, log, sightings } = this.#context;
    const describe = ({ detail: { problem = '' }, host }: Sighting): string =>
      host === null ? problem : `${problem}, on ${host}`;
    const all = sightings.of(what).filter(({ detail }) => detail.problem !== undefined);
    const folded = {
      kind,
      platform,
      text,
      subjectOf,
      describe,
      fields: ({ ref }: Sighting) => ({ ref }),
      log,
    };
    raiseFolded(alarms, folded, all, true);
  }

  /** Removes a leftover under the order of its resource or attempt. Returns false if there is none: the leftover stays. */
  async #remove(ref: OwnerRef, begunAt: number): Promise<boolean> {
    const { store, platform, log, clock } = this.#context;
    const row = await rowShownAs(store.read, this.#kind, ref);
    if (row === null) return removeWithoutRow(this.#context, ref, begunAt);
    if (row.platform !== platform || idOf(row.ownerRef) !== idOf(ref)) return false;
    if (row.ownerRef !== ref) {
      const other = await removeOtherAttempt(this.#context, this.#kind, { id: row.id, ref });
      return other !== 'later';
    }
    if (row.destroyOrder === null) return false;
    if (clock.now() < disksKeptUntil(row.destroyOrder, this.#context)) return true;
    if (await removeAgain(this.#context, this.#kind, row.id))
      log.warn(
        { ref, [this.#kind]: row.id },
        'parts of a removed machine or volume are still there: they are removed',
      );
    return true;
  }
}
