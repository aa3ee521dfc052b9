import type { InstanceStatus } from '../../contract/instance.ts';
import type { InstanceRecord } from '../instances/instance-record.ts';
import type { Timer } from '../ports/clock.ts';
import type { Endpoint, ObservedMachine } from '../ports/platform-driver.ts';
import { look } from './call-platform.ts';
import type { ReconcileContext } from './context.ts';
import { OrphanSweep } from './orphan-sweep.ts';
import { putInstanceWork } from './put-work.ts';

/** What a row makes us expect of the platform. */
interface Expectation {
  id: string;
  status: InstanceStatus;
  endpoint: Endpoint | null;
  since: number;
}

const ROWS_BETWEEN_PAUSES = 5_000;

/**
 * Holds the platform's listing against the rows, every few seconds. A difference decides nothing: it has the
 * one instance looked at. A listing that fails takes every offer out of availability.
 */
export class Watch {
  readonly #context: ReconcileContext;
  readonly #expected = new Map<string, Expectation>();
  readonly #orphans: OrphanSweep;
  readonly #unsubscribe: () => void;
  #timer: Timer | undefined;
  #isStopped = false;
  #round: Promise<void> = Promise.resolve();

  constructor(context: ReconcileContext) {
    this.#context = context;
    this.#orphans = new OrphanSweep(context);
    this.#unsubscribe = context.store.subscribe({
      instancesChanged: (records) => {
        for (const record of records) this.#expect(record);
      },
    });
  }

  async start(): Promise<void> {
    for (const record of await this.#context.store.read.instances.list({})) this.#expect(record);
    this.#repeat();
  }

  async stop(): Promise<void> {
    this.#isStopped = true;
    this.#unsubscribe();
    this.#timer?.cancel();
    await this.#round;
  }

  /** One round; it never rejects. */
  async look(): Promise<void> {
    const { driver, clock, health, log } = this.#context;
    const begunAt = clock.now();
    const listing = await look(this.#context, () => driver.list());
    if (listing.answer === 'unknown') return health.failed(listing.reason);
    health.answered();
    try {
      const machines = new Map(listing.items.map((machine) => [machine.ref, machine]));
      await this.#compare(machines, begunAt);
      await this.#orphans.sweep(listing.items.filter(({ ref }) => !this.#expected.has(ref)));
      const { volumes } = driver;
      if (volumes === undefined) return;
      const listedVolumes = await look(this.#context, () => volumes.list());
      if (listedVolumes.answer === 'listed') await this.#orphans.sweepVolumes(listedVolumes.items);
    } catch (error) {
      log.error({ err: error }, 'the listing could not be held against the rows');
    }
  }

  #repeat(): void {
    this.#round = this.look().then(() => {
      if (!this.#isStopped)
        this.#timer = this.#context.clock.setTimer(this.#context.options.watchIntervalMs, () =>
          this.#repeat(),
        );
    });
  }

  /** A row that changed after the listing began is left for the next round. */
  async #compare(machines: ReadonlyMap<string, ObservedMachine>, begunAt: number): Promise<void> {
    let seen = 0;
    for (const [ref, expectation] of this.#expected) {
      if (++seen % ROWS_BETWEEN_PAUSES === 0) await new Promise((resolve) => setImmediate(resolve));
      if (expectation.since < begunAt && differs(expectation, machines.get(ref)))
        await this.#observe(expectation.id);
    }
  }

  async #observe(id: string): Promise<void> {
    const { store, clock } = this.#context;
    await store.transact(async (tx) => {
      if ((await tx.work.of(id)) !== null) return;
      await putInstanceWork(tx, id, 'observe', clock.now());
    });
  }

  #expect({ id, ownerRef, status, endpoint, updatedAt }: InstanceRecord): void {
    if (status === 'DESTROYED') this.#expected.delete(ownerRef);
    else this.#expected.set(ownerRef, { id, status, endpoint, since: updatedAt });
  }
}

/** States that are on the way have work of their own, which looks for itself. */
function differs({ status, endpoint }: Expectation, machine: ObservedMachine | undefined): boolean {
  if (status === 'STOPPED') return machine === undefined || machine.power === 'running';
  if (status !== 'ONLINE') return false;
  if (machine === undefined || machine.power !== 'running') return true;
  return (
    machine.endpoint !== undefined &&
    (machine.endpoint.publicIp !== endpoint?.publicIp || machine.endpoint.sshPort !== endpoint.sshPort)
  );
}
