import type { Log } from '../../src/ports/log.ts';
import type { Chance } from './chance.ts';
import { describeFields } from './journal.ts';
import { ServerProcess } from './process.ts';
import type { BaseWorld } from './world.ts';

/** A planted fault: changes the ports that a process starts with. */
export type Plant<Ports, World> = (ports: Ports, world: World, process: ServerProcess) => Ports;

/** Names of the errors by which a database refuses a value or a statement of Berth. */
const BUGS = new Set(['NotBindable', 'PostgresFailure', 'SqliteError']);

/** One of the servers: at most one process at a time, which serves `Served`. */
export abstract class Replica<Served extends object, World extends BaseWorld> {
  readonly name: string;
  /** How far its wall clock is off, in milliseconds. */
  clockOffsetMs = 0;
  protected readonly world: World;
  protected readonly chance: Chance;
  #processes = 0;
  #process: ServerProcess | undefined;
  #served: Served | undefined;

  constructor(name: string, world: World) {
    this.name = name;
    this.world = world;
    this.chance = world.chance.fork(name);
  }

  /** Starts the product in a process. */
  protected abstract compose(process: ServerProcess, chance: Chance): Promise<Served>;

  /** How long it takes until another process is started. */
  protected abstract restartMs(): number;

  /** How long a pause lasts, of about `leastMs` or more. */
  protected abstract pauseMs(chance: Chance, leastMs: number): number;

  get process(): ServerProcess | undefined {
    return this.#process;
  }

  /** The process and what it serves; undefined while none serves requests. */
  get serving(): ({ process: ServerProcess } & Served) | undefined {
    const [process, served] = [this.#process, this.#served];
    return process === undefined || served === undefined ? undefined : { process, ...served };
  }

  /** Starts a process. One that fails to start ends, and another is started. */
  start(): void {
    const { scheduler, journal } = this.world;
    const process = new ServerProcess(`${this.name}.${++this.#processes}`, scheduler);
    const chance = this.chance.fork(String(this.#processes));
    this.#process = process;
    journal.note(process.name, 'starts');
    this.compose(process, chance).then(
      (served) => {
        if (process.isDead) return;
        this.#served = served;
        journal.note(process.name, 'serves');
      },
      (error: unknown) => {
        if (!process.isDead) this.crash(`could not start: ${error instanceof Error ? error.message : error}`);
      },
    );
  }

  /** Kills the process; another is started after a while. */
  crash(why: string): void {
    const process = this.#process;
    if (process === undefined || process.isDead) return;
    const { journal, tally, scheduler, isCalm } = this.world;
    journal.note(process.name, `dies ${why}`);
    tally.crashes++;
    this.end();
    scheduler.after(isCalm ? 1_000 : this.restartMs(), () => {
      if (this.#process === undefined && !this.world.isOver) this.start();
    });
  }

  /** Pauses the process for a while, as a SIGSTOP does; its leases may run out. */
  pause(chance: Chance, leastMs = 1_000): void {
    const process = this.#process;
    if (process === undefined || process.isPaused) return;
    const { scheduler, journal, tally } = this.world;
    const ms = this.pauseMs(chance, leastMs);
    journal.note(process.name, `is paused for ${Math.round(ms / 1_000)} s`);
    tally.pauses++;
    process.pause();
    scheduler.after(ms, () => {
      if (!process.isDead) journal.note(process.name, 'goes on');
      process.resume();
    });
  }

  /** Kills the process, and starts no other. */
  end(): void {
    this.#process?.kill();
    this.#process = undefined;
    this.#served = undefined;
  }

  /** The log of a process goes into the journal. */
  protected log(process: ServerProcess): Log {
    const write = (level: string) => (fields: object, message: string) => {
      if (process.isDead) return;
      this.world.journal.note(process.name, `${level} ${message} ${describeFields(fields)}`);
      const { err } = fields as { err?: unknown };
      if (err instanceof Error && BUGS.has(err.name)) this.world.fail(err);
    };
    return { debug: () => undefined, info: write('info'), warn: write('warn'), error: write('error') };
  }
}
