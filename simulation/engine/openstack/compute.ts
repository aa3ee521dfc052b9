import type { EngineHost } from '../engine.ts';

/** `service_down_time`: a nova-compute counts as down so long after its last report. */
const DOWN_AFTER_MS = 60_000;

export interface Inventory {
  total: number;
  reserved: number;
  allocationRatio: number;
}

interface Parts {
  id: string;
  name: string;
  zone: string;
  inventories: Record<string, Inventory>;
  traits: string[];
  /** How many devices of each alias of PCI passthrough it has. */
  devices: Record<string, number>;
  now: () => number;
  /** It has fallen silent, and its process has ended or not. */
  fellSilent: (compute: Compute) => void;
  /** It answers again. */
  cameBack: (compute: Compute) => void;
}

/** A host with a nova-compute. While that is silent, guests go on, and what it is sent waits in its queue. */
export class Compute implements EngineHost {
  readonly id: string;
  readonly name: string;
  readonly zone: string;
  readonly inventories: Record<string, Inventory>;
  readonly traits: string[];
  readonly devices: Record<string, number>;
  isDisabled = false;
  /** How often its process has ended. */
  ends = 0;
  /** Whether its process ended while it was silent. */
  hasEnded = false;
  #silentSince: number | undefined;
  readonly #parts: Parts;
  readonly #waiting = new Set<() => void>();

  constructor(parts: Parts) {
    this.#parts = parts;
    this.id = parts.id;
    this.name = parts.name;
    this.zone = parts.zone;
    this.inventories = parts.inventories;
    this.traits = parts.traits;
    this.devices = parts.devices;
  }

  get isSilent(): boolean {
    return this.#silentSince !== undefined;
  }

  set isSilent(isSilent: boolean) {
    if (isSilent === this.isSilent) return;
    this.#silentSince = isSilent ? this.#parts.now() : undefined;
    if (isSilent) {
      this.#parts.fellSilent(this);
      return;
    }
    this.#parts.cameBack(this);
    for (const goOn of this.#waiting) goOn();
    this.#waiting.clear();
  }

  /** Whether Nova takes it to be up. */
  get isUp(): boolean {
    return this.#silentSince === undefined || this.#parts.now() - this.#silentSince < DOWN_AFTER_MS;
  }

  get status(): 'UP' | 'UNKNOWN' | 'MAINTENANCE' {
    if (!this.isUp) return 'UNKNOWN';
    return this.isDisabled ? 'MAINTENANCE' : 'UP';
  }

  answers(): Promise<void> {
    if (!this.isSilent) return Promise.resolve();
    return new Promise((resolve) => this.#waiting.add(resolve));
  }
}
