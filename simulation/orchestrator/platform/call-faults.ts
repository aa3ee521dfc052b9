import type { Method } from '../../../src/platform-model/platform.ts';
import type { Scheduler } from '../../../test/support/time/scheduler.ts';
import type { Chance } from '../../kernel/chance.ts';

/**
 * - `before`: the call fails, and nothing was done
 * - `after`: the call is carried out, and its answer is lost
 * - `hang`: the call reaches the platform long after its caller stopped waiting
 * - `mute`: the call is carried out, and never answered
 * - `slow`: the call and its answer take seconds each
 * - `refused`: the resource is locked
 * - `auth`: the platform does not know the credential
 * - `unknown`: a get or a listing says that the service is unavailable
 * - `empty`, `partial`: a listing lacks all, or some, of what there is; a count tells of no unit, or of fewer
 * - `idle`: the platform answers "done" and has done nothing
 * - `no-capacity`: the platform has no free host
 * - `outage`: the platform cannot be reached
 * - `revoked`: the platform shows an empty account
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
  disown: ORDER,
  inventory: { ...LOOK, hang: 4, empty: 1, partial: 3 },
  'volumes.get': LOOK,
  'volumes.list': { ...LOOK, empty: 2, partial: 3 },
  'volumes.usage': LOOK,
  'volumes.create': { ...ORDER, after: 8 },
  'volumes.attach': ORDER,
  'volumes.detach': ORDER,
  'volumes.resize': { ...ORDER, refused: 1, after: 8, idle: 1 },
  'volumes.destroy': { ...ORDER, idle: 2 },
};

/** Draws the fault of each call, and knows how long an outage or a revoked credential lasts. */
export class CallFaults {
  readonly #scheduler: Scheduler;
  readonly #chance: Chance;
  readonly #rate: number;
  #isOver = false;
  #outageUntil = 0;
  #revokedUntil = 0;
  #countlessUntil = 0;
  /** Whether the servers would recognise an empty account as a fault; where not, an outage takes its place. */
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

  /** For so long the platform counts nothing, while all else goes on. */
  stopCounting(ms: number): void {
    this.#countlessUntil = this.#scheduler.now + ms;
  }

  /** From now on no call meets a fault. */
  end(): void {
    this.#isOver = true;
    this.#outageUntil = 0;
    this.#revokedUntil = 0;
  }

  /** Draws the fault of one call; undefined: it meets none. */
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
    if (method === 'inventory' && this.#countlessUntil > this.#scheduler.now)
      return this.#chance.pick(['unknown', 'hang']);
    if (!this.#chance.happens(this.#rate)) return undefined;
    return this.#chance.weighted(weights[method] as Record<Fault, number>);
  }
}
