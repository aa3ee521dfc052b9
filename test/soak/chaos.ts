import type { RemoteFault } from '../../src/drivers/simulator/remote/faults.ts';
import type { SoakDatabase } from './database.ts';
import { Dice, insistently, sleep } from './dice.ts';
import type { Journal } from './journal.ts';
import type { Platform, Replica } from './processes.ts';

interface Parts {
  replicas: readonly Replica[];
  platform: Platform;
  database: SoakDatabase;
  journal: Journal;
  seed: string;
  leaseMs: number;
}

const PAUSE_MS = [500, 2_500] as const;
const WEIGHTS = { kill: 5, killAll: 1, restart: 1, pause: 3, cut: 4, database: 1, faults: 6, platform: 2 };
type Blow = keyof typeof WEIGHTS;
const PLATFORM_FAULTS: readonly RemoteFault[] = [
  ...(['fail-before', 'fail-after', 'hang', 'unknown', 'lie-empty', 'delay', 'auth'] as const),
];

/** What goes wrong, one thing after another. */
export class Chaos {
  readonly #parts: Parts;
  readonly #dice: Dice;
  readonly #pickUps: Promise<void>[] = [];

  constructor(parts: Parts) {
    this.#parts = parts;
    this.#dice = new Dice(parts.seed, 'chaos');
  }

  async rage(until: number): Promise<void> {
    while (Date.now() < until) {
      await sleep(this.#dice.between(...PAUSE_MS));
      await this.#strike(this.#dice.weighted(this.#weights()));
    }
  }

  /** Heals everything: all processes run, no fault is injected. */
  async end(): Promise<void> {
    const { replicas, platform } = this.#parts;
    if (!platform.isRunning) await platform.start();
    await platform.setFaults({});
    for (const replica of replicas) if (!replica.isRunning) await replica.start();
    await Promise.all(this.#pickUps);
  }

  #weights(): Record<Blow, number> {
    const { database, replicas } = this.#parts;
    return {
      ...WEIGHTS,
      ...(database.restart === undefined && { database: 0 }),
      ...(database.terminateConnections === undefined && { cut: 0 }),
      ...(replicas.length === 1 && { killAll: 0 }),
    };
  }

  async #strike(blow: Blow): Promise<void> {
    const { journal, replicas, database, platform } = this.#parts;
    const replica = this.#dice.pick(replicas);
    if (replica === undefined) return;
    journal.say(`${blow} ${blow === 'kill' || blow === 'pause' || blow === 'restart' ? replica.name : ''}`);
    journal.fault(blow);
    switch (blow) {
      case 'kill':
        return this.#kill([replica]);
      case 'killAll':
        return this.#kill(replicas);
      case 'restart': {
        const code = await replica.end('SIGTERM');
        if (code !== 0) journal.lose(`${replica.name} did not end cleanly`, { code });
        return void (await replica.start());
      }
      case 'pause':
        replica.signal('SIGSTOP');
        await sleep(this.#parts.leaseMs * this.#dice.between(1.1, 2));
        return replica.signal('SIGCONT');
      case 'cut':
        return journal.fault('connections ended', await insistently(() => this.#cut()));
      case 'database':
        return database.restart?.();
      case 'faults':
        return this.#platformFaults();
      case 'platform':
        await this.countFaults();
        await platform.end('SIGKILL');
        await sleep(this.#dice.between(0, 2_000));
        return void (await platform.start());
    }
  }

  async #cut(): Promise<number> {
    return (await this.#parts.database.terminateConnections?.()) ?? 0;
  }

  async #kill(killed: readonly Replica[]): Promise<void> {
    await Promise.all(killed.map((replica) => replica.end('SIGKILL')));
    if (killed.length < this.#parts.replicas.length) this.#pickUps.push(this.#timePickUp());
    await sleep(this.#dice.between(0, 2_000));
    await Promise.all(killed.map((replica) => replica.start()));
  }

  /** Takes the time until each lease that was out when a server died is given back or another's. */
  async #timePickUp(): Promise<void> {
    const { database, journal } = this.#parts;
    const diedAt = Date.now();
    const { work } = await insistently(() => database.books());
    const open = new Set(work.flatMap(({ leaseToken }) => leaseToken ?? []));
    let lastAt = diedAt;
    while (open.size > 0) {
      await sleep(100);
      const books = await insistently(() => database.books());
      const out = new Set(books.work.map(({ leaseToken }) => leaseToken));
      for (const token of open) {
        if (out.has(token)) continue;
        open.delete(token);
        lastAt = Date.now();
      }
      if (Date.now() - diedAt > 60_000) {
        journal.lose('work of a killed server was not taken up within a minute', { tokens: [...open] });
        return;
      }
    }
    journal.pickUpsMs.push(lastAt - diedAt);
  }

  async #platformFaults(): Promise<void> {
    const { platform } = this.#parts;
    const count = Math.ceil(this.#dice.chance() * 3);
    const rates: Partial<Record<RemoteFault, number>> = {};
    for (let index = 0; index < count; index++)
      rates[this.#dice.pick(PLATFORM_FAULTS) ?? 'delay'] = this.#dice.between(0.1, 1);
    const seed = `${this.#parts.seed}-${this.#dice.chance()}`;
    this.#parts.journal.say(`platform faults ${JSON.stringify(rates)}`);
    await platform.setFaults({ seed, rates, delayMs: 3_000 });
    await sleep(this.#dice.between(1_000, 4_000));
    await platform.setFaults({});
  }

  /** The simulator forgets its counts when it dies. */
  async countFaults(): Promise<void> {
    const counts = await this.#parts.platform.faultCounts();
    for (const [name, count] of Object.entries(counts)) this.#parts.journal.fault(`platform: ${name}`, count);
  }
}
