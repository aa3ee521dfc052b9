import type { MachineSpec, OwnerRef } from '../orchestrator/model/platform-driver.ts';
import type { MachineRecord } from './records.ts';

type Place = Pick<MachineSpec, 'offerId' | 'datacenter'>;

/** The existing machines by number and by ref, and the units that they occupy. */
export class MachineIndex<M extends MachineRecord> {
  readonly #byNumber = new Map<number, M>();
  /** The numbers of the machines of each ref, oldest first. */
  readonly #numbers = new Map<OwnerRef, number[]>();
  /** By datacenter and offer. */
  readonly #occupied = new Map<string, number>();

  all(): M[] {
    return [...this.#byNumber.values()];
  }

  get(number: number): M | undefined {
    return this.#byNumber.get(number);
  }

  /** Oldest first. */
  of(ref: OwnerRef): M[] {
    return (this.#numbers.get(ref) ?? []).flatMap((number) => this.#byNumber.get(number) ?? []);
  }

  occupiedUnits(place: Place): number {
    return this.#occupied.get(poolOf(place)) ?? 0;
  }

  /** `before` undefined: the machine is new; `after` undefined: it is removed. */
  replace(before: M | undefined, after: M | undefined): void {
    const { number, spec } = (after ?? before) as M;
    const units = Number(after?.holdsUnit ?? false) - Number(before?.holdsUnit ?? false);
    this.#occupied.set(poolOf(spec), this.occupiedUnits(spec) + units);
    if (before === undefined) this.#numbers.set(spec.ref, [...(this.#numbers.get(spec.ref) ?? []), number]);
    if (after !== undefined) this.#byNumber.set(number, after);
    else {
      this.#byNumber.delete(number);
      const left = this.#numbers.get(spec.ref)?.filter((other) => other !== number) ?? [];
      if (left.length > 0) this.#numbers.set(spec.ref, left);
      else this.#numbers.delete(spec.ref);
    }
  }
}

function poolOf({ offerId, datacenter }: Place): string {
  return `${datacenter}/${offerId}`;
}
