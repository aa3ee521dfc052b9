import type { Clock } from '../../ports/clock.ts';
import type { OwnerRef, PlatformDriver } from '../model/platform-driver.ts';
import type { Telemetry } from '../model/telemetry.ts';
import type { UsageReading } from '../volumes/usage.ts';
import { askUsage } from './call-platform.ts';

interface Deps {
  driver: Pick<PlatformDriver, 'volumes'>;
  clock: Clock;
  options: { callTimeoutMs: number };
  telemetry?: Telemetry;
}

/** The platform is asked at most this often, however many clients ask. */
const READ_EVERY_MS = 60_000;

/** How much of its volumes' space a platform uses. It asks the driver when a client asks, at most once a minute. */
export class PlatformVolumeUsage {
  readonly #deps: Deps;
  #last: UsageReading | undefined;
  #askedAt = Number.NEGATIVE_INFINITY;
  #reading: Promise<void> | undefined;

  constructor(deps: Deps) {
    this.#deps = deps;
  }

  /** The last reading; undefined if there is none. A platform that does not answer leaves the one before. Never rejects. */
  async read(): Promise<UsageReading | undefined> {
    const { driver, clock } = this.#deps;
    const { volumes } = driver;
    const usage = volumes?.usage;
    if (usage === undefined) return undefined;
    if (Math.abs(clock.now() - this.#askedAt) >= READ_EVERY_MS)
      this.#reading ??= this.#refresh(() => usage.call(volumes)).finally(() => {
        this.#reading = undefined;
      });
    await this.#reading;
    return this.#last;
  }

  async #refresh(ask: Parameters<typeof askUsage>[1]): Promise<void> {
    const measuredAt = this.#deps.clock.now();
    const listing = await askUsage(this.#deps, ask);
    this.#askedAt = measuredAt;
    if (listing.answer === 'unknown') return;
    const usedBytes = new Map<OwnerRef, number>(listing.items.map((item) => [item.ref, item.usedBytes]));
    this.#last = { measuredAt, usedBytes };
  }
}
