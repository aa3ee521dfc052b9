import type { HourOfFigures } from '../../../operator-kit/figures/recorder.ts';
import { startOf } from '../../../operator-kit/figures/recorder.ts';
import { addValues, HOUR_MS, toObservation } from '../../../operator-kit/figures/rows.ts';
import { CALL_BUCKETS, type TimedCall } from '../../model/telemetry.ts';

/** The series of what platforms answered and how long it took. */
export const CALLS = 'calls';

interface Counted {
  platform: string;
  hour: number;
  call: string;
  outcome: string;
  values: number[];
}

/** Counts this process's calls to platforms until they are written. */
export class CallCounts {
  #counts = new Map<string, Counted>();

  count(platform: string, { call, outcome, at, tookMs }: TimedCall): void {
    const hour = startOf(HOUR_MS, at + tookMs);
    this.#add({ platform, hour, call, outcome, values: toObservation(tookMs, CALL_BUCKETS) });
  }

  take(): HourOfFigures[] {
    const counts = [...this.#counts.values()];
    this.#counts = new Map();
    const bySubject = Map.groupBy(counts, ({ platform, hour }) => JSON.stringify([platform, hour]));
    return [...bySubject.values()].flatMap((of) => {
      const [first] = of;
      const rows = of.map(({ call, outcome, values }) => [call, outcome, ...values]);
      return first === undefined
        ? []
        : [{ how: 'add' as const, series: CALLS, subject: first.platform, at: first.hour, rows }];
    });
  }

  putBack(taken: readonly HourOfFigures[]): void {
    for (const { subject: platform, at: hour, rows } of taken)
      for (const [call, outcome, ...values] of rows)
        this.#add({
          platform,
          hour,
          call: String(call),
          outcome: String(outcome),
          values: values.map(Number),
        });
  }

  #add(counted: Counted): void {
    const { platform, hour, call, outcome, values } = counted;
    const key = JSON.stringify([platform, hour, call, outcome]);
    const known = this.#counts.get(key);
    if (known === undefined) this.#counts.set(key, counted);
    else known.values = addValues(known.values, values);
  }
}
