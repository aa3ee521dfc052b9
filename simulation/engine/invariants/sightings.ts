import { hold } from '../../kernel/violation.ts';

/** What is known of something that a listing showed, and that has no row. */
export interface Unowned {
  id: string;
  /** What a client of its account reads. */
  status: number | undefined;
  /** Whether an alarm names it. */
  isAlarmed: boolean;
}

/** I39: what was once seen without a row has its row again, or reads 503, or has an alarm, until it is gone. */
export function isAccountedFor({ id, status, isAlarmed }: Unowned): void {
  hold(
    'I39',
    status === 503 || isAlarmed,
    () => `${id} is at the engine without a row, reads ${status ?? 'nothing'}, and has no alarm`,
    [id],
  );
}

/** I39: what is at the engine, and whose row was lost, does not read 404. */
export function absenceIsNotTold(id: string, traces: readonly string[]): void {
  hold('I39', traces.length === 0, () => `${id} reads 404, and there is ${traces.join(', ')}`, [id]);
}
