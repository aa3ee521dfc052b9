import type { Answer, Method } from '../../../src/platform-model/platform.ts';
import { failed } from '../../../src/platform-model/steps.ts';
import type { Scheduler } from '../../../test/support/time/scheduler.ts';
import type { Chance } from '../../kernel/chance.ts';
import { Flights } from '../../kernel/flights.ts';
import type { Journal } from '../../kernel/journal.ts';
import type { ServerProcess } from '../../kernel/process.ts';
import type { CallFaults, Fault } from './call-faults.ts';

/** A call on its way to the platform. */
export interface Call {
  process: ServerProcess;
  method: Method;
  ref: string | undefined;
  sentAt: number;
  /** When its answer came; undefined: not yet. */
  answeredAt: number | undefined;
}

/** What a platform answers in place of the truth, for the faults that need it. */
export interface FalseAnswers {
  unknown?: () => Answer;
  empty?: () => Answer;
  partial?: (answer: Answer) => Answer;
  idle?: () => Answer;
  /** Undefined: the machine already starts or runs, so that this fault does not apply. */
  'no-capacity'?: () => Answer | undefined;
  revoked: () => Answer;
}

/** Who is told of calls. */
export interface CallObserver {
  called(call: Call): void;
  /** The call reaches the platform. */
  land<T>(call: Call, apply: () => T): T;
}

interface Parts {
  scheduler: Scheduler;
  chance: Chance;
  faults: CallFaults;
  journal: Journal;
  observer: CallObserver;
}

/** The caller gets no answer. */
class CallFailed extends Error {
  override readonly name = 'CallFailed';
}

/** Carries the calls of drivers to the platform and back, with latency and faults. */
export class Network {
  readonly #parts: Parts;
  readonly #flights: Flights;

  constructor(parts: Parts) {
    this.#parts = parts;
    this.#flights = new Flights(parts.scheduler);
  }

  send<T extends Answer>(
    process: ServerProcess,
    { method, ref }: { method: Method; ref: string | undefined },
    apply: () => T,
    falseAnswers: FalseAnswers,
  ): Promise<T> {
    return process.reach(() => {
      const call: Call = { process, method, ref, sentAt: this.#parts.scheduler.now, answeredAt: undefined };
      const fault = this.#parts.faults.draw(method);
      this.#parts.observer.called(call);
      this.#parts.journal.note(
        process.name,
        `→ ${method} ${ref ?? ''}${fault === undefined ? '' : ` [${fault}]`}`,
      );
      return this.#carry(call, fault, () => this.#parts.observer.land(call, apply), falseAnswers).then(
        (answer) => {
          return this.#answered(call, answer);
        },
        (error) => {
          call.answeredAt = this.#parts.scheduler.now;
          throw error;
        },
      );
    });
  }

  died(process: ServerProcess): void {
    this.#flights.died(process, this.#parts.chance);
  }

  clear(): void {
    this.#flights.clear();
  }

  #answered<T extends Answer>(call: Call, answer: T): T {
    call.answeredAt = this.#parts.scheduler.now;
    const { process, method, ref } = call;
    if (call.answeredAt > call.sentAt || method !== 'list')
      this.#parts.journal.note(process.name, `← ${method} ${ref ?? ''} ${summarize(answer)}`);
    return answer;
  }

  async #carry<T extends Answer>(
    call: Call,
    fault: Fault | undefined,
    apply: () => T,
    falseAnswers: FalseAnswers,
  ): Promise<T> {
    const chance = this.#parts.chance;
    switch (fault) {
      case undefined:
        return this.#land(call, chance.happens(0.5) ? 0 : chance.between(5, 300), apply);
      case 'before':
        throw new CallFailed('the connection was refused');
      case 'after':
        await this.#land(call, chance.between(0, 300), apply);
        throw new CallFailed('the connection broke off');
      case 'slow': {
        const answer = await this.#land(call, chance.between(200, 6_000), apply);
        await this.#parts.scheduler.sleep(chance.between(0, 3_000));
        return answer;
      }
      case 'hang':
        return this.#land(call, this.#hangMs(call.method), apply);
      case 'mute':
        await this.#land(call, chance.between(0, 300), apply);
        return this.#land(call, 3_600_000, () => {
          throw new CallFailed('the connection timed out');
        });
      case 'outage':
        return this.#away(call, falseAnswers);
      case 'refused':
        return failed(chance.happens(0.5) ? 'conflict' : 'transient', 'the server is locked') as T;
      case 'auth':
        return failed('auth', 'the credential is not known') as T;
      case 'partial': {
        const answer = await this.#land(call, 0, apply);
        return (falseAnswers.partial?.(answer) ?? answer) as T;
      }
      case 'revoked':
      case 'unknown':
      case 'empty':
      case 'idle':
      case 'no-capacity':
        return (falseAnswers[fault]?.() as T | undefined) ?? this.#land(call, 0, apply);
    }
  }

  /** Longer than a caller mostly waits, and sometimes longer than its lease. */
  #hangMs(method: Method): number {
    if (method.startsWith('volumes.')) return this.#parts.chance.between(11_000, 25_000);
    return this.#parts.chance.happens(0.2)
      ? this.#parts.chance.between(31_000, 300_000)
      : this.#parts.chance.between(11_000, 28_000);
  }

  async #away<T extends Answer>(call: Call, falseAnswers: FalseAnswers): Promise<T> {
    const how = this.#parts.chance.next();
    if (how < 0.4) throw new CallFailed('no route to the platform');
    if (how < 0.7 && falseAnswers.unknown !== undefined) return falseAnswers.unknown() as T;
    if (how < 0.7) return failed('transient', 'the service is unavailable') as T;
    return this.#land(call, 60_000, () => {
      throw new CallFailed('the connection timed out');
    });
  }

  #land<T>(call: Call, afterMs: number, apply: () => T): Promise<T> {
    if (afterMs === 0) return Promise.resolve().then(apply);
    return new Promise((resolve, reject) => {
      const land = (): void => {
        try {
          resolve(apply());
        } catch (error) {
          reject(error);
        }
      };
      const abandon = (): void => reject(new CallFailed('the connection was closed'));
      this.#flights.begin(call.process, afterMs, land, abandon);
    });
  }
}

function summarize(answer: Answer): string {
  if ('outcome' in answer)
    return answer.outcome === 'failed' ? `failed ${answer.code} (${answer.detail})` : answer.outcome;
  if (answer.answer === 'listed') return `listed ${answer.items.length}`;
  if (answer.answer !== 'observed') return answer.answer;
  const { value } = answer;
  return typeof value === 'object' && value !== null && 'power' in value ? String(value.power) : 'observed';
}
