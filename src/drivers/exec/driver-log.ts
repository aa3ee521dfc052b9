import { cleanText } from '../../orchestrator/model/platform-resource.ts';
import type { Clock } from '../../ports/clock.ts';
import type { Secrets } from './secrets.ts';

const BURST = 100;
const PER_SECOND = 10;

/**
 * Passes a driver's text lines to the log: cleaned, without secrets, at most ten a second after a burst of a hundred.
 * Counts the lines that are left out: the next line that is logged says how many.
 */
export class DriverLog {
  readonly #clock: Pick<Clock, 'now'>;
  readonly #log: (line: string, leftOut: number) => void;
  readonly #secrets: Secrets;
  #tokens = BURST;
  #at: number;
  #leftOut = 0;

  constructor(clock: Pick<Clock, 'now'>, secrets: Secrets, write: (line: string, leftOut: number) => void) {
    this.#clock = clock;
    this.#log = write;
    this.#secrets = secrets;
    this.#at = clock.now();
  }

  write(line: string): void {
    const now = this.#clock.now();
    this.#tokens = Math.min(BURST, this.#tokens + (Math.max(0, now - this.#at) * PER_SECOND) / 1000);
    this.#at = now;
    if (this.#tokens < 1) {
      this.#leftOut++;
      return;
    }
    this.#tokens--;
    this.#put(line, this.#leftOut);
  }

  /** Logs the last line of all if it was left out. */
  end(last: string): void {
    if (this.#leftOut > 0) this.#put(last, this.#leftOut - 1);
  }

  #put(line: string, leftOut: number): void {
    this.#leftOut = 0;
    this.#log(this.clean(line), leftOut);
  }

  clean(line: string): string {
    return cleanText(this.#secrets.clean(line));
  }
}
