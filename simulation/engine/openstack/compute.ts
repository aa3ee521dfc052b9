import { SilentHost } from '../surroundings.ts';

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
export class Compute extends SilentHost {
  readonly id: string;
  readonly name: string;
  readonly zone: string;
  /** By the resource class of Placement, with its allocation ratio. */
  readonly capacity: Record<string, number> = { VCPU: 128, MEMORY_MB: 130_000, DISK_GB: 2_000 };
  isDisabled = false;
  readonly #cloud: Surroundings;

  constructor(cloud: Surroundings, name: string, zone: string) {
    super();
    this.#cloud = cloud;
    this.id = cloud.id();
    this.name = name;
    this.zone = zone;
  }

  protected override fellSilent(): number {
    return this.#cloud.now;
  }

  /** Its process may have ended meanwhile. */
  protected override answersAgain(): void {
    if (this.#cloud.fails(0.4)) this.#cloud.onRestart(this);
  }

  /** Whether Nova takes it to be up. */
  get isUp(): boolean {
    return this.silentSince === undefined || this.#cloud.now - this.silentSince < DOWN_AFTER_MS;
  }
}
