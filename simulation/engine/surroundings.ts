import type { Scheduler } from '../../test/support/time/scheduler.ts';
import type { Chance } from '../kernel/chance.ts';
import type { Doer, EngineHost } from './engine.ts';

/** An engine says no. */
export class Refusal extends Error {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;

  constructor(status: number, message: string, headers: Record<string, string> = {}) {
    super(message);
    this.status = status;
    this.headers = headers;
  }
}

export interface SurroundingParts {
  scheduler: Scheduler;
  chance: Chance;
  /** Whether nothing fails by itself. */
  isCalm: () => boolean;
  /** Something has changed. */
  observe: (by: Doer) => void;
}

/** How often what an engine does in the background fails by itself. */
const FAILURES = 0.01;

/** The time, the chance and the ids of an engine that works in the background. */
export abstract class Surroundings {
  readonly parts: SurroundingParts;
  #ids = 0;

  constructor(parts: SurroundingParts) {
    this.parts = parts;
  }

  get chance(): Chance {
    return this.parts.chance;
  }

  get now(): number {
    return this.parts.scheduler.now;
  }

  id(): string {
    return `00000000-0000-4000-8000-${String(++this.#ids).padStart(12, '0')}`;
  }

  observe(by: Doer): void {
    this.parts.observe(by);
  }

  sleep(ms: number): Promise<void> {
    return this.parts.scheduler.sleep(ms);
  }

  /** Mostly short, and long now and then. */
  async takes(shortMs: number, longMs: number): Promise<void> {
    const isLong = !this.parts.isCalm() && this.chance.happens(0.08);
    await this.sleep(isLong ? this.chance.between(shortMs, longMs) : this.chance.between(0, shortMs));
  }

  /** Whether something fails now for reasons of its own. */
  fails(rate = FAILURES): boolean {
    return !this.parts.isCalm() && this.chance.happens(rate);
  }
}

/** A host that may be silent: what it is sent meanwhile waits. */
export abstract class SilentHost implements EngineHost {
  abstract readonly name: string;
  silentSince: number | undefined;
  readonly #waiting = new Set<() => void>();

  get isSilent(): boolean {
    return this.silentSince !== undefined;
  }

  set isSilent(isSilent: boolean) {
    if (isSilent === this.isSilent) return;
    this.silentSince = isSilent ? this.fellSilent() : undefined;
    if (isSilent) return;
    this.answersAgain();
    for (const goOn of this.#waiting) goOn();
    this.#waiting.clear();
  }

  /** Returns the time. */
  protected abstract fellSilent(): number;

  protected answersAgain(): void {}

  answers(): Promise<void> {
    if (!this.isSilent) return Promise.resolve();
    return new Promise((resolve) => this.#waiting.add(resolve));
  }

  /** What waited for it is never carried out. */
  forget(): void {
    this.#waiting.clear();
  }
}
