import type { LabReplicas } from './lab-replicas.ts';

/** A command of a server that changes something on the platform, held before it is carried out. */
export interface HeldCommand {
  /** Of the server. */
  pid: number;
  /** What it does, without the names of this run. */
  name: string;
  /** What it changes, and by which claim: the host refuses it after a later one. Undefined: the engine compares none. */
  claim?: { resource: string; fence: number } | undefined;
  /** Carries it out. It is over when this settles; false: it was refused. */
  carryOut(): Promise<boolean>;
  /** Gives its server the answer, or none where it was not carried out. */
  release(): void;
}

/**
 * - `killed before`: kill -9, and the command is never carried out.
 * - `killed after`: kill -9 once it was carried out, with its answer unread.
 * - `paused before`: SIGSTOP. The command comes late: after another server has gone on to the next.
 * - `paused after`: SIGSTOP once it was carried out. The server wakes after another has gone on to the next.
 */
export type Way = 'killed before' | 'killed after' | 'paused before' | 'paused after';

/** All four ways; with $BERTH_LAB_HALF one kill and one pause on libvirt, and the other two on Incus. */
export function waysOf(engine: 'libvirt' | 'incus'): readonly Way[] {
  if (!process.env['BERTH_LAB_HALF'])
    return ['killed before', 'killed after', 'paused before', 'paused after'];
  return engine === 'libvirt' ? ['killed after', 'paused before'] : ['killed before', 'paused after'];
}

/**
 * The lease where a server is paused: the shorter, the sooner another server continues. It is four times as long as a
 * call takes beside guests on a slow machine.
 */
const PAUSED_LEASE_S = 12;

/** What `way` needs: two servers where one is paused, since the other goes on; one where it is killed and the next goes on at once. */
export async function settingOf<T>(
  way: Way,
  replicas: readonly [T, T],
  createDatabase: () => Promise<string>,
): Promise<{ database: string; leaseS: number; replicas: readonly T[] }> {
  if (way.startsWith('paused')) return { database: await createDatabase(), leaseS: PAUSED_LEASE_S, replicas };
  return { database: 'sqlite:berth.db', leaseS: 30, replicas: replicas.slice(0, 1) };
}

/** Interrupts a server at each command that it has not been interrupted at in this phase. */
export class Interruptions {
  readonly #way: Way;
  readonly #servers: LabReplicas;
  readonly #phases = new Map<string, Set<string>>();
  #phase: string | undefined;
  #paused: { pid: number; name: string; held: HeldCommand[] } | undefined;
  #last: Promise<unknown> = Promise.resolve();
  /** The commands that were carried out after one of a later claim. */
  readonly lateAndDone: string[] = [];
  /** The latest claim of a command that was carried out, by resource. */
  readonly #claims = new Map<string, number>();

  constructor(way: Way, servers: LabReplicas) {
    this.#way = way;
    this.#servers = servers;
  }

  /** The commands that were interrupted, by phase. */
  get interrupted(): Record<string, string[]> {
    return Object.fromEntries([...this.#phases].map(([phase, names]) => [phase, [...names]]));
  }

  /** Commands are interrupted from now on; without a name, none is. */
  begin(phase: string | undefined): void {
    this.#phase = phase;
    if (phase !== undefined) this.#phases.set(phase, new Set());
  }

  /** Wakes the server that is paused. */
  async end(): Promise<void> {
    this.begin(undefined);
    await this.#oneByOne(() => this.#wake());
  }

  handle = (command: HeldCommand): Promise<void> => {
    if (this.#isDue(command)) return this.#oneByOne(() => this.#interrupt(command));
    if (this.#paused?.pid !== command.pid) return this.#pass(command);
    this.#paused.held.push(command);
    return Promise.resolve();
  };

  #isDue({ pid, name }: HeldCommand): boolean {
    const names = this.#phase === undefined ? undefined : this.#phases.get(this.#phase);
    return names?.has(name) === false && this.#paused?.pid !== pid;
  }

  async #interrupt(command: HeldCommand): Promise<void> {
    if (!this.#isDue(command)) return this.handle(command);
    const { pid, name } = command;
    // Its server was killed meanwhile: it comes late.
    if (!this.#servers.has(pid)) return this.#pass(command);
    this.#phases.get(this.#phase ?? '')?.add(name);
    const [what, when] = this.#way.split(' ');
    if (what === 'paused') await this.#wake();
    if (when === 'after') await this.#carryOut(command);
    if (what === 'paused') {
      this.#servers.pause(pid);
      this.#paused = { pid, name, held: [command] };
      return;
    }
    await this.#servers.replace(pid);
    command.release();
  }

  async #wake(): Promise<void> {
    const paused = this.#paused;
    if (paused === undefined) return;
    for (const command of paused.held) {
      const isFirst = command === paused.held[0];
      if (isFirst && this.#way === 'paused after') continue;
      const { resource = '', fence = 0 } = command.claim ?? {};
      const isLate = (this.#claims.get(resource) ?? 0) > fence;
      if ((await this.#carryOut(command)) && isLate) this.lateAndDone.push(command.name);
    }
    this.#paused = undefined;
    this.#servers.resume(paused.pid);
    for (const command of paused.held) command.release();
  }

  async #pass(command: HeldCommand): Promise<void> {
    await this.#carryOut(command);
    command.release();
  }

  async #carryOut(command: HeldCommand): Promise<boolean> {
    const isDone = await command.carryOut();
    const { resource, fence = 0 } = command.claim ?? {};
    if (isDone && resource !== undefined)
      this.#claims.set(resource, Math.max(fence, this.#claims.get(resource) ?? 0));
    return isDone;
  }

  #oneByOne(run: () => Promise<void>): Promise<void> {
    const done = this.#last.then(run);
    this.#last = done.catch(() => undefined);
    return done;
  }
}
