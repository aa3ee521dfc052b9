import type { Timer } from '../../ports/clock.ts';
import { inSlices } from '../../ports/in-slices.ts';
import type { ObservedMachine, ObservedVolume, OwnerRef } from '../model/platform-driver.ts';
import { putInstanceWork } from '../model/rows.ts';
import { isUnseen, judgeHosts } from './asked-hosts.ts';
import type { ReconcileContext } from './context.ts';
import { changedBefore, type ExpectedMachine, type ExpectedMachines } from './expected-machines.ts';
import { MachineAlarms } from './machine-alarms.ts';
import { OrphanSweep } from './orphan-sweep.ts';
import type { Listed } from './shared-listing.ts';
import { isNewlyVisible, markMachinesVisible, recordHosts } from './visibility.ts';

/** The first listings of the platform; null: there is no trusted one. */
export interface FirstListings {
  machines: Listed<ObservedMachine> | null;
  volumes: Listed<ObservedVolume> | null;
}

/**
 * Compares the platform's listing with the database every few seconds. A difference decides nothing by itself: it
 * puts `observe` work for the instance. While listings fail or are not trusted, nothing is decided.
 */
export class DriftDetector {
  readonly #context: ReconcileContext;
  readonly #expected: ExpectedMachines;
  readonly #orphans: OrphanSweep;
  #timer: Timer | undefined;
  #isStopped = false;
  #round: Promise<void> = Promise.resolve();
  #counting: Promise<void> | undefined;

  constructor(context: ReconcileContext, expected: ExpectedMachines) {
    this.#context = context;
    this.#expected = expected;
    this.#orphans = new OrphanSweep(context, () => this.#isStopped);
  }

  /** Waits for the first listings, at most as long as a call may take. Until then nothing is sold or decided. */
  async start(): Promise<FirstListings> {
    await this.#expected.refresh();
    const machines = await this.#context.machines.observe();
    const volumes = machines === null ? null : await this.#listVolumes();
    await this.#count(machines);
    this.#scheduleNext(this.#compareListing(machines, async () => volumes));
    return { machines, volumes };
  }

  async stop(): Promise<void> {
    this.#isStopped = true;
    this.#timer?.cancel();
    await Promise.all([this.#round, this.#counting]);
    this.#expected.close();
  }

  /** One round; it never rejects. It does not wait for the count, which a host that hangs may delay. */
  async observe(): Promise<void> {
    const machines = await this.#context.machines.observe();
    void this.#count(machines);
    await this.#compareListing(machines, () => this.#listVolumes());
  }

  /** One count at a time; it never rejects. */
  async #count(listed: Listed<ObservedMachine> | null): Promise<void> {
    if (listed === null || this.#counting !== undefined) return;
    const { items, hosts } = listed;
    // One without a host may not be made yet: it will take one of the units that are counted as free.
    const unseen = new Set<OwnerRef>();
    if (hosts.answered !== 'all')
      for (const [ref, expectation] of this.#expected.entries())
        if (expectation.host !== null && !items.has(ref) && isUnseen(hosts, expectation)) unseen.add(ref);
    this.#counting = this.#context.inventory.refresh(items, unseen);
    await this.#counting;
    this.#counting = undefined;
  }

  async #listVolumes(): Promise<Listed<ObservedVolume> | null> {
    return (await this.#context.volumes?.observe()) ?? null;
  }

  #scheduleNext(round: Promise<void>): void {
    const { clock, options } = this.#context;
    this.#round = round.then(() => {
      if (!this.#isStopped)
        this.#timer = clock.setTimer(options.watchIntervalMs, () => this.#scheduleNext(this.observe()));
    });
  }

  async #compareListing(
    listed: Listed<ObservedMachine> | null,
    listVolumes: () => Promise<Listed<ObservedVolume> | null>,
  ): Promise<void> {
    if (listed === null) return;
    const { log } = this.#context;
    try {
      await this.#compareMachines(listed);
      await this.#orphans.sweep(await this.#unowned(listed), listed);
      if (this.#isStopped) return;
      const listedVolumes = await listVolumes();
      if (listedVolumes === null) return;
      await this.#orphans.sweepVolumes([...listedVolumes.items.values()], listedVolumes);
    } catch (error) {
      log.error({ err: error }, 'the listing could not be compared with the database');
    }
  }

  /** A row that changed after the listing began is left for the next round. */
  async #compareMachines({ items, begunAt, hosts: asked }: Listed<ObservedMachine>): Promise<void> {
    const hosts = await judgeHosts(this.#context, asked);
    const shown: string[] = [];
    const moved: [id: string, host: string][] = [];
    const alarms = new MachineAlarms(this.#context);
    for await (const slice of inSlices(this.#expected.entries()))
      for (const [ref, expectation] of slice) {
        const machine = items.get(ref);
        alarms.see(expectation, machine);
        if (machine === undefined && isUnseen(hosts, expectation)) continue;
        if (machine !== undefined && isNewlyVisible(expectation, begunAt, this.#context))
          shown.push(expectation.id);
        const host = machine?.host;
        if (host !== undefined && host !== expectation.host) moved.push([expectation.id, host]);
        if (changedBefore(expectation.since, begunAt, this.#context) && differs(expectation, machine))
          await this.#observe(ref, expectation);
      }
    alarms.close();
    await markMachinesVisible(this.#context, shown);
    await recordHosts(this.#context, moved);
  }

  /** Machines without a row, or whose row has ended: they should not exist. */
  async #unowned({ items }: Listed<ObservedMachine>): Promise<ObservedMachine[]> {
    const unowned: ObservedMachine[] = [];
    for await (const slice of inSlices(items.values()))
      for (const machine of slice) {
        const status = this.#expected.get(machine.ref)?.status;
        if (status === undefined || status === 'ERROR' || status === 'OFFLINE') unowned.push(machine);
      }
    return unowned;
  }

  async #observe(ref: OwnerRef, { id, version }: ExpectedMachine): Promise<void> {
    const { store, clock } = this.#context;
    const isDestroyed = await store.transact(async (tx) => {
      const record = await tx.instances.byId(id);
      if (record === null || record.status === 'DESTROYED') return true;
      if (record.version === version && (await tx.work.of(id)) === null)
        await putInstanceWork(tx, id, 'observe', clock.now());
      return false;
    });
    // Only now: a SQLite transaction also reads what the ones before it wrote, and is taken back with them.
    if (isDestroyed) this.#expected.forget(ref);
  }
}

/** Instances in a transitional state have work of their own, which reads the machine itself. */
function differs({ status, endpoint }: ExpectedMachine, machine: ObservedMachine | undefined): boolean {
  if (status === 'STOPPED') return machine === undefined || machine.power === 'running';
  if (status !== 'ONLINE') return false;
  if (machine === undefined || machine.power !== 'running') return true;
  return (
    machine.endpoint !== undefined &&
    (machine.endpoint.publicIp !== endpoint?.publicIp || machine.endpoint.sshPort !== endpoint.sshPort)
  );
}
