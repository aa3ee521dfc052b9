import { generationOf, idOf } from '../../../src/orchestrator/model/attempt.ts';
import type { OwnerRef } from '../../../src/orchestrator/model/platform-driver.ts';
import type { PlatformResource } from '../../../src/orchestrator/model/platform-resource.ts';
import type { ServerProcess } from '../../kernel/process.ts';
import { Violation } from '../../kernel/violation.ts';
import { orderNamesARequest } from '../../orchestrator/invariants/orders.ts';
import { RowInspector } from '../../orchestrator/invariants/row-inspector.ts';
import { destroyedIsProved, endIsTrue, type Written } from '../../orchestrator/invariants/rows.ts';
import type { VolumeWritten } from '../../orchestrator/invariants/volume-rows.ts';
import type { SimulatedSsh } from '../../orchestrator/platform/ssh.ts';
import type { OrchestratorWorld } from '../../orchestrator/replicas/replica.ts';
import type { Clients, Reply } from '../../orchestrator/workload/clients.ts';
import type { Key, Tenant } from '../../orchestrator/workload/tenant.ts';
import {
  type Change,
  type Disk,
  type Doer,
  type Engine,
  type EngineObserver,
  isOf,
  type Machine,
} from '../engine.ts';
import type { CallObserver, UnderWay } from '../observed-driver.ts';
import { lastMark, OTHER_SERVER } from '../outages.ts';
import type { PeopleObserver } from '../people.ts';
import type { EngineScenario, PeopleRates } from '../scenario.ts';
import { addressesDiffer, machinesDiffer } from './addresses.ts';
import { bytesAreKept, copiesOf, type Writing } from './bytes.ts';
import { nothingIsChanged, oneCallAtATime } from './calls.ts';
import { removalIsOrdered } from './removals.ts';
import { absenceIsNotTold } from './rest.ts';

/** What the inspector compares the rows with. */
interface InspectedWorld extends OrchestratorWorld {
  readonly scenario: EngineScenario;
  readonly engine: Engine;
  readonly ssh: SimulatedSsh;
  readonly clients: Clients;
  /** The ids of instances whose removal the operator ordered. */
  readonly removedByOperator: ReadonlySet<string>;
}

/** For so long after a start nobody can tell of an id without a row that it never had one. */
const DOUBT_MS = 10 * 60_000;

