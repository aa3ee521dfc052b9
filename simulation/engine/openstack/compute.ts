import type { EngineHost } from '../engine.ts';

/** `service_down_time`: a nova-compute counts as down so long after its last report. */
const DOWN_AFTER_MS = 60_000;

/** What a host takes from the cloud that it belongs to. */
interface Surroundings {
  readonly now: number;
  id(): string;
  fails(often?: number): boolean;
  onRestart(compute: Compute): void;
}

/** A host with a nova-compute. While that is silent, guests go on, and what it is sent waits in its queue. */
export class Compute implements EngineHost {
  readonly id: string;
  readonly name: string;
  readonly zone: string;
  /** By the resource class of Placement, with its allocation ratio. */
  readonly capacity: Record<string, number> = { VCPU: 128, MEMORY_MB: 130_000, DISK_GB: 2_000 };
  isDisabled = false;
  #silentSince: number | undefined;
  readonly #cloud: Surroundings;
  readonly #waiting = new Set<() => void>();

  constructor(cloud: Surroundings, name: string, zone: string) {
    this.#cloud = cloud;
    this.id = cloud.id();
    this.name = name;
    this.zone = zone;
  }

  get isSilent(): boolean {
    return this.#silentSince !== undefined;
  }

  set isSilent(isSilent: boolean) {
    if (isSilent === this.isSilent) return;
    this.#silentSince = isSilent ? this.#cloud.now : undefined;
    if (isSilent) return;
    // Whether its process has ended meanwhile.
    if (this.#cloud.fails(0.4)) this.#cloud.onRestart(this);
    for (const goOn of this.#waiting) goOn();
    this.#waiting.clear();
  }

  /** Whether Nova takes it to be up. */
  get isUp(): boolean {
    return this.#silentSince === undefined || this.#cloud.now - this.#silentSince < DOWN_AFTER_MS;
  }

  answers(): Promise<void> {
    if (!this.isSilent) return Promise.resolve();
    return new Promise((resolve) => this.#waiting.add(resolve));
  }
}
