import type { Scheduler } from '../../test/support/time/scheduler.ts';
import type { Chance } from '../kernel/chance.ts';
import { Flights } from '../kernel/flights.ts';
import type { Journal } from '../kernel/journal.ts';
import type { ServerProcess } from '../kernel/process.ts';

/**
 * - `before`: the command is refused before it was carried out
 * - `after`: it is carried out, and its answer is lost
 * - `late`: it is carried out long after its caller gave up
 * - `mute`: it is carried out, and never answered
 * - `slow`: it and its answer take seconds each
 * - `still`: the process stands still where it is about to send it, for longer than a lease
 * - `silent`: its host does not answer
 */
export type CommandFault = 'before' | 'after' | 'late' | 'mute' | 'slow' | 'still' | 'silent';

/** How often each fault meets a command that changes something, from 0 to 1. */
export type CommandFaultRates = Record<Exclude<CommandFault, 'silent'>, number>;

/** One command of a driver to a host, such as a call of virsh. */
export interface Command {
  host: { readonly name: string; readonly isSilent: boolean };
  /** What it is, for the journal. */
  line: string;
  /** Whether it only looks. */
  isRead: boolean;
  timeoutMs: number;
  /** Ends the command of a caller that gives up. */
  signal?: AbortSignal | undefined;
}

/** A driver looks so much more often than it changes something. */
const READS_PER_CHANGE = 10;

interface Parts {
  scheduler: Scheduler;
  chance: Chance;
  journal: Journal;
  rates: CommandFaultRates;
  /** Has the process stand still for longer than a lease. */
  standStill: (process: ServerProcess) => void;
  /** Whether no fault happens any more. */
  isCalm: () => boolean;
  /** The error of an engine whose host does not answer, or whose answer was lost. */
  unreachable: (why: string) => Error;
}

/** Carries the commands of drivers to their hosts and the answers back, with latency and faults. */
export class Commands {
  readonly counts = new Map<CommandFault, number>();
  sent = 0;
  readonly #parts: Parts;
  readonly #flights: Flights;

  constructor(parts: Parts) {
    this.#parts = parts;
    this.#flights = new Flights(parts.scheduler);
  }

  /** `run` is the host's part: it is done when the command arrives there, which may be when its caller has given up. */
  async send<T>(process: ServerProcess, command: Command, run: (isLate: boolean) => Promise<T>): Promise<T> {
    const { scheduler, chance, standStill, isCalm } = this.#parts;
    const givenUpAt = scheduler.now + command.timeoutMs;
    if (!isCalm() && !command.isRead && chance.happens(this.#parts.rates.still)) {
      this.#note(process, command, 'still');
      standStill(process);
    }
    return process.reach(() => this.#carry(process, command, () => run(scheduler.now > givenUpAt)));
  }

  died(process: ServerProcess): void {
    this.#flights.died(process, this.#parts.chance);
  }

  clear(): void {
    this.#flights.clear();
  }

  #carry<T>(process: ServerProcess, command: Command, run: () => Promise<T>): Promise<T> {
    const { scheduler, chance, unreachable } = this.#parts;
    this.sent++;
    const fault = this.#draw(command);
    if (fault !== undefined) this.#note(process, command, fault);
    const { promise, resolve, reject } = Promise.withResolvers<T>();
    const fail = (why: string): void => reject(unreachable(`${command.line}: ${why}`));
    const timer = scheduler.after(command.timeoutMs, () => fail(`no answer within ${command.timeoutMs} ms`));
    const arrive = (): Promise<T> => {
      if (!command.isRead) this.#parts.journal.note(process.name, `⇒ ${command.host.name} ${command.line}`);
      return run();
    };
    const land = (afterMs: number, then: (answer: Promise<T>) => void): void => {
      if (afterMs === 0) {
        then(arrive());
        return;
      }
      const drop = this.#flights.begin(
        process,
        afterMs,
        () => then(arrive()),
        () => fail('the connection was closed'),
      );
      // The child of a caller that gives up is killed: what it had not sent yet is not sent any more.
      command.signal?.addEventListener('abort', () => chance.happens(0.5) && drop());
    };
    const answer = (answered: Promise<T>): void => void answered.then(resolve, reject);
    const drop = (answered: Promise<T>): void => void answered.catch(() => undefined);
    const give = (): void => fail('it was ended, as its caller gave up');
    command.signal?.addEventListener('abort', give);
    this.#begin(fault, command, { land, answer, drop, fail });
    return promise.finally(() => {
      timer.cancel();
      command.signal?.removeEventListener('abort', give);
    });
  }

  #begin<T>(
    fault: CommandFault | undefined,
    { host }: Command,
    way: {
      land: (afterMs: number, then: (answer: Promise<T>) => void) => void;
      answer: (answered: Promise<T>) => void;
      drop: (answered: Promise<T>) => void;
      fail: (why: string) => void;
    },
  ): void {
    const { scheduler, chance } = this.#parts;
    const { land, answer, drop, fail } = way;
    switch (fault) {
      case undefined:
      case 'still':
        land(chance.happens(0.5) ? 0 : chance.between(2, 80), answer);
        break;
      case 'before':
        fail(`${host.name} refuses the connection`);
        break;
      case 'after':
        land(chance.between(0, 200), (answered) => {
          drop(answered);
          fail('the connection broke off');
        });
        break;
      case 'late':
        land(chance.between(20_000, 300_000), drop);
        break;
      case 'mute':
        land(chance.between(0, 200), drop);
        break;
      case 'slow':
        land(chance.between(200, 5_000), (answered) => {
          scheduler.after(chance.between(0, 3_000), () => answer(answered));
          drop(answered);
        });
        break;
      case 'silent':
        if (chance.happens(0.3)) fail(`no route to ${host.name}`);
        // What reached it before it fell silent may be carried out when it goes on.
        else if (chance.happens(0.1)) land(chance.between(20_000, 300_000), drop);
    }
  }

  #draw({ host, isRead }: Command): CommandFault | undefined {
    const { chance, rates, isCalm } = this.#parts;
    if (isCalm()) return undefined;
    if (host.isSilent) return 'silent';
    for (const fault of ['before', 'after', 'late', 'mute', 'slow'] as const)
      if (chance.happens(isRead ? rates[fault] / READS_PER_CHANGE : rates[fault])) return fault;
    return undefined;
  }

  #note(process: ServerProcess, { host, line }: Command, fault: CommandFault): void {
    this.counts.set(fault, (this.counts.get(fault) ?? 0) + 1);
    this.#parts.journal.note(process.name, `→ ${host.name} ${line} [${fault}]`);
  }
}