/** Observes every part of a run with a real driver over an engine. */
export class EngineInspector
  extends RowInspector<InspectedWorld>
  implements EngineObserver, CallObserver, PeopleObserver
{
  /** What tenants wrote and nobody took away. */
  readonly writings = new Map<string, Writing>();
  /** By attempt: one that was given up is removed beside the next one. */
  readonly #underWay = new Map<OwnerRef, UnderWay[]>();
  /** Attempts whose removal the core has ordered while another was that of the row. */
  readonly #givenUp = new Set<OwnerRef>();
  /** By id: what people did to its machine. */
  readonly #deeds = new Map<string, Set<keyof PeopleRates>>();
  /**
   * Identities of machines that a late create made. Such a create may arrive between the proof that its machine is gone and the
   * write of that: listings then show the machine, and it is removed again.
   */
  readonly #madeLate = new Set<string>();
  /** The calls that made machines, or were to. */
  readonly creates: (UnderWay & { host: string; outcome: string })[] = [];
  /** When a process has written its mark last. */
  markWrittenAt = 0;
  /** Since when processes know that another server has taken the platform over. */
  readonly #taken = new WeakMap<ServerProcess, number>();
  #ofHalfMade: Violation | undefined;
  /** When the database went back last; 0: never. */
  #wentBackAt = 0;
  /** The ids that were being made when the database went back last: no listing showed them yet. */
  #beingMade: ReadonlySet<string> = new Set();
  /** The ids that listings showed without a row. */
  readonly unowned = new Set<string>();

  override async wentBack(): Promise<void> {
    this.#wentBackAt = this.world.scheduler.now;
    const calls = [...this.#underWay.values()].flat();
    this.#beingMade = new Set(
      calls.filter(({ method }) => /create$/.test(method)).map(({ ref }) => idOf(ref)),
    );
    await super.wentBack();
  }

  override replied(reply: Reply, tenant: Tenant, key: Key): void {
    super.replied(reply, tenant, key);
    const [, id = ''] = /^\/v1\/(?:instances|volumes)\/([^/]+)$/.exec(reply.path) ?? [];
    if (reply.status !== 404 || !this.isForgotten(id) || this.wasOrdered(id)) return;
    const isEarly = this.world.scheduler.now - this.#wentBackAt < DOUBT_MS && !this.#beingMade.has(id);
    const isDoubtful = isEarly || this.unowned.has(id);
    // The mark of a volume holds nothing: a create that was forgotten may write one late.
    const traces = this.world.engine.traces(id).filter((trace) => !/\.mark on /.test(trace));
    if (isDoubtful) this.check(() => absenceIsNotTold(id, traces));
  }

  wrote(text: string, id: string): void {
    this.world.journal.note('guest', `${text} is written to ${id}`);
    this.writings.set(text, { text, id });
  }

  hasSuffered(id: string, ...deeds: readonly (keyof PeopleRates)[]): boolean {
    const suffered = this.#deeds.get(id);
    return deeds.some((deed) => suffered?.has(deed) === true);
  }

  touched({ ref }: Machine, deed: keyof PeopleRates): void {
    if (ref === undefined) return;
    const deeds = this.#deeds.get(idOf(ref)) ?? new Set();
    this.#deeds.set(idOf(ref), deeds.add(deed));
  }

  rowOf(ref: OwnerRef): (PlatformResource & { id: string }) | undefined {
    const id = idOf(ref);
    return this.history.instance(id) ?? this.history.volume(id);
  }

  changed(change: Change, by: Doer): void {
    const { journal } = this.world;
    const what = describe(change);
    journal.note('engine', `${what}${by === 'a person' ? '' : ` by ${by.process.name}`}`);
    if (change.what === 'machine booted') {
      this.#checkAddress(change.machine);
      return;
    }
    if (change.what === 'machine made') {
      if (by !== 'a person' && by.isLate) this.#madeLate.add(change.machine.identity);
      return;
    }
    const ref =
      change.what === 'machine removed'
        ? change.machine.isCopy
          ? undefined
          : change.machine.ref
        : change.disk.ref;
    if (by !== 'a person' && change.what !== 'disk replaced' && ref !== undefined)
      this.#checkRemoval({ ref, what, line: by.line, isGivenUp: this.#givenUp.has(ref) }, hasRun(change));
    if (change.what !== 'machine removed') this.#checkBytes(what, by, lostOf(change));
  }

  /** What no guest ever ran from is told last: it hides nothing worse that follows. */
  #checkRemoval(removal: Parameters<typeof removalIsOrdered>[0], hadGuest: boolean): void {
    const { ref } = removal;
    if (this.wasOrdered(idOf(ref))) return;
    try {
      removalIsOrdered(removal, this.rowOf(ref));
    } catch (error) {
      if (!(error instanceof Violation) || hadGuest)
        this.check(() => {
          throw error;
        });
      else this.#ofHalfMade ??= error;
    }
  }

  /** @throws {Violation} for the first removal of something half-made that nobody asked for */
  assertHalfMadeIsKept(): void {
    if (this.#ofHalfMade !== undefined) throw this.#ofHalfMade;
  }

  #checkAddress(machine: Machine): void {
    const isExcused = ({ ref, isCopy }: Machine): boolean =>
      ref === undefined || isCopy || this.hasSuffered(idOf(ref), 'move', 'clone', 'undefine');
    this.check(() => machinesDiffer(machine, this.world.engine.machines(), isExcused));
  }

  /** What has lost its last copy: taken away by a person, by an order, or by a fault of ours. */
  #checkBytes(what: string, by: Doer, lost: readonly string[]): void {
    const { engine } = this.world;
    for (const text of lost) {
      const writing = this.writings.get(text);
      if (writing === undefined) continue;
      const copies = copiesOf(writing.id, engine.disks(), engine.machines());
      const isAskedFor = by === 'a person' || this.wasOrdered(writing.id);
      if (!isAskedFor) this.check(() => bytesAreKept(writing, copies, what));
      if (!copies.some(({ content }) => content.written.includes(text))) this.writings.delete(text);
    }
  }

  marked(process: ServerProcess, texts: readonly string[], isWritten: boolean): void {
    const { now } = this.world.scheduler;
    if (isWritten) this.markWrittenAt = now;
    if (lastMark(texts)?.by !== OTHER_SERVER) this.#taken.delete(process);
    else if (!this.#taken.has(process)) this.#taken.set(process, now);
  }

  override storeFailed(process: ServerProcess): void {
    this.#taken.delete(process);
  }

  began(process: ServerProcess, method: string, ref: OwnerRef): UnderWay {
    const call = { process, method, ref, beganAt: this.world.scheduler.now };
    const others = this.#underWay.get(ref) ?? [];
    this.world.journal.note(process.name, `→ ${method} ${ref}`);
    this.check(() => oneCallAtATime(call, others));
    const { heldUpUntil } = this.world.database;
    const takenAt = this.#taken.get(process) ?? Number.POSITIVE_INFINITY;
    const knownSince = Math.max(takenAt, process.pausedUntil, heldUpUntil);
    this.check(() => nothingIsChanged(call, knownSince));
    if (/destroy$/.test(method) && this.rowOf(ref)?.ownerRef !== ref) this.#givenUp.add(ref);
    this.#underWay.set(ref, [...others, call]);
    return call;
  }

  ended(call: UnderWay, outcome: string): void {
    const others = this.#underWay.get(call.ref) ?? [];
    const host = this.rowOf(call.ref)?.host ?? '';
    if (call.method === 'create') this.creates.push({ ...call, host, outcome });
    this.world.journal.note(call.process.name, `← ${call.method} ${call.ref} ${outcome}`);
    this.#underWay.set(
      call.ref,
      others.filter((one) => one !== call),
    );
  }

  listed(process: ServerProcess, refs: readonly OwnerRef[]): void {
    for (const ref of refs) {
      const id = idOf(ref);
      if (this.rowOf(ref) !== undefined || this.isPruned(id) || this.unowned.has(id)) continue;
      this.world.journal.note(process.name, `is shown ${ref}, which has no row`);
      this.unowned.add(id);
    }
  }

  protected override checkWritten(written: Written): void {
    const { ssh, scenario, clients, engine } = this.world;
    const { after } = written;
    this.checkRow(written, ssh.proof(after.ownerRef, []));
    const own = engine.machines().filter(({ ref, isCopy }) => isOf(after.id, ref) && !isCopy);
    const truth = {
      machines: own,
      isEarly: false,
      hasSuffered: this.#wentBackAt > 0 || this.hasSuffered(after.id, 'undefine', 'remove'),
      isDeleteSent: clients.hasAskedToDelete(after.id),
    };
    orderNamesARequest(written, {
      ...truth,
      isPolicySet: scenario.heldFailuresS !== null,
      isOrderedByOperator: this.world.removedByOperator.has(after.id),
    });
    // A create that stood still since before people removed the machine may reach the engine now. The sweep removes its
    // machine; or it never becomes the one that its tenant had.
    const isRemade = this.hasSuffered(after.id, 'remove');
    // What an earlier attempt left half-made has an order of its own, and never becomes the instance's machine.
    const isEarlier = ({ ref = '' }: Machine): boolean => generationOf(ref) < generationOf(after.ownerRef);
    const isBlank = (machine: Machine): boolean =>
      machine.disk?.content.guest === undefined && (isRemade || isEarlier(machine));
    endIsTrue(written, { ...truth, machines: own.filter((machine) => !isBlank(machine)) });
    // What people were moving to a host that is silent since is removed once it is shown.
    const isHidden = ({ host }: Machine): boolean =>
      this.hasSuffered(after.id, 'move') &&
      engine.hosts.some(({ name, isSilent }) => name === host && isSilent);
    destroyedIsProved(
      written,
      own.filter(
        (machine) =>
          machine.ref === after.ownerRef &&
          !isHidden(machine) &&
          !isRemade &&
          !this.#madeLate.has(machine.identity),
      ),
    );
    // Where a machine is gone, and its row does not know that yet, another may have its address.
    const withMachine = new Set(engine.machines().flatMap(({ ref }) => (ref === undefined ? [] : idOf(ref))));
    const isExcused = (id: string): boolean =>
      !withMachine.has(id) || this.hasSuffered(id, 'move', 'clone', 'undefine');
    addressesDiffer(this.history.instances(), isExcused);
  }

  protected override checkVolumeWritten(written: VolumeWritten): void {
    const isDeleteSent = this.world.clients.hasAskedToDelete(written.after.id);
    this.checkVolumeRow(written);
    orderNamesARequest(written, { isDeleteSent, isPolicySet: false });
  }
}

type DiskChange = Extract<Change, { disk: Disk }>;

function hasRun(change: Exclude<Change, { what: 'machine booted' | 'machine made' }>): boolean {
  const disk = change.what === 'machine removed' ? change.machine.disk : change.disk;
  return disk?.content.guest !== undefined || disk?.name.endsWith('.volume') === true;
}

function lostOf(change: DiskChange): readonly string[] {
  if (change.what === 'disk removed') return change.disk.content.written;
  return change.before.content.written.filter((text) => !change.disk.content.written.includes(text));
}

function describe(change: Change): string {
  const { name, host } = 'machine' in change ? change.machine : change.disk;
  return `${change.what}: ${name} on ${host}`;
}
