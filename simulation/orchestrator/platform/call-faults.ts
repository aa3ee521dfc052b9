import type { Chance } from '../../kernel/chance.ts';
import type { Scheduler } from '../../kernel/scheduler.ts';

/** The calls of a driver, and the one of the SSH probe. */
export type Method =
  | 'get'
  | 'list'
  | 'create'
  | 'stop'
  | 'start'
  | 'restart'
  | 'destroy'
  | 'volumes.get'
  | 'volumes.list'
  | 'volumes.create'
  | 'volumes.attach'
  | 'volumes.detach'
  | 'volumes.resize'
  | 'volumes.destroy';

/**
 * `before`: it fails, nothing was done · `after`: it is done, the answer is lost · `hang`: it reaches the platform
 * late, long after its caller stopped waiting, and its answer with it · `mute`: done, and never answered · `slow`:
 * both ways take seconds · `refused`: locked, or reserved · `auth`: the platform does not know us · `unknown`: a look
 * tells nothing · `empty`, `partial`: of a listing · `idle`: it says done and has not begun · `no-capacity`: nothing
 * is free · `outage`, `revoked`: the platform is away, or shows us an empty account.
 */
export type Fault =
  | 'before'
  | 'after'
  | 'hang'
  | 'mute'
  | 'slow'
  | 'refused'
  | 'auth'
  | 'unknown'
  | 'empty'
  | 'partial'
  | 'idle'
  | 'no-capacity'
  | 'outage'
  | 'revoked';

type Weights = Partial<Record<Fault, number>>;

const ANY: Weights = { before: 4, after: 4, hang: 2, mute: 1, slow: 4 };
const ORDER: Weights = { ...ANY, refused: 3, auth: 1 };
const LOOK: Weights = { ...ANY, unknown: 4 };

const weights: Readonly<Record<Method, Weights>> = {
  get: LOOK,
  list: { ...LOOK, empty: 2, partial: 3 },
  create: { ...ORDER, after: 8, hang: 6 },
  stop: { ...ORDER, idle: 1 },
  start: { ...ORDER, idle: 1, 'no-capacity': 20 },
  restart: { ...ORDER, after: 8, hang: 4, idle: 1 },
  destroy: { ...ORDER, idle: 3 },
  'volumes.get': LOOK,
  'volumes.list': { ...LOOK, empty: 2, partial: 3 },
  'volumes.create': { ...ORDER, after: 8 },
  'volumes.attach': ORDER,
  'volumes.detach': ORDER,
  'volumes.resize': { ...ORDER, refused: 1, after: 8, idle: 1 },
  'volumes.destroy': { ...ORDER, idle: 2 },
};

/** Decides what goes wrong with a call, and keeps the weather: outages and revoked credentials. */
export class CallFaults {
  readonly #scheduler: Scheduler;
  readonly #chance: Chance;
  readonly #rate: number;
  #isOver = false;
  #outageUntil = 0;
  #revokedUntil = 0;
  /** Whether a platform that shows nothing can be seen through now. */
  readonly #canLie: () => boolean;
  readonly counts = new Map<Fault, number>();
  calls = 0;

  constructor(scheduler: Scheduler, chance: Chance, rate: number, canLie: () => boolean) {
    this.#canLie = canLie;
    this.#scheduler = scheduler;
    this.#chance = chance;
    this.#rate = rate;
  }

  get isOver(): boolean {
    return this.#isOver;
  }

  get isRevoked(): boolean {
    return this.#revokedUntil > this.#scheduler.now;
  }

  beginOutage(ms: number): void {
    this.#outageUntil = this.#scheduler.now + ms;
  }

  revoke(ms: number): void {
    this.#revokedUntil = this.#scheduler.now + ms;
  }

  /** From now on all goes well. */
  end(): void {
    this.#isOver = true;
    this.#outageUntil = 0;
    this.#revokedUntil = 0;
  }

  /** Once for each call. */
  draw(method: Method): Fault | undefined {
    this.calls++;
    const fault = this.#draw(method);
    if (fault !== undefined) this.counts.set(fault, (this.counts.get(fault) ?? 0) + 1);
    return fault;
  }

  #draw(method: Method): Fault | undefined {
    if (this.#isOver) return undefined;
    if (this.#outageUntil > this.#scheduler.now) return 'outage';
    if (this.isRevoked) return this.#canLie() ? 'revoked' : 'outage';
    if (!this.#chance.happens(this.#rate)) return undefined;
    return this.#chance.weighted(weights[method] as Record<Fault, number>);
  }
}
