import { idOf } from '../../../src/orchestrator/model/attempt.ts';
import type { ServerProcess } from '../../kernel/process.ts';
import { hold } from '../../kernel/violation.ts';
import type { UnderWay } from '../observed-driver.ts';

/**
 * I38: over all servers, at most one call that changes an attempt is under way. A command that is at the engine already is no
 * call, and what stood still since its call began cannot know that its lease is over.
 */
export function oneCallAtATime(call: UnderWay, underWay: readonly UnderWay[]): void {
  const other = underWay.find((one) => !hasStoodStill(one.process, one.beganAt));
  hold(
    'I38',
    other === undefined || hasStoodStill(call.process, 0),
    () =>
      `${call.method} of ${call.ref} by ${call.process.name} beside ${other?.method} by ${other?.process.name}`,
    [idOf(call.ref)],
  );
}

function hasStoodStill({ isDead, pausedUntil }: ServerProcess, since: number): boolean {
  return isDead || pausedUntil > since;
}

/** I46: a server begins no call that changes something once it knows that another has taken the platform over. */
export function nothingIsChanged({ method, ref, process, beganAt }: UnderWay, knownSince: number): void {
  hold(
    'I46',
    beganAt < knownSince + 2_000,
    () => `${process.name} begins ${method} of ${ref}, and another server has taken the platform over`,
    [idOf(ref)],
  );
}
