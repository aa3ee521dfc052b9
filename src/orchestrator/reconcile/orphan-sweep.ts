import type { ObservedMachine, ObservedVolume } from '../ports/platform-driver.ts';
import { callStep } from './call-platform.ts';
import type { ReconcileContext } from './context.ts';

/**
 * Finds machines that carry our tag and that no live row owns, in two phases: seen in one listing, still there
 * in the next, and older than the grace. What is done then is the operator's choice; the default only tells.
 */
export class OrphanSweep {
  readonly #context: ReconcileContext;
  #seen = new Set<string>();
  readonly #told = new Set<string>();
  readonly #ownedVolumes = new Set<string>();
  #seenVolumes = new Set<string>();

  constructor(context: ReconcileContext) {
    this.#context = context;
  }

  /** `strangers`: listed machines that no live row expects. */
  async sweep(strangers: readonly ObservedMachine[]): Promise<void> {
    const { clock, options } = this.#context;
    const again = strangers.filter(
      ({ ref, createdAt }) => this.#seen.has(ref) && clock.now() - createdAt >= options.orphanGraceMs,
    );
    this.#seen = new Set(strangers.map(({ ref }) => ref));
    await Promise.all(
      again.map(async (machine) => {
        if (await this.#isOwnerless(machine)) await this.#act(machine);
      }),
    );
  }

  /** Volumes hold data: one that no row owns is never touched, only told of. */
  async sweepVolumes(volumes: readonly ObservedVolume[]): Promise<void> {
    const { clock, options, store, log } = this.#context;
    const strangers = volumes.filter(({ ref }) => !this.#ownedVolumes.has(ref) && !this.#told.has(ref));
    for (const { ref, createdAt } of strangers) {
      const row = await store.read.volumes.byOwnerRef(ref);
      if (row !== null && row.deletedAt === null) this.#ownedVolumes.add(ref);
      else if (this.#seenVolumes.has(ref) && clock.now() - createdAt >= options.orphanGraceMs) {
        this.#told.add(ref);
        log.error({ ref }, 'a volume with our tag has no row: it may be costing money, and it may hold data');
      }
    }
    this.#seenVolumes = new Set(strangers.map(({ ref }) => ref));
  }

  async #isOwnerless({ ref }: ObservedMachine): Promise<boolean> {
    const row = await this.#context.store.read.instances.byOwnerRef(ref);
    return row === null || row.status === 'DESTROYED';
  }

  async #act({ ref, power }: ObservedMachine): Promise<void> {
    const { driver, options, log } = this.#context;
    const action = options.orphans === 'stop' && power !== 'running' ? 'log' : options.orphans;
    if (!this.#told.has(ref))
      log.error({ ref, power, action }, 'a machine with our tag has no instance: it may be costing money');
    this.#told.add(ref);
    if (action === 'log') return;
    const call = action === 'stop' ? () => driver.stop(ref, null) : () => driver.destroy(ref, null);
    const step = await callStep<unknown>(
      this.#context,
      { kind: action === 'stop' ? 'stop' : 'destroy' },
      call,
    );
    log.warn({ ref, action, outcome: step.outcome }, 'acted on an orphan');
  }
}
