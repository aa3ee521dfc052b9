import type { Dice } from '../../../test/marketplace/dice.ts';
import type { CreditKind } from './credit.ts';

const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;
const DOLLAR = 1_000_000;

/** An event, the same in each world. `lagMs`: how long ago it happened at the provider. */
export type Event =
  | { do: 'start'; teamId: string; id: string; rate: number; lagMs: number }
  | { do: 'turn' | 'reprice'; id: string; rate: number; lagMs: number }
  | { do: 'end'; id: string; lagMs: number }
  | { do: 'keep'; teamId: string; id: string; rate: number; on: string | undefined }
  | { do: 'resize'; id: string; rate: number }
  | { do: 'drop'; id: string }
  | { do: 'assign'; teamId: string; percentage: number; inMs: number; lastsMs: number | null }
  | { do: 'revoke'; teamId: string; which: number }
  | { do: 'credit'; teamId: string; kind: CreditKind; amountMicroUsd: number };

/** Generates random events. It knows only the events that it generated. */
export class Fates {
  readonly #dice: Dice;
  readonly #deployments: string[] = [];
  readonly #volumes: string[] = [];
  readonly #silentUntil = new Map<string, number>();
  #number = 0;

  constructor(dice: Dice) {
    this.#dice = dice;
  }

  /** The events of a team in one round. */
  *of(teamId: string, at: number): Iterable<Event> {
    const dice = this.#dice;
    const own = (ids: readonly string[]) => dice.pick(ids.filter((id) => id.startsWith(`${teamId}-`)));
    const lagMs = dice.between(0, 40_000);
    const number = ++this.#number;
    if (dice.chance(0.012)) {
      const id = `${teamId}-dep-${number}`;
      this.#deployments.push(id);
      yield { do: 'start', teamId, id, rate: this.#rate(), lagMs };
    }
    if (dice.chance(0.006)) {
      const id = `${teamId}-vol-${number}`;
      this.#volumes.push(id);
      yield { do: 'keep', teamId, id, rate: this.#rate(10), on: own(this.#deployments) };
    }
    const [deployment, kept] = [own(this.#deployments), own(this.#volumes)];
    if (deployment !== undefined) {
      if (dice.chance(0.006)) yield { do: 'turn', id: deployment, rate: this.#rate(), lagMs };
      if (dice.chance(0.006)) yield { do: 'reprice', id: deployment, rate: this.#rate(), lagMs };
      if (dice.chance(0.003)) yield { do: 'end', id: deployment, lagMs };
      if (dice.chance(0.03)) this.#silentUntil.set(deployment, at + dice.between(1, 80) * MINUTE_MS);
    }
    if (kept !== undefined && dice.chance(0.006)) yield { do: 'resize', id: kept, rate: this.#rate(10) };
    if (kept !== undefined && dice.chance(0.001)) yield { do: 'drop', id: kept };
    yield* this.#money(teamId);
  }

  /** The deployments that providers confirm in this round, and how long ago they observed each. */
  confirmed(at: number): Map<string, number> {
    const confirmed = this.#deployments.filter((id) => (this.#silentUntil.get(id) ?? 0) <= at);
    return new Map(confirmed.map((id) => [id, this.#dice.between(0, 25_000)]));
  }

  *#money(teamId: string): Iterable<Event> {
    const dice = this.#dice;
    if (dice.chance(0.012))
      yield {
        do: 'assign',
        teamId,
        percentage: dice.between(5, 50),
        inMs: dice.chance(0.4) ? 0 : dice.between(1, 2 * HOUR_MS),
        lastsMs: dice.chance(0.2) ? null : dice.between(1, 3 * HOUR_MS),
      };
    if (dice.chance(0.002)) yield { do: 'revoke', teamId, which: dice.between(0, 4) };
    if (dice.chance(0.006)) {
      const kind = dice.pick(['top_up', 'grant', 'adjustment'] as const) ?? 'grant';
      const most = dice.chance(0.3) ? 300 * DOLLAR : 8 * DOLLAR;
      const amount = dice.between(1, most);
      yield {
        do: 'credit',
        teamId,
        kind,
        amountMicroUsd: dice.chance(0.5) && kind === 'adjustment' ? -amount : amount,
      };
    }
  }

  #rate(share = 1): number {
    const rate = this.#dice.between(10, 9_000_000) * (this.#dice.chance(0.2) ? 10 : 1);
    return Math.ceil(rate / share);
  }
}
