import { Draws } from '../transcript/draws.ts';
import type { ProbeKind } from './records.ts';
import type { Moment, State } from './state.ts';

const MS_PER_HOUR = 3_600_000;
/** `fraction` may be 0, and its logarithm infinite. */
const SMALLEST = 2 ** -48;

/** A gap of a Poisson process, in the unit of `mean`. `fraction` is at least 0 and below 1. */
export function exponential(fraction: number, mean: number): number {
  return -mean * Math.log(Math.max(1 - fraction, SMALLEST));
}

/**
 * The moments of one kind of probe. They are drawn from the secret seed of the state: a target cannot predict them, and a
 * restart neither repeats nor shifts one. A moment that passed while the monitor was down is skipped.
 */
export class Moments {
  readonly #state: State;
  readonly #draws: Draws;
  readonly #provider: string;
  readonly #kind: ProbeKind;

  constructor(state: State, seed: string, provider: string, kind: ProbeKind) {
    this.#state = state;
    this.#draws = new Draws(seed);
    this.#provider = provider;
    this.#kind = kind;
  }

  /** The moment that the state has, or a new one if it has none, has missed it, or the clock was set back since. */
  resume(now: number, meanHours: number): number {
    const known = this.#state.moment(this.#provider, this.#kind);
    if (known === undefined || known.dueAt <= now || known.drawnAt > now)
      return this.next(now, meanHours, known);
    return known.dueAt;
  }

  /** Draws the moment after `now`. Milliseconds since the epoch. */
  next(now: number, meanHours: number, known?: Moment): number {
    const before = known ?? this.#state.moment(this.#provider, this.#kind);
    const drawn = (before?.drawn ?? 0) + 1;
    const fraction = this.#draws.fraction(`${this.#provider}/${this.#kind}/${drawn}`);
    const dueAt = Math.round(now + exponential(fraction, meanHours * MS_PER_HOUR));
    this.#state.setMoment(this.#provider, this.#kind, { drawn, drawnAt: now, dueAt });
    return dueAt;
  }
}
